//go:build linux

package cartwheel_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// exclusive is a lock of a whole file, as flock takes it.
func exclusive(owner mount.LockOwner) mount.Lock {
	return mount.Lock{Owner: owner, End: mount.LockEnd, Type: mount.WriteLock, Whole: true}
}

// released is a lock's opposite.
func released(l mount.Lock) mount.Lock {
	l.Type = mount.Unlock
	return l
}

// openIn looks a name up and opens it to read and write.
func openIn(t *testing.T, cl *cartwheel.Client, name string) (mount.Inode, mount.Handle) {
	t.Helper()
	e, err := cl.Lookup(context.Background(), nobody, mount.Root, name)
	if err != nil || e.Node == 0 {
		t.Fatalf("%+v, %v", e, err)
	}
	o, err := cl.Open(context.Background(), nobody, e.Node, mount.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	return e.Node, o.Handle
}

// take takes a lock, once a new active grants any.
func take(t *testing.T, cl *cartwheel.Client, n mount.Inode, h mount.Handle, l mount.Lock) {
	t.Helper()
	if err := cl.SetLock(withTimeout(t), nobody, n, h, l, true); err != nil {
		t.Fatal(err)
	}
}

// soon fails the test unless fn returns before an operation would give up.
func soon(t *testing.T, what string, fn func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- fn() }()
	select {
	case err := <-done:
		return err
	case <-time.After(8 * time.Second):
		t.Fatalf("%s is not answered, long after it was interrupted", what)
		return nil
	}
}

// TestLock_CloseGivesUpAllRangesAtOnce counts what a close with many ranges asks
// the active.
func TestLock_CloseGivesUpAllRangesAtOnce(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Configure: quick})
	cl, rival := clientOf(t, c, ""), clientOf(t, c, "")
	put(t, cl, mount.Root, "f", "x", 0)
	n, h := openIn(t, cl, "f")
	rivals, _ := openIn(t, rival, "f")
	const ranges = 50
	for i := range uint64(ranges) {
		take(t, cl, n, h, mount.Lock{Owner: 7, Start: 10 * i, End: 10*i + 5, Type: mount.WriteLock})
	}
	var answers atomic.Int64
	host := c.Nodes[0].Server().Host()
	host.SetFilter(func(_ string, _ wire.Class, m wire.Method) wire.Verdict {
		if m == method.Lock {
			answers.Add(1)
		}
		return wire.Verdict{}
	})
	defer host.SetFilter(nil)
	if err := cl.Flush(withTimeout(t), nobody, n, h, 7); err != nil {
		t.Fatal(err)
	}
	if got := answers.Load(); got != 1 {
		t.Errorf("%d requests gave up %d ranges of one owner, want 1", got, ranges)
	}
	if err := rival.SetLock(withTimeout(t), nobody, rivals, 0, mount.Lock{Owner: 1, End: mount.LockEnd, Type: mount.WriteLock}, false); err != nil {
		t.Errorf("after the close another client's lock answers %v", err)
	}
	cl.Release(n, h, 7, true)
}

// TestLock_InterruptedCloseGivesItUpLater closes a file while its active is out
// of reach. The close is answered, and the locks go when it is back.
func TestLock_InterruptedCloseGivesItUpLater(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	cl, rival := clientOf(t, c, ""), clientOf(t, c, "")
	put(t, cl, mount.Root, "f", "x", 0)
	n, h := openIn(t, cl, "f")
	rivals, _ := openIn(t, rival, "f")
	for i := range uint64(5) {
		take(t, cl, n, h, mount.Lock{Owner: 7, Start: 10 * i, End: 10*i + 5, Type: mount.WriteLock})
	}
	cl.Lose(method.Lock)
	gone, interrupt := context.WithCancel(context.Background())
	interrupt()
	if err := soon(t, "the close", func() error { return cl.Flush(gone, nobody, n, h, 7) }); err != nil {
		t.Errorf("nothing was written, and the close answers %v", err)
	}
	cl.Lose()
	if err := rival.SetLock(withTimeout(t), nobody, rivals, 0, mount.Lock{Owner: 1, End: mount.LockEnd, Type: mount.WriteLock}, true); err != nil {
		t.Errorf("once the active can be reached another client's lock answers %v", err)
	}
	cl.Release(n, h, 7, true)
}

