//go:build linux

package cartwheel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/cartwheel/xattrs"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// deafen drops what a node gets of others than nodes, until the function returned is
// called. The node goes on to act for its slices.
func deafen(c *servertest.Cluster, n *servertest.Node) (heal func()) {
	var nodes []string
	for _, other := range c.Nodes {
		nodes = append(nodes, string(other.ID()))
	}
	host := n.Server().Host()
	host.SetFilter(func(peer string, _ wire.Class, _ wire.Method) wire.Verdict {
		return wire.Verdict{Drop: !slices.Contains(nodes, peer)}
	})
	return func() { host.SetFilter(nil) }
}

// eventual is a client that waits for ever without the cue, and a directory by a path
// with and without it, which another client filled.
type eventual struct {
	*testing.T
	c            *servertest.Cluster
	cl, maker    *cartwheel.Client
	dir          mount.Inode
	made         mount.Inode // the maker's
	active       *servertest.Node
	slice        ids.Slice
	small, large string
}

func newEventual(t *testing.T, site ids.Site, cue string, configure ...func(int, *server.Config)) *eventual {
	t.Helper()
	var o servertest.Options
	if len(configure) > 0 {
		o.Configure = configure[0]
	}
	e := &eventual{T: t, c: servertest.Start(t, o), small: "small", large: string(noise(600 << 10))}
	e.maker = clientOf(t, e.c, "a")
	ctx := t.Context()
	d, err := e.maker.Mkdir(ctx, nobody, mount.Root, "dir", 0o755)
	if err != nil {
		t.Fatal(err)
	}
	e.made = d.Node
	put(t, e.maker, d.Node, "small", e.small, 0)
	put(t, e.maker, d.Node, "large", e.large, 0)
	if _, err := e.maker.Symlink(ctx, nobody, d.Node, "link", "small"); err != nil {
		t.Fatal(err)
	}
	if err := e.maker.FsyncDir(ctx, nobody, d.Node, 0, false); err != nil {
		t.Fatal(err)
	}
	e.slice = ids.Object(d.Attr.Ino).Slice()
	e.active = e.c.Active(e.slice)
	e.cl = opened(t, e.c, cartwheel.Options{Site: site, OpTimeout: never})
	t.Cleanup(func() {
		if err := e.cl.Close(); err != nil {
			t.Error(err)
		}
	})
	e.dir = e.look(mount.Root, "dir")
	for _, part := range strings.Split(cue, "/") {
		e.dir = e.look(e.dir, part)
	}
	return e
}

func (e *eventual) look(dir mount.Inode, name string) mount.Inode {
	e.Helper()
	out, err := e.cl.Lookup(e.Context(), nobody, dir, name)
	if err != nil || out.Node == 0 {
		e.Fatalf("looking up %s: %+v, %v", name, out, err)
	}
	return out.Node
}

// copied returns which copy the last read of a file was answered from; nil: the active
// answered it.
func (e *eventual) copied(name string) *xattrs.ReadCopy {
	e.Helper()
	buf := make([]byte, 1024)
	n, err := e.cl.GetXattr(e.Context(), nobody, e.look(e.dir, name), "user.cartwheel.receipt", buf)
	var r xattrs.Receipt
	if err == nil {
		err = json.Unmarshal(buf[:n], &r)
	}
	if err != nil && !fault.Is(err, fault.NoAttribute) {
		e.Fatalf("the receipt of %s: %s, %v", name, buf[:n], err)
	}
	return r.Read
}

// TestEventual_ReadsWithoutTheActive has the active of a slice answer no client.
// Through the cue everything in it can be read from the standbys.
func TestEventual_ReadsWithoutTheActive(t *testing.T) {
	for _, site := range []ids.Site{"a", "c"} { // the active's, and another one
		t.Run(string(site), func(t *testing.T) { readWithoutTheActive(newEventual(t, site, ".EventualConsistency")) })
	}
}

func readWithoutTheActive(e *eventual) {
	t := e.T
	t.Helper()
	heal := deafen(e.c, e.active)
	e.cl.DropCaches(t.Context())
	if got := get(t, e.cl, e.dir, "small"); got != e.small {
		t.Errorf("a small file: got %q", got)
	}
	if got := get(t, e.cl, e.dir, "large"); got != e.large {
		t.Errorf("a large file: got %d bytes, others than were written", len(got))
	}
	if target, err := e.cl.Readlink(t.Context(), nobody, e.look(e.dir, "link")); err != nil || string(target) != "small" {
		t.Errorf("a link: got %q, %v", target, err)
	}
	if names, err := list(e.cl, e.dir); err != nil || names != ". .. large link small" {
		t.Errorf("the listing: got %q, %v", names, err)
	}
	if out, err := e.cl.Lookup(t.Context(), nobody, e.dir, "missing"); err != nil || out.Node != 0 {
		t.Errorf("a name that is not there: got %+v, %v", out, err)
	}
	if r := e.copied("small"); r == nil || r.Node == e.active.ID() || r.AgeMs <= 0 || r.Serial == 0 || r.Unmerged {
		t.Errorf("the receipt says %+v, want a standby's copy and its age", r)
	}
	heal()
}

