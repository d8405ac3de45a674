//go:build linux

package cartwheel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

var nobody = mount.Caller{}

// put makes a file with content, as a kernel's requests would.
func put(t *testing.T, cl *cartwheel.Client, dir mount.Inode, name, content string, flags mount.OpenFlags) mount.Entry {
	t.Helper()
	ctx := context.Background()
	e, o, err := cl.Create(ctx, nobody, dir, name, 0o644, mount.OpenWrite|flags)
	if err == nil {
		var more mount.WriteFlags
		if flags&mount.OpenAppend != 0 {
			more = mount.WriteAppend
		}
		_, err = cl.Write(ctx, nobody, e.Node, o.Handle, 0, []byte(content), more)
	}
	if err == nil {
		err = cl.Flush(ctx, nobody, e.Node, o.Handle, 1)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	cl.Release(e.Node, o.Handle, 1, false)
	return e
}

// get reads a whole file.
func get(t *testing.T, cl *cartwheel.Client, dir mount.Inode, name string) string {
	t.Helper()
	text, err := textOf(cl, dir, name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// textOf reads a whole file, which others may remove meanwhile.
func textOf(cl *cartwheel.Client, dir mount.Inode, name string) (string, error) {
	ctx := context.Background()
	e, err := cl.Lookup(ctx, nobody, dir, name)
	if err != nil || e.Node == 0 {
		return "", fmt.Errorf("looking up %s: %+v, %w", name, e, err)
	}
	o, err := cl.Open(ctx, nobody, e.Node, mount.OpenRead)
	if err != nil {
		return "", fmt.Errorf("opening %s: %w", name, err)
	}
	defer cl.Release(e.Node, o.Handle, 1, false)
	buf := make([]byte, e.Attr.Size+1)
	n, err := cl.Read(ctx, nobody, e.Node, o.Handle, 0, buf)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", name, err)
	}
	return string(buf[:n]), nil
}

// TestOperation_LostAnswerDoesNothingTwice loses answers of operations. What was
// done is not done again, and its first result comes.
func TestOperation_LostAnswerDoesNothingTwice(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	cl := clientOf(t, c, "a")
	put(t, cl, mount.Root, "warm", "x", 0)
	var seen, lost atomic.Int64
	c.Nodes[0].Server().Host().SetFilter(func(_ string, _ wire.Class, m wire.Method) wire.Verdict {
		if m == method.Operate && seen.Add(1)%3 == 1 && lost.Load() < 2 {
			lost.Add(1)
			return wire.Verdict{Drop: true}
		}
		return wire.Verdict{}
	})
	put(t, cl, mount.Root, "log", "one ", mount.OpenExclusive)
	put(t, cl, mount.Root, "log", "two ", mount.OpenAppend)
	put(t, cl, mount.Root, "log", "three", mount.OpenAppend)
	c.Nodes[0].Server().Host().SetFilter(nil)
	if lost.Load() != 2 {
		t.Fatalf("%d answers were lost, want 2", lost.Load())
	}
	cl.DropCaches(context.Background())
	if got := get(t, cl, mount.Root, "log"); got != "one two three" {
		t.Errorf("got %q, want each record once", got)
	}
}

// TestOperation_IdleClientRegistersAnew lets a client's registration expire
// while others work. What it does next, all at once, succeeds, and is done once.
func TestOperation_IdleClientRegistersAnew(t *testing.T) {
	t.Parallel()
	const life = 2 * time.Second // the load of a busy machine must not outlast it
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Configure: func(_ int, conf *server.Config) { conf.RegistrationLife = life }})
	cl, other := clientOf(t, c, "a"), clientOf(t, c, "a")
	put(t, cl, mount.Root, "log", "start ", 0)
	for began := time.Now(); time.Since(began) < life+life/2; {
		put(t, other, mount.Root, "busy", "x", 0)
	}
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() { put(t, cl, mount.Root, fmt.Sprint("f", i), fmt.Sprint(i), mount.OpenExclusive) })
	}
	put(t, cl, mount.Root, "log", "end", mount.OpenAppend)
	group.Wait()
	if got := get(t, other, mount.Root, "log"); got != "start end" {
		t.Errorf("got %q, want each record once", got)
	}
	for i := range 8 {
		if got := get(t, other, mount.Root, fmt.Sprint("f", i)); got != fmt.Sprint(i) {
			t.Errorf("f%d holds %q", i, got)
		}
	}
}