// TestLock_StaysUntilItsWritesAreCommitted interrupts an unlock behind a write
// that does not get through. No other client may read the old bytes.
func TestLock_StaysUntilItsWritesAreCommitted(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	cl, rival := clientOf(t, c, ""), clientOf(t, c, "")
	put(t, cl, mount.Root, "f", "old", 0)
	n, h := openIn(t, cl, "f")
	rivals, _ := openIn(t, rival, "f")
	take(t, cl, n, h, exclusive(7))
	cl.Lose(method.Operate)
	if _, err := cl.Write(withTimeout(t), nobody, n, h, 0, []byte("new"), 0); err != nil {
		t.Fatal(err)
	}
	gone, interrupt := context.WithCancel(context.Background())
	interrupt()
	if err := soon(t, "the unlock", func() error { return cl.SetLock(gone, nobody, n, h, released(exclusive(7)), false) }); err == nil {
		t.Error("the unlock says that it is done, and the bytes are not committed")
	}
	if err := rival.SetLock(withTimeout(t), nobody, rivals, 0, exclusive(1), false); !fault.Is(err, fault.Again) {
		t.Errorf("another client's lock answers %v, want Again", err)
	}
	cl.Lose()
	if err := cl.SetLock(withTimeout(t), nobody, n, h, released(exclusive(7)), false); err != nil {
		t.Errorf("asked again: %v", err)
	}
	take(t, rival, rivals, 0, exclusive(1))
	if got := get(t, rival, mount.Root, "f"); got != "new" {
		t.Errorf("under the lock the other client reads %q", got)
	}
	cl.Release(n, h, 7, true)
}

// TestLock_CloseGoesOverASlowLine closes a file whose unsent writes take longer
// to send than one operation may. The close goes on while something gets
// through, gives up all ranges with one request, and keeps the locks until the
// writes are committed.
func TestLock_CloseGoesOverASlowLine(t *testing.T) {
	t.Parallel()
	const limit, delay = 8 * time.Second, 3 * time.Second
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	cl, rival := opened(t, c, cartwheel.Options{Site: "a", OpTimeout: limit}), clientOf(t, c, "a")
	defer func() {
		if err := cl.Close(); err != nil {
			t.Error(err)
		}
	}()
	put(t, cl, mount.Root, "f", "old", 0)
	n, h := openIn(t, cl, "f")
	rivals, _ := openIn(t, rival, "f")
	for i := range uint64(5) {
		take(t, cl, n, h, mount.Lock{Owner: 7, Start: 10 * i, End: 10*i + 5, Type: mount.WriteLock})
	}
	locks := cl.Slow(method.Put, delay, method.Lock)
	data := noise(40 << 20)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for off := 0; off < len(data); off += 1 << 20 {
		if _, err := cl.Write(ctx, nobody, n, h, int64(off), data[off:off+1<<20], 0); err != nil {
			t.Fatal(err)
		}
	}
	read := make(chan string, 1)
	go func() {
		if err := rival.SetLock(ctx, nobody, rivals, 0, mount.Lock{Owner: 1, End: mount.LockEnd, Type: mount.WriteLock}, true); err != nil {
			t.Errorf("the other client's lock: %v", err)
		}
		read <- get(t, rival, mount.Root, "f")
	}()
	if err := cl.Flush(ctx, nobody, n, h, 7); err != nil {
		t.Errorf("a close over a slow line: %v", err)
	}
	if got := locks.Load(); got != 1 {
		t.Errorf("%d requests gave up 5 ranges of one owner, want 1", got)
	}
	if got := <-read; got != string(data) {
		t.Errorf("under the lock the other client reads %d bytes, or other ones, want %d", len(got), len(data))
	}
	cl.Release(n, h, 7, true)
}

// lapse cuts a client off until its node has given its locks to another one.
func lapse(t *testing.T, cl, rival *cartwheel.Client, rivals mount.Inode, node ids.Node) {
	t.Helper()
	cl.CutOff(node)
	take(t, rival, rivals, 0, exclusive(1))
}