// TestEventual_ReadsTheTruthWhereItCan changes a file while the active answers: a
// read through the cue shows it at once.
func TestEventual_ReadsTheTruthWhereItCan(t *testing.T) {
	e := newEventual(t, "c", ".EventualConsistency")
	for _, text := range []string{"first", "second", "the third"} {
		put(t, e.maker, e.made, "small", text, mount.OpenTruncate)
		if got := get(t, e.cl, e.dir, "small"); got != text {
			t.Errorf("got %q, want %q", got, text)
		}
	}
}

// TestEventual_MakesAFileFarAway has the only member of a slice be so far that no
// ninth of an operation's time is enough for it. A new file is made there once.
func TestEventual_MakesAFileFarAway(t *testing.T) {
	const limit, lag = 9 * time.Second, 1500 * time.Millisecond
	c := servertest.Start(t, servertest.Options{})
	ctx, maker := t.Context(), clientOf(t, c, "a")
	e := eventual{T: t, c: c, cl: maker}
	d, err := maker.Mkdir(ctx, nobody, e.look(e.look(mount.Root, ".RepLevel=1"), ".Site=a"), "dir", 0o777)
	if err != nil {
		t.Fatal(err)
	}
	e.cl = clientOf(t, c, "b")
	dir := e.look(e.look(mount.Root, "dir"), fmt.Sprint(".MaxTime=", limit.Milliseconds()))
	dir = e.look(dir, ".EventualConsistency")
	put(t, e.cl, dir, "near", "connects", 0)
	c.Active(ids.Object(d.Attr.Ino).Slice()).Server().Host().SetFilter(func(_ string, _ wire.Class, m wire.Method) wire.Verdict {
		if m != method.Operate {
			return wire.Verdict{}
		}
		return wire.Verdict{Delay: lag}
	})
	made, _, err := e.cl.Create(ctx, nobody, dir, "far", 0o644, mount.OpenWrite|mount.OpenExclusive)
	if err != nil || made.Node == 0 {
		t.Errorf("got %+v, %v", made, err)
	}
}

// TestEventual_ComesBackToTheActive reads from a standby while the active is away, and
// the truth soon after it is back.
func TestEventual_ComesBackToTheActive(t *testing.T) {
	e := newEventual(t, "c", ".EventualConsistency/.MaxTime=400")
	heal := deafen(e.c, e.active)
	e.cl.DropCaches(t.Context())
	if got := get(t, e.cl, e.dir, "small"); got != e.small {
		t.Errorf("while the active is away: got %q", got)
	}
	heal()
	put(t, e.maker, e.made, "small", "changed", mount.OpenTruncate)
	servertest.Await(t.Context(), t, "the active answers again", func() error {
		e.cl.DropCaches(t.Context())
		if got := get(t, e.cl, e.dir, "small"); got != "changed" {
			return fault.Errorf(fault.Again, "", "", "got %q", got)
		}
		if r := e.copied("small"); r != nil {
			return fault.Errorf(fault.Again, "", "", "the receipt says %+v", r)
		}
		return nil
	})
}

// TestEventual_EndsWhereNobodyAnswers cuts all nodes off.
func TestEventual_EndsWhereNobodyAnswers(t *testing.T) {
	e := newEventual(t, "c", ".EventualConsistency")
	for _, n := range e.c.Nodes {
		defer deafen(e.c, n)()
	}
	e.cl.DropCaches(t.Context())
	if _, err := e.cl.Lookup(context.Background(), nobody, e.dir, "small"); !fault.Is(err, fault.TimedOut) {
		t.Errorf("got %v, want TimedOut", err)
	}
}

// TestEventual_WritesEndWhereNobodyAnswers stops all nodes. A program hears what it does
// of a slow one: its host may have a way to them.
func TestEventual_WritesEndWhereNobodyAnswers(t *testing.T) {
	e := newEventual(t, "c", ".EventualConsistency/.MaxTime=500")
	for _, n := range e.c.Nodes {
		n.Stop()
	}
	if _, err := e.cl.Mkdir(context.Background(), nobody, e.dir, "d", 0o755); !fault.Is(err, fault.TimedOut) {
		t.Errorf("got %v, want TimedOut", err)
	}
}