// TestTakeover_SuccessorServes kills the node that acts for the root while files
// are made. Every one is there, with its content, and no operation waited for
// long.
func TestTakeover_SuccessorServes(t *testing.T) {
	const lease = time.Second
	c := servertest.Start(t, servertest.Options{Configure: func(_ int, conf *server.Config) {
		conf.Lease, conf.Session = lease, lease
	}})
	active := c.Active(ids.RootSlice)
	site := []string{"a", "b", "c"}[(active.Index+1)%3]
	cl := clientOf(t, c, site)
	reader := clientOf(t, c, []string{"a", "b", "c"}[(active.Index+2)%3])
	var longest time.Duration
	const files = 60
	for i := range files {
		if i == files/3 {
			active.Kill()
		}
		began := time.Now()
		put(t, cl, mount.Root, fmt.Sprint("f", i), strings.Repeat(fmt.Sprint(i, " "), 100*i), mount.OpenExclusive)
		longest = max(longest, time.Since(began))
	}
	if limit := lease*12/10 + 3*time.Second; longest > limit {
		t.Errorf("the longest pause was %v, want below %v", longest, limit)
	}
	for i := range files {
		if got := get(t, reader, mount.Root, fmt.Sprint("f", i)); got != strings.Repeat(fmt.Sprint(i, " "), 100*i) {
			t.Errorf("f%d has %d bytes, which are not what was written", i, len(got))
		}
	}
}

func xattr(t *testing.T, cl *cartwheel.Client, node mount.Inode, name string) string {
	t.Helper()
	buf := make([]byte, 1<<16)
	n, err := cl.GetXattr(context.Background(), nobody, node, name, buf)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return string(buf[:n])
}

// TestCues_PlaceObjects makes a file under cues: it goes where they say, has one
// node by either path, and says so.
func TestCues_PlaceObjects(t *testing.T) {
	c := servertest.Start(t, servertest.Options{})
	cl := clientOf(t, c, "a")
	ctx := context.Background()
	site, err := cl.Lookup(ctx, nobody, mount.Root, ".Site=b")
	if err != nil {
		t.Fatal(err)
	}
	both, err := cl.Lookup(ctx, nobody, site.Node, ".RepLevel=2")
	if err != nil {
		t.Fatal(err)
	}
	if root, _ := cl.GetAttr(ctx, nobody, mount.Root, 0); both.Attr.Ino != root.Attr.Ino || both.Node == mount.Root || both.Node == site.Node {
		t.Errorf("the cues' directory is node %d, inode %d; want a node of its own with the root's inode %d", both.Node, both.Attr.Ino, root.Attr.Ino)
	}
	made := put(t, cl, both.Node, "f", "far away", 0)
	direct, err := cl.Lookup(ctx, nobody, mount.Root, "f")
	if err != nil || direct.Node != made.Node {
		t.Errorf("without cues it is node %d (%v), want %d", direct.Node, err, made.Node)
	}
	var w status.Where
	if err := json.Unmarshal([]byte(xattr(t, cl, made.Node, "user.cartwheel.where")), &w); err != nil {
		t.Fatal(err)
	}
	if w.Active.Site != "b" || len(w.Others) != 1 || w.Others[0].Site == "b" || w.Read == "" || w.Why == "" {
		t.Errorf("it is at %+v with %+v, read from %q because %q; want b and one elsewhere", w.Active, w.Others, w.Read, w.Why)
	}
	if got := xattr(t, cl, made.Node, "user.cartwheel.cues"); got != ".Site=b/.RepLevel=2" {
		t.Errorf("its cues are %q", got)
	}
	// Directories below inherit, also by their plain path.
	d, err := cl.Mkdir(ctx, nobody, both.Node, "d", 0o755)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := cl.Lookup(ctx, nobody, mount.Root, "d")
	if err != nil || plain.Node == d.Node || plain.Attr.Ino != d.Attr.Ino {
		t.Errorf("the directory is node %d below cues and %d without (%v), want two nodes of one inode", d.Node, plain.Node, err)
	}
	put(t, cl, plain.Node, "g", "inherits", 0)
	if e, err := cl.Lookup(ctx, nobody, plain.Node, "g"); err != nil || xattr(t, cl, e.Node, "user.cartwheel.cues") != ".Site=b/.RepLevel=2" {
		t.Errorf("what is made below does not inherit: %v", err)
	}
}

func TestCues_RefuseWhatCannotBeHonoured(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	cl := clientOf(t, c, "a")
	ctx := context.Background()
	for name, want := range map[string]fault.Kind{
		".RepLevel=many": fault.Invalid, ".Site=nowhere": fault.Invalid, ".MaxTime=0": fault.Invalid, ".Snapshot=-1h": fault.NotSupported,
	} {
		if _, err := cl.Lookup(ctx, nobody, mount.Root, name); !fault.Is(err, want) {
			t.Errorf("%s answers %v, want %v", name, err, want)
		}
	}
	if _, err := cl.Mkdir(ctx, nobody, mount.Root, ".Site=a", 0o755); !fault.Is(err, fault.Exists) {
		t.Errorf("making a cue answers %v, want Exists", err)
	}
	if e, err := cl.Lookup(ctx, nobody, mount.Root, ".Sites"); err != nil || e.Node != 0 {
		t.Errorf("a dot-name that is no cue: %+v, %v", e, err)
	}
}