// TestLock_LostOneFailsItsHolderOnly lapses a session under a lock. The handle
// through which it was taken writes no more, others do.
func TestLock_LostOneFailsItsHolderOnly(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Configure: quick})
	cl, rival := clientOf(t, c, ""), clientOf(t, c, "")
	put(t, cl, mount.Root, "f", "xyz", 0)
	n, holder := openIn(t, cl, "f")
	_, other := openIn(t, cl, "f")
	rivals, _ := openIn(t, rival, "f")
	take(t, cl, n, holder, exclusive(7))
	lapse(t, cl, rival, rivals, c.Nodes[0].ID())
	cl.Lose()
	write := func(h mount.Handle) error {
		_, err := cl.Write(withTimeout(t), nobody, n, h, 0, []byte("a"), 0)
		return err
	}
	servertest.Await(withTimeout(t), t, "the loss to be known", func() error {
		if n := cl.LostLocks(); n != 1 {
			return fmt.Errorf("%d handles have lost one", n)
		}
		return nil
	})
	if err := write(holder); !fault.Is(err, fault.LostLock) {
		t.Errorf("a write of the former holder answers %v, want LostLock", err)
	}
	if err := write(other); err != nil {
		t.Errorf("a write of a process that had no lock: %v", err)
	}
	if err := cl.Flush(withTimeout(t), nobody, n, other, 1); err != nil {
		t.Errorf("its close: %v", err)
	}
	if err := write(holder); !fault.Is(err, fault.LostLock) {
		t.Errorf("the former holder's next write answers %v, want LostLock until it closes", err)
	}
	cl.Release(n, holder, 7, true)
	_, again := openIn(t, cl, "f")
	if err := write(again); err != nil {
		t.Errorf("after the file was opened anew: %v", err)
	}
	cl.Release(n, again, 7, true)
	cl.Release(n, other, 1, true)
}

// TestLock_LostOneCommitsNothing lapses a session while bytes that were written
// under a lock are on their way.
func TestLock_LostOneCommitsNothing(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Configure: quick})
	cl, rival := clientOf(t, c, ""), clientOf(t, c, "")
	put(t, cl, mount.Root, "f", "old", 0)
	n, h := openIn(t, cl, "f")
	rivals, rivalsHandle := openIn(t, rival, "f")
	take(t, cl, n, h, exclusive(7))
	cl.CutOff(c.Nodes[0].ID())
	if _, err := cl.Write(withTimeout(t), nobody, n, h, 0, []byte("mine"), 0); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() { closed <- cl.Flush(context.Background(), nobody, n, h, 7) }()
	take(t, rival, rivals, rivalsHandle, exclusive(1))
	if _, err := rival.Write(withTimeout(t), nobody, rivals, rivalsHandle, 0, []byte("theirs"), 0); err != nil {
		t.Fatal(err)
	}
	if err := rival.SetLock(withTimeout(t), nobody, rivals, rivalsHandle, released(exclusive(1)), false); err != nil {
		t.Fatal(err)
	}
	cl.Lose()
	if err := <-closed; !fault.Is(err, fault.LostLock) {
		t.Errorf("the close answers %v, want LostLock", err)
	}
	cl.Release(n, h, 7, true)
	if got := get(t, rival, mount.Root, "f"); got != "theirs" {
		t.Errorf("the file has %q, want what was written under the lock that was good", got)
	}
}

// TestLock_WaiterAsksAnewAfterALapse cuts off a client that waits for a lock,
// and gives the lock up meanwhile.
func TestLock_WaiterAsksAnewAfterALapse(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Configure: quick})
	holder, waiter := clientOf(t, c, ""), clientOf(t, c, "")
	put(t, holder, mount.Root, "f", "x", 0)
	n, h := openIn(t, holder, "f")
	mine, mineHandle := openIn(t, waiter, "f")
	take(t, holder, n, h, exclusive(7))
	got := make(chan error, 1)
	go func() { got <- waiter.SetLock(withTimeout(t), nobody, mine, mineHandle, exclusive(1), true) }()
	node := c.Nodes[0].Server()
	waits := func(want int) func() error {
		return func() error {
			if _, waiting := node.Locks(); waiting != want {
				return fmt.Errorf("%d wait, want %d", waiting, want)
			}
			return nil
		}
	}
	servertest.Await(withTimeout(t), t, "the waiter", waits(1))
	waiter.Lose(method.KeepAlive) // the connection lives on
	servertest.Await(withTimeout(t), t, "the end of its session", waits(0))
	waiter.Lose()
	servertest.Await(withTimeout(t), t, "the waiter to be back", waits(1))
	if err := holder.SetLock(withTimeout(t), nobody, n, h, released(exclusive(7)), false); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Errorf("the lock is free, and the waiter is answered %v", err)
	}
	holder.Release(n, h, 7, true)
	waiter.Release(mine, mineHandle, 1, true)
}