// TestEventual_TakesWhatItReadLast cuts all nodes off once a file was read through the
// cue.
func TestEventual_TakesWhatItReadLast(t *testing.T) {
	e := newEventual(t, "c", ".EventualConsistency/.MaxTime=300")
	if got := get(t, e.cl, e.dir, "small"); got != e.small {
		t.Errorf("got %q", got)
	}
	for _, n := range e.c.Nodes {
		defer deafen(e.c, n)()
	}
	e.cl.DropCaches(t.Context())
	if got := get(t, e.cl, e.dir, "small"); got != e.small {
		t.Errorf("while no node answers: got %q", got)
	}
	// A thread that was not here before: its open knows the cue by the lookup alone.
	thread := nobody
	thread.PID = 77
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	found, err := e.cl.Lookup(ctx, thread, e.dir, "small")
	if err != nil {
		t.Fatal(err)
	}
	o, err := e.cl.Open(ctx, thread, found.Node, mount.OpenRead)
	if err != nil {
		t.Fatal("an open is not on the terms of its lookup: ", err)
	}
	e.cl.Release(found.Node, o.Handle, 1, false)
}

// TestEventual_TakesWhatItWroteLast writes a file under a name of a moment, gives it
// another one, and cuts all nodes off.
func TestEventual_TakesWhatItWroteLast(t *testing.T) {
	e := newEventual(t, "c", ".EventualConsistency/.MaxTime=500")
	put(t, e.cl, e.dir, "tmp", e.small, 0)
	if err := e.cl.Rename(t.Context(), nobody, e.dir, "tmp", e.dir, "new", 0); err != nil {
		t.Fatal(err)
	}
	put(t, e.cl, e.dir, "gone", "x", 0)
	if err := e.cl.Unlink(t.Context(), nobody, e.dir, "gone"); err != nil {
		t.Fatal(err)
	}
	for _, n := range e.c.Nodes {
		defer deafen(e.c, n)()
	}
	e.cl.DropCaches(t.Context())
	if got := get(t, e.cl, e.dir, "new"); got != e.small {
		t.Errorf("got %q, want what was written", got)
	}
	for _, name := range []string{"tmp", "gone"} {
		if found, err := e.cl.Lookup(t.Context(), nobody, e.dir, name); err != nil || found.Node != 0 {
			t.Errorf("%s is there: %+v, %v", name, found, err)
		}
	}
}

// TestMaxTime_BoundsTheWayToIt cuts the only node off. The mount point and the folders
// above a cue that was used before are answered as they were known last, and so the
// operation below the cue ends in its time, also for a program that walks its path.
func TestMaxTime_BoundsTheWayToIt(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	maker := clientOf(t, c, "a")
	cl := opened(t, c, cartwheel.Options{Site: "a", OpTimeout: never})
	t.Cleanup(func() {
		if err := cl.Close(); err != nil {
			t.Error(err)
		}
	})
	d, err := maker.Mkdir(t.Context(), nobody, mount.Root, "above", 0o755)
	if err != nil {
		t.Fatal(err)
	}
	put(t, maker, d.Node, "file", "text", 0)
	walk := func() error {
		at := mount.Root
		for _, name := range []string{"above", ".MaxTime=200", "file"} {
			if name != "file" {
				if _, err := cl.GetAttr(context.Background(), nobody, at, 0); err != nil {
					t.Errorf("the folder in which %s is: %v", name, err)
				}
				if err := cl.Access(context.Background(), nobody, at, mount.AccessRead); err != nil {
					t.Errorf("access to the folder in which %s is: %v", name, err)
				}
				// A kernel asks for the ACL where others than root walk.
				if _, err := cl.GetXattr(context.Background(), nobody, at, "system.posix_acl_access", nil); !fault.Is(err, fault.NoAttribute) {
					t.Errorf("the ACL of the folder in which %s is: %v, want that it has none", name, err)
				}
			}
			e, err := cl.Lookup(context.Background(), nobody, at, name)
			if err != nil {
				return fault.Wrap(fault.KindOf(err), "", name, err)
			}
			at = e.Node
		}
		return nil
	}
	if err := walk(); err != nil {
		t.Fatal(err)
	}
	heal := cut(c.Nodes[0])
	cl.DropCaches(t.Context())
	if err := walk(); !fault.Is(err, fault.TimedOut) || !strings.Contains(err.Error(), "file") {
		t.Errorf("got %v, want TimedOut of the file", err)
	}
	heal()
}