// TestLease_WarmAnswersCostNoRoundTrip counts requests. What is under a lease is
// answered here.
func TestLease_WarmAnswersCostNoRoundTrip(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	cl := clientOf(t, c, "a")
	ctx := context.Background()
	d, err := cl.Mkdir(ctx, nobody, mount.Root, "d", 0o755)
	if err != nil {
		t.Fatal(err)
	}
	content := string(bytes.Repeat([]byte("warm "), 3000))
	put(t, cl, d.Node, "f", content, 0)
	get(t, cl, d.Node, "f")
	asked := counted(c.Nodes[0])
	for range 10 {
		get(t, cl, d.Node, "f")
		if e, err := cl.Lookup(ctx, nobody, d.Node, "none"); err != nil || e.Node != 0 {
			t.Fatalf("%+v, %v", e, err)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("%d requests were made for what is known, want none", n)
	}
	put(t, cl, d.Node, "g", "new", 0)
	if n := asked.Load(); n != 1 {
		t.Errorf("a new file took %d requests, want one with name and content", n)
	}
}

// quick shortens leases and sessions.
func quick(_ int, c *server.Config) { c.Lease, c.Session = time.Second, time.Second }

// TestLease_CutOffClientServesNothingOld cuts off a client's keep-alives and
// revocations. A writer elsewhere waits for its session at most, and what it
// cached is served no longer than that.
func TestLease_CutOffClientServesNothingOld(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Configure: quick})
	a := clientOf(t, c, "a")
	put(t, a, mount.Root, "f", "old", 0)
	host := c.Nodes[0].Server().Host()
	var cut atomic.Bool
	var others atomic.Pointer[string]
	host.SetFilter(func(peer string, class wire.Class, _ wire.Method) wire.Verdict {
		if p := others.Load(); p == nil && !cut.Load() {
			others.Store(&peer) // a's, which is the only one yet
		} else if cut.Load() && class == wire.Beacon && peer != *others.Load() {
			return wire.Verdict{Drop: true}
		}
		return wire.Verdict{}
	})
	put(t, a, mount.Root, "other", "x", 0)
	b := clientOf(t, c, "a")
	if got := get(t, b, mount.Root, "f"); got != "old" {
		t.Fatalf("got %q", got)
	}
	cut.Store(true)
	began := time.Now()
	put(t, a, mount.Root, "f", "new", mount.OpenTruncate)
	if d := time.Since(began); d > 3*time.Second {
		t.Errorf("the writer waited %v for a client that is cut off, want its session of 1 s at most", d)
	}
	if got := get(t, b, mount.Root, "f"); got != "new" {
		t.Errorf("after the write was acknowledged the other client reads %q", got)
	}
	host.SetFilter(nil)
}

// TestLock_OutlivesATakeover kills the node that keeps a lock. Its successor
// gives it to no other client.
func TestLock_OutlivesATakeover(t *testing.T) {
	c := servertest.Start(t, servertest.Options{}) // its sessions outlive the stalls of a busy machine
	active := c.Active(ids.RootSlice)
	holder, rival := clientOf(t, c, ""), clientOf(t, c, "") // of no site: all goes to the root's slice
	ctx := context.Background()
	made := put(t, holder, mount.Root, "f", "x", 0)
	if e, err := rival.Lookup(ctx, nobody, mount.Root, "f"); err != nil || e.Node != made.Node {
		t.Fatalf("%+v, %v", e, err)
	}
	lock := mount.Lock{Owner: 7, End: mount.LockEnd, Type: mount.WriteLock, Whole: true}
	o, err := holder.Open(ctx, nobody, made.Node, mount.OpenReadWrite)
	if err == nil {
		err = holder.SetLock(ctx, nobody, made.Node, o.Handle, lock, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	active.Kill()
	// Whoever asks first after the takeover must not get it.
	if err := rival.SetLock(ctx, nobody, made.Node, 0, lock, false); !fault.Is(err, fault.Again) {
		t.Errorf("another client's lock answers %v, want Again", err)
	}
	servertest.Await(withTimeout(t), t, "the claims are over", func() error {
		found, err := rival.GetLock(ctx, nobody, made.Node, 0, lock)
		if err == nil && found.Type != mount.WriteLock {
			err = fmt.Errorf("nobody holds it: %+v", found)
		}
		return err
	})
	if _, err := holder.Write(ctx, nobody, made.Node, o.Handle, 0, []byte("still mine"), 0); err != nil {
		t.Errorf("the holder's write fails: %v", err)
	}
	holder.Release(made.Node, o.Handle, 7, true)
	servertest.Await(withTimeout(t), t, "the lock is free", func() error {
		return rival.SetLock(ctx, nobody, made.Node, 0, lock, false)
	})
	if got := get(t, rival, mount.Root, "f"); got != "still mine" {
		t.Errorf("under the lock the other client reads %q", got)
	}
}

func withTimeout(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	t.Cleanup(cancel)
	return ctx
}