// TestLock_WaiterAsksNoOtherNode compares a client that waits for a lock with
// one whose operation is not answered. Only that one asks which node is active.
func TestLock_WaiterAsksNoOtherNode(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{})
	waiter, suspicious := clientOf(t, c, ""), clientOf(t, c, "")
	put(t, waiter, mount.Root, "f", "x", 0)
	n, h := openIn(t, waiter, "f")
	take(t, waiter, n, h, exclusive(7))
	openIn(t, suspicious, "f")
	patient, asked := waiter.Count(method.Rows), suspicious.Count(method.Rows, method.Operate)
	ctx, end := context.WithCancel(withTimeout(t))
	var all sync.WaitGroup
	defer func() { end(); all.Wait() }()
	all.Go(func() { _ = waiter.SetLock(ctx, nobody, n, h, exclusive(8), true) })
	all.Go(func() { _, _ = suspicious.Mkdir(ctx, nobody, mount.Root, "d", 0o755) })
	servertest.Await(ctx, t, "the other client to be suspicious", func() error {
		if asked.Load() < 4 {
			return fmt.Errorf("it asked %d times", asked.Load())
		}
		return nil
	})
	if got := patient.Load(); got != 0 {
		t.Errorf("the client that waits for a lock asked %d times who is active", got)
	}
	suspicious.Lose()
}

// TestSignals_EndCallsOnADeadSlice interrupts each kind of call whose active is
// gone.
func TestSignals_EndCallsOnADeadSlice(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	cl := opened(t, c, cartwheel.Options{})
	put(t, cl, mount.Root, "f", string(bytes.Repeat([]byte("x"), 3<<20)), 0)
	put(t, cl, mount.Root, "g", "x", 0)
	n, h := openIn(t, cl, "f")
	g, gh := openIn(t, cl, "g")
	take(t, cl, g, gh, exclusive(7))
	cl.DropCaches(context.Background())
	cl.CutOff(c.Nodes[0].ID())
	for i, full := 0, false; !full; i++ { // until what is dirty takes all the room
		_, err := cl.Write(interrupted(), nobody, n, h, int64(i)<<22, make([]byte, 4<<20), 0)
		full = err != nil
	}
	for what, call := range map[string]func(ctx context.Context) error{
		"lookup": func(ctx context.Context) error { _, err := cl.Lookup(ctx, nobody, mount.Root, "no"); return err },
		"create": func(ctx context.Context) error {
			_, _, err := cl.Create(ctx, nobody, mount.Root, "new", 0o644, mount.OpenWrite)
			return err
		},
		"open": func(ctx context.Context) error { _, err := cl.Open(ctx, nobody, g, mount.OpenRead); return err },
		"truncate": func(ctx context.Context) error {
			_, err := cl.Open(ctx, nobody, n, mount.OpenWrite|mount.OpenTruncate)
			return err
		},
		"read": func(ctx context.Context) error {
			_, err := cl.Read(ctx, nobody, g, gh, 0, make([]byte, 100))
			return err
		},
		"write": func(ctx context.Context) error {
			_, err := cl.Write(ctx, nobody, n, h, 0, make([]byte, 4<<20), 0)
			return err
		},
		"fsync":    func(ctx context.Context) error { return cl.Fsync(ctx, nobody, n, h, false) },
		"close":    func(ctx context.Context) error { return cl.Flush(ctx, nobody, n, h, 1) },
		"lock":     func(ctx context.Context) error { return cl.SetLock(ctx, nobody, n, h, exclusive(8), true) },
		"try lock": func(ctx context.Context) error { return cl.SetLock(ctx, nobody, n, h, exclusive(8), false) },
		"unlock":   func(ctx context.Context) error { return cl.SetLock(ctx, nobody, g, gh, released(exclusive(7)), false) },
		"test lock": func(ctx context.Context) error {
			_, err := cl.GetLock(ctx, nobody, n, h, exclusive(8))
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			if err := soon(t, what, func() error { return call(interrupted()) }); err == nil {
				t.Errorf("it says that it is done")
			}
		})
	}
	cl.Lose()
	cl.Release(n, h, 1, true)
	cl.Release(g, gh, 7, true)
	_ = cl.Close() // the slice was dead for what was written
}

