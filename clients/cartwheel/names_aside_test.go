//go:build linux

package cartwheel_test

import (
	"slices"
	"sync/atomic"
	"testing"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// TestEventual_NamesThatASideTookStayTaken has a client move a file at the side, and then
// reach the active, which has not merged that. The client finds no file by the old name,
// and what it makes under that name is a file of its own.
func TestEventual_NamesThatASideTookStayTaken(t *testing.T) {
	t.Parallel()
	for what, remove := range map[string]bool{"moved": false, "removed": true} {
		t.Run(what, func(t *testing.T) {
			s, heal := newSide(t)
			ctx := t.Context()
			put(t, s.maker, s.made, "f.new", "one", 0)
			if err := s.maker.FsyncDir(ctx, nobody, s.made, 0, false); err != nil {
				t.Fatal(err)
			}
			servertest.Await(ctx, t, "the side to have the file", func() error {
				s.cl.DropCaches(ctx)
				text, err := textOf(s.cl, s.dir, "f.new")
				if err == nil && text != "one" {
					err = fault.E(fault.Again, "", "", "it is empty")
				}
				return err
			})
			want := map[string]string{"f": "one", "f.new": "two", "small": "small", "large": s.large, "link": "->"}
			if remove {
				delete(want, "f")
				if err := s.cl.Unlink(ctx, nobody, s.dir, "f.new"); err != nil {
					t.Fatal(err)
				}
			} else if err := s.cl.Rename(ctx, nobody, s.dir, "f.new", s.dir, "f", 0); err != nil {
				t.Fatal(err)
			}
			s.back()
			if e, err := s.cl.Lookup(ctx, nobody, s.dir, "f.new"); err == nil && e.Node != 0 {
				t.Error("the file has its old name")
			}
			put(t, s.cl, s.dir, "f.new", "two", mount.OpenTruncate)
			if !remove {
				if text, err := textOf(s.cl, s.dir, "f"); err != nil || text != "one" {
					t.Errorf("the moved file has %q, %v", text, err)
				}
			}
			heal()
			s.merged(want)
			s.reported()
		})
	}
}

// TestEventual_RemovesOnceWhereNoAnswerComes loses the answer of a side that removed a
// file. The next one has heard of that, and has no such name: the file is removed.
func TestEventual_RemovesOnceWhereNoAnswerComes(t *testing.T) {
	t.Parallel()
	s, heal := newSide(t)
	defer heal()
	if text, err := textOf(s.cl, s.dir, "small"); err != nil || text != "small" {
		t.Fatal(text, err)
	}
	var silent atomic.Pointer[servertest.Node] // once it was to answer the client
	for _, n := range s.c.Nodes {
		n.Server().Host().SetFilter(func(peer string, _ wire.Class, m wire.Method) wire.Verdict {
			node := slices.ContainsFunc(s.c.Nodes, func(n *servertest.Node) bool { return string(n.ID()) == peer })
			if m == method.Side && !node {
				silent.CompareAndSwap(nil, n)
			}
			first := silent.Load()
			drop := m == method.Side && first != nil && (n == first || peer == string(first.ID()))
			return wire.Verdict{Drop: drop || m == method.Operate && peer == string(s.active.ID())}
		})
	}
	if err := s.cl.Unlink(t.Context(), nobody, s.dir, "small"); err != nil || silent.Load() == nil {
		t.Fatalf("removing the file: %v; an answer was lost: %v", err, silent.Load() != nil)
	}
	if err := s.cl.Unlink(t.Context(), nobody, s.dir, "small"); !fault.Is(err, fault.NotFound) {
		t.Errorf("removing it again: got %v, want NotFound", err)
	}
	heal()
	s.merged(map[string]string{"large": s.large, "link": "->"})
}
