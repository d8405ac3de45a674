//go:build linux

package cartwheel_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// lagged is a slice with a time to coherence. One client writes, another one reads,
// and the active may give the other members no content.
type lagged struct {
	*testing.T
	c             *servertest.Cluster
	maker, reader *cartwheel.Client
	made, seen    mount.Inode // the directory
	slice         ids.Slice
	active        *servertest.Node
}

// newLagged returns one with the file "whole", which all members have.
func newLagged(t *testing.T, o servertest.Options) *lagged {
	t.Helper()
	l := &lagged{T: t, c: servertest.Start(t, o)}
	l.maker, l.reader = clientOf(t, l.c, "a"), clientOf(t, l.c, "b")
	ctx := context.Background()
	way := mount.Root
	for _, name := range []string{".KeepTogether", ".Coherence=600"} { // it is no matter of the root's slice
		e, err := l.maker.Lookup(ctx, nobody, way, name)
		if err != nil {
			t.Fatal(err)
		}
		way = e.Node
	}
	d, err := l.maker.Mkdir(ctx, nobody, way, "d", 0o777)
	if err != nil {
		t.Fatal(err)
	}
	l.made = d.Node
	l.slice = ids.Object(put(t, l.maker, l.made, "whole", content(1), 0).Attr.Ino).Slice()
	row, err := l.c.Row(ctx, l.slice)
	if err != nil || row.Policy.Coherence != 600*time.Second {
		t.Fatalf("the file is in a slice with %+v, %v", row.Policy, err)
	}
	l.active = l.c.Active(l.slice)
	l.awaitLacking("all have the first file", 0)
	e, err := l.reader.Lookup(ctx, nobody, mount.Root, "d")
	if err != nil {
		t.Fatal(err)
	}
	l.seen = e.Node
	return l
}

// content is what does not travel with the operation that commits it.
func content(seed uint64) string {
	b := make([]byte, 1<<20)
	r := rand.New(rand.NewPCG(seed, seed))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return string(b)
}

// hide has the active answer no other node that asks for content.
func (l *lagged) hide() {
	nodes := map[string]bool{}
	for _, n := range l.c.Nodes {
		nodes[string(n.ID())] = true
	}
	l.active.Server().Host().SetFilter(func(peer string, _ wire.Class, m wire.Method) wire.Verdict {
		return wire.Verdict{Drop: m == method.Get && nodes[peer]}
	})
}

// lacking is how many writes a node has without their content.
func (l *lagged) lacking(n *servertest.Node) (int, error) {
	st, ok, err := n.Server().Stand(l.Context(), l.slice)
	if err == nil && !ok {
		err = fault.E(fault.NotFound, "", "", "the node has no copy")
	}
	return st.Lacking, err
}

// awaitLacking waits until every member but the active lacks so much.
func (l *lagged) awaitLacking(what string, want int) {
	l.Helper()
	servertest.Await(l.Context(), l, what, func() error {
		row, err := l.c.Row(l.Context(), l.slice)
		if err != nil {
			return err
		}
		for _, n := range l.c.Nodes {
			if m, _ := row.Member(n.ID()); n == l.active || m.State != geoconfig.Normal || n.Server() == nil {
				continue
			}
			if got, err := l.lacking(n); err != nil || got != want {
				return fmt.Errorf("node %d lacks the content of %d writes, want %d: %w", n.Index, got, want, err)
			}
		}
		return nil
	})
}

// reads checks what the reader reads. It has nothing in its caches.
func (l *lagged) reads(name, want string) {
	l.Helper()
	servertest.Await(l.Context(), l, "reading "+name, func() error {
		l.reader.DropCaches(l.Context())
		got, err := textOf(l.reader, l.seen, name)
		if err == nil && got != want {
			l.Errorf("%s has %d bytes of other content, want %d", name, len(got), len(want))
		}
		return err
	})
}

// isStale checks that the reader is told that it cannot read now.
func (l *lagged) isStale(name string) {
	l.Helper()
	servertest.Await(l.Context(), l, "a refusal to read "+name, func() error {
		l.reader.DropCaches(l.Context())
		if got, err := textOf(l.reader, l.seen, name); !fault.Is(err, fault.Stale) || mount.Errno(err) == 0 {
			return fmt.Errorf("got %d bytes, %w", len(got), err)
		}
		return nil
	})
}