// interrupted is the context of a request that got a signal.
func interrupted() context.Context {
	ctx, interrupt := context.WithCancel(context.Background())
	interrupt()
	return ctx
}

// TestFlush_GoesOverASlowLine does what waits until a file's unsent writes are
// committed, where these take longer to send than one operation may.
func TestFlush_GoesOverASlowLine(t *testing.T) {
	const limit, delay = 8 * time.Second, 3 * time.Second // a busy machine may add the difference to each piece
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	for what, do := range map[string]func(cl *cartwheel.Client, n mount.Inode, h mount.Handle) error{
		"a cut": func(cl *cartwheel.Client, n mount.Inode, h mount.Handle) error {
			_, err := cl.SetAttr(ctx, nobody, n, mount.SetAttr{Valid: mount.SetSize, Size: 1})
			return err
		},
		"an open that cuts": func(cl *cartwheel.Client, n mount.Inode, _ mount.Handle) error {
			o, err := cl.Open(ctx, nobody, n, mount.OpenWrite|mount.OpenTruncate)
			if err == nil {
				cl.Release(n, o.Handle, 1, false)
			}
			return err
		},
		"an unlock": func(cl *cartwheel.Client, n mount.Inode, h mount.Handle) error {
			return cl.SetLock(ctx, nobody, n, h, mount.Lock{Owner: 7, End: mount.LockEnd, Type: mount.Unlock}, false)
		},
		"a copy": func(cl *cartwheel.Client, n mount.Inode, h mount.Handle) error {
			_, err := cl.CopyRange(ctx, nobody, n, h, 0, n, h, 40<<20, 1<<20)
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
			cl := opened(t, c, cartwheel.Options{Site: "a", OpTimeout: limit})
			put(t, cl, mount.Root, "f", "old", 0)
			n, h := openIn(t, cl, "f")
			take(t, cl, n, h, exclusive(7))
			cl.Slow(method.Put, delay, method.Lock)
			data := noise(40 << 20)
			for off := 0; off < len(data); off += 1 << 20 {
				if _, err := cl.Write(ctx, nobody, n, h, int64(off), data[off:off+1<<20], 0); err != nil {
					t.Fatal(err)
				}
			}
			began := time.Now()
			if err := do(cl, n, h); err != nil {
				t.Errorf("over a slow line: %v", err)
			}
			t.Logf("took %v, an operation may take %v", time.Since(began), limit)
			cl.Release(n, h, 7, true)
			if err := cl.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLock_OneBeingGivenUpIsNotSeen asks what is in a lock's way. The kernel
// tells that the lock's holder here has closed the file when the answer is on
// its way.
func TestLock_OneBeingGivenUpIsNotSeen(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	cl := clientOf(t, c, "")
	put(t, cl, mount.Root, "f", "x", 0)
	n, h := openIn(t, cl, "f")
	take(t, cl, n, h, exclusive(7))
	if seen, err := cl.GetLock(withTimeout(t), nobody, n, h, exclusive(8)); err != nil || seen.Owner != 7 || seen.Type != mount.WriteLock {
		t.Errorf("in its way is %+v, %v, want the lock that is held", seen, err)
	}
	var asked atomic.Bool
	closed := make(chan struct{})
	c.Nodes[0].Server().Host().SetFilter(func(_ string, _ wire.Class, m wire.Method) wire.Verdict {
		if m != method.Lock {
			return wire.Verdict{}
		}
		if asked.CompareAndSwap(false, true) {
			go func() {
				cl.Release(n, h, 7, true)
				close(closed)
			}()
			for ended := false; !ended && !cl.Releasing(n); {
				select {
				case <-closed:
					ended = true
				default:
					runtime.Gosched()
				}
			}
			return wire.Verdict{}
		}
		return wire.Verdict{Delay: 300 * time.Millisecond} // it is being given up for so long
	})
	seen, err := cl.GetLock(withTimeout(t), nobody, n, h, exclusive(8))
	if err != nil || seen.Type != mount.Unlock {
		t.Errorf("in its way is %+v, %v, want nothing", seen, err)
	}
	<-closed
}
