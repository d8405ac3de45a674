//go:build linux

package cartwheel_test

import (
	"testing"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/server/servertest"
)

// TestEventual_NamesThatASideTookStayTaken has a client move a file at the side, and then
// reach the active, which has not merged that. The client finds no file by the old name,
// and what it makes under that name is a file of its own.
func TestEventual_NamesThatASideTookStayTaken(t *testing.T) {
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