// TestCoherence_OthersFollow writes content of which the other members learn by the log
// alone. It is read all the same, also when a member restarted; without the hindrance
// all have it.
func TestCoherence_OthersFollow(t *testing.T) {
	t.Parallel()
	l := newLagged(t, servertest.Options{})
	put(t, l.maker, l.made, "free", content(2), 0)
	l.awaitLacking("all have what is not hidden", 0)
	l.hide()
	put(t, l.maker, l.made, "late", content(3), 0)
	l.awaitLacking("the others know of the file and lack its content", 1)
	l.reads("late", content(3))
	for _, n := range l.c.Nodes {
		if n != l.active {
			n.Kill()
			n.Start()
			break
		}
	}
	l.awaitLacking("a member that restarted knows what it lacks", 1)
	l.reads("late", content(3))
	l.reads("free", content(2))
}

// TestCoherence_WhatTheActiveTookAlongIsStale has the active go away while the others
// lack content. Those files answer ESTALE, and all else goes on. When it returns, they
// can be read.
func TestCoherence_WhatTheActiveTookAlongIsStale(t *testing.T) {
	t.Parallel()
	l := newLagged(t, servertest.Options{})
	l.hide()
	for _, name := range []string{"late", "written", "removed"} {
		put(t, l.maker, l.made, name, content(4), 0)
	}
	l.awaitLacking("the others lack the content", 3)
	gone := l.active
	gone.Kill()
	l.reads("whole", content(1))
	l.active = l.c.Active(l.slice)
	if l.active == gone {
		t.Fatal("nobody took over")
	}
	for _, name := range []string{"late", "written", "removed"} {
		l.isStale(name)
	}
	put(t, l.reader, l.seen, "new", content(5), 0)
	put(t, l.reader, l.seen, "written", content(6), mount.OpenTruncate)
	if err := l.reader.Unlink(context.Background(), nobody, l.seen, "removed"); err != nil {
		t.Error(err)
	}
	l.reads("new", content(5))
	l.reads("written", content(6))
	l.isStale("late")
	gone.Start()
	l.reads("late", content(4))
	if e, err := l.reader.Lookup(context.Background(), nobody, l.seen, "removed"); err != nil || e.Node != 0 {
		t.Errorf("what was removed meanwhile is there: %+v, %v", e, err)
	}
	l.awaitLacking("all have it", 0)
}

// TestCoherence_WhatOthersHaveStays has the active go away behind the lag.
func TestCoherence_WhatOthersHaveStays(t *testing.T) {
	t.Parallel()
	l := newLagged(t, servertest.Options{})
	put(t, l.maker, l.made, "free", content(7), 0)
	l.awaitLacking("all have it", 0)
	l.active.Kill()
	l.reads("free", content(7))
}

// heard is a log that a test looks into.
type heard struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(p)
}

func (h *heard) has(what string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Contains(h.text.String(), what)
}

// TestCoherence_ALossIsSaid has the active never return. Another node takes its place
// with a copy that lacks the same content, and the log says what was lost.
func TestCoherence_ALossIsSaid(t *testing.T) {
	t.Parallel()
	var log heard
	l := newLagged(t, servertest.Options{
		Sites: []string{"a", "b", "c", "d"}, Configure: func(_ int, c *server.Config) { c.FailedAfter, c.MissedBytes = 2*time.Second, 4096 },
		Depend: func(_ int, d *server.Deps) { d.Logger = slog.New(slog.NewTextHandler(&log, nil)) },
	})
	l.hide()
	put(t, l.maker, l.made, "late", content(8), 0)
	l.awaitLacking("the others lack the content", 1)
	for i := range 50 { // the log in memory does not reach back
		put(t, l.maker, l.made, fmt.Sprint("small", i), "small", 0)
	}
	gone := l.active
	gone.Kill()
	servertest.Await(t.Context(), t, "another node in its place", func() error {
		row, err := l.c.Row(t.Context(), l.slice)
		if _, there := row.Member(gone.ID()); err == nil && (there || len(row.Normals()) != 3) {
			err = fmt.Errorf("the row is %+v", row)
		}
		return err
	})
	l.active = l.c.Active(l.slice)
	l.awaitLacking("the new member knows what is lost", 1)
	l.reads("whole", content(1))
	l.isStale("late")
	for _, what := range []string{"content is away with a failed node", "a node left the slice"} {
		if !log.has(what) {
			t.Errorf("the log does not say %q", what)
		}
	}
}
