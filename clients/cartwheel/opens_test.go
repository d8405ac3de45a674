//go:build linux

package cartwheel_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/mount/mounttest"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
	"golang.org/x/sys/unix"
)

// slowAnswer is how late the attributes come that an open asks for. What is to
// happen meanwhile takes milliseconds.
const slowAnswer = time.Second

// late has the active of the root slice answer one call of a method late, and
// calls meanwhile while that answer is on its way.
func late(c *servertest.Cluster, which wire.Method, call, meanwhile func()) {
	host := c.Active(ids.RootSlice).Server().Host()
	asked := make(chan struct{})
	var once sync.Once
	host.SetFilter(func(_ string, _ wire.Class, m wire.Method) (v wire.Verdict) {
		if m == which {
			once.Do(func() {
				v.Delay = slowAnswer
				close(asked)
			})
		}
		return v
	})
	defer host.SetFilter(nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		call()
	}()
	<-asked
	meanwhile()
	<-done
}

// slowly opens a file of the root slice through cl, has its active's answer
// come late, and calls meanwhile while the answer is on its way.
func slowly(t *testing.T, c *servertest.Cluster, cl *cartwheel.Client, e mount.Entry, flags mount.OpenFlags, meanwhile func()) mount.Opened {
	t.Helper()
	var o mount.Opened
	var err error
	late(c, method.GetAttr, func() { o, err = cl.Open(context.Background(), nobody, e.Node, flags) }, meanwhile)
	if err != nil {
		t.Fatalf("opening: %v", err)
	}
	return o
}

// contents reads what a handle shows.
func contents(t *testing.T, cl *cartwheel.Client, e mount.Entry, h mount.Handle) string {
	t.Helper()
	buf := make([]byte, 4096)
	n, err := cl.Read(context.Background(), nobody, e.Node, h, 0, buf)
	if err != nil {
		t.Errorf("reading: %v", err)
	}
	return string(buf[:n])
}

// TestLock_ShowsWhatWasWrittenBeforeIt writes a file elsewhere while it is being
// opened, and asks for its attributes before a lock is taken.
func TestLock_ShowsWhatWasWrittenBeforeIt(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	cl, other := clientOf(t, c, "a"), clientOf(t, c, "a")
	put(t, other, mount.Root, "f", "old", 0)
	e := found(t, cl, "f")
	put(t, other, mount.Root, "f", "older", mount.OpenTruncate) // takes the lease of the lookup
	o := slowly(t, c, cl, e, mount.OpenReadWrite, func() { put(t, other, mount.Root, "f", "new", mount.OpenTruncate) })
	defer cl.Release(e.Node, o.Handle, 1, true)
	if _, err := cl.GetAttr(t.Context(), nobody, e.Node, o.Handle); err != nil {
		t.Fatal(err)
	}
	if err := cl.SetLock(t.Context(), nobody, e.Node, o.Handle, mount.Lock{Owner: 1, Type: mount.WriteLock, Whole: true}, true); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, cl, e, o.Handle); got != "new" {
		t.Errorf("under the lock %q is read, want what was written before it was granted", got)
	}
}

// TestOpen_SizeAndBytesAreOfOneVersion writes a file elsewhere while it is being
// opened. The size that was shown and the bytes that are read belong to one
// version.
func TestOpen_SizeAndBytesAreOfOneVersion(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	cl, other := clientOf(t, c, "a"), clientOf(t, c, "a")
	put(t, other, mount.Root, "f", "old", 0)
	e := found(t, cl, "f")
	put(t, other, mount.Root, "f", "older", mount.OpenTruncate)
	o := slowly(t, c, cl, e, mount.OpenRead, func() { put(t, other, mount.Root, "f", "the new", mount.OpenTruncate) })
	defer cl.Release(e.Node, o.Handle, 1, false)
	a, err := cl.GetAttr(t.Context(), nobody, e.Node, o.Handle)
	if got := contents(t, cl, e, o.Handle); err != nil || uint64(len(got)) != a.Attr.Size {
		t.Errorf("%q is read where a size of %d was told, %v", got, a.Attr.Size, err)
	}
}

// replace puts a file with content in the place of another one, as editors do.
func replace(t *testing.T, cl *cartwheel.Client, name, content string) {
	t.Helper()
	put(t, cl, mount.Root, name+".new", content, mount.OpenTruncate)
	if err := cl.Rename(context.Background(), nobody, mount.Root, name+".new", mount.Root, name, 0); err != nil {
		t.Error(err)
	}
}

// reaped waits until no active has an object any more that has no name.
func reaped(t *testing.T, cl *cartwheel.Client, e mount.Entry) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	servertest.Await(ctx, t, "the object to be removed", func() error {
		_, err := cl.GetAttr(ctx, nobody, e.Node, 0)
		if fault.Is(err, fault.Stale) {
			return nil
		}
		return fmt.Errorf("it is there, %w", err)
	})
}

// TestOpen_FileRemovedMeanwhileStaysReadable removes the last name of a file
// elsewhere, in the ways there are, at the moment in which it is opened.
func TestOpen_FileRemovedMeanwhileStaysReadable(t *testing.T) {
	t.Parallel()
	for what, remove := range map[string]func(*testing.T, *cartwheel.Client){
		"unlinked": func(t *testing.T, other *cartwheel.Client) {
			if err := other.Unlink(context.Background(), nobody, mount.Root, "f"); err != nil {
				t.Error(err)
			}
		},
		"replaced": func(t *testing.T, other *cartwheel.Client) { replace(t, other, "f", "new") },
	} {
		t.Run(what, func(t *testing.T) {
			c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
			cl, other := clientOf(t, c, "a"), clientOf(t, c, "a")
			put(t, other, mount.Root, "f", "old", 0)
			e := found(t, cl, "f")
			put(t, other, mount.Root, "f", "older", mount.OpenTruncate)
			o := slowly(t, c, cl, e, mount.OpenRead, func() { remove(t, other) })
			if got := contents(t, cl, e, o.Handle); got != "older" {
				t.Errorf("%q is read of the file that is open", got)
			}
			if _, err := cl.GetAttr(t.Context(), nobody, e.Node, o.Handle); err != nil {
				t.Errorf("the attributes of the file that is open: %v", err)
			}
			cl.Release(e.Node, o.Handle, 1, false)
			reaped(t, other, e)
		})
	}
}

// openedOrStale opens a file that holds "old", and gives the open half of
// slowAnswer: one that asks nobody, or that nothing holds up, is over by then. What
// it returns waits for the open, and checks that it was refused, so that the kernel
// looks the name up again, or that the file can be read and closed.
func openedOrStale(t *testing.T, cl *cartwheel.Client, e mount.Entry) (check func()) {
	t.Helper()
	var o mount.Opened
	var err error
	opened := make(chan struct{})
	go func() {
		defer close(opened)
		o, err = cl.Open(context.Background(), nobody, e.Node, mount.OpenRead)
	}()
	pass := time.NewTimer(slowAnswer / 2)
	defer pass.Stop()
	select {
	case <-opened:
	case <-pass.C:
	}
	return func() {
		<-opened
		switch {
		case fault.Is(err, fault.Stale):
			return
		case err != nil:
			t.Errorf("opening: %v", err)
			return
		}
		if got := contents(t, cl, e, o.Handle); got != "old" {
			t.Errorf("%q is read of the file that is open", got)
		}
		if _, err := cl.GetAttr(context.Background(), nobody, e.Node, o.Handle); err != nil {
			t.Errorf("the attributes of the file that is open: %v", err)
		}
		cl.Release(e.Node, o.Handle, 1, false)
	}
}

// TestOpen_BesideItsOwnClientsRemoval opens a file whose
// attributes are known while a removal of the same client is under way: the open
// is refused, and the kernel looks the name up again, or the file stays.
func TestOpen_BesideItsOwnClientsRemoval(t *testing.T) {
	t.Parallel()
	for what, remove := range map[string]func(*cartwheel.Client) error{
		"unlinked": func(cl *cartwheel.Client) error {
			return cl.Unlink(context.Background(), nobody, mount.Root, "f")
		},
		"replaced": func(cl *cartwheel.Client) error {
			return cl.Rename(context.Background(), nobody, mount.Root, "f.new", mount.Root, "f", 0)
		},
	} {
		t.Run(what, func(t *testing.T) {
			c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
			cl := clientOf(t, c, "a")
			put(t, cl, mount.Root, "f", "old", 0)
			put(t, cl, mount.Root, "f.new", "new", 0)
			e := found(t, cl, "f")
			var removing error
			opened := make(chan func(), 1)
			late(c, method.Operate, func() { removing = remove(cl) }, func() { opened <- openedOrStale(t, cl, e) })
			if removing != nil {
				t.Errorf("removing: %v", removing)
			}
			(<-opened)()
			reaped(t, cl, e)
		})
	}
}

// TestOpen_BesideAChangeByAnother looks a file up and opens it while another
// client's change waits for a third, so that no lease on it is given: when the
// change removes the file, and when the file is removed behind it.
func TestOpen_BesideAChangeByAnother(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]struct {
		under, behind func(*cartwheel.Client) error
	}{
		"removed": {func(cl *cartwheel.Client) error {
			return cl.Unlink(context.Background(), nobody, mount.Root, "f")
		}, func(*cartwheel.Client) error { return nil }},
		"moved": {func(cl *cartwheel.Client) error {
			return cl.Rename(context.Background(), nobody, mount.Root, "f", mount.Root, "moved", 0)
		}, func(cl *cartwheel.Client) error {
			return cl.Unlink(context.Background(), nobody, mount.Root, "moved")
		}},
	} {
		t.Run(what, func(t *testing.T) {
			c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
			cl, other, third := clientOf(t, c, "a"), clientOf(t, c, "a"), clientOf(t, c, "a")
			put(t, other, mount.Root, "f", "old", 0)
			put(t, other, mount.Root, "g", "", 0)
			found(t, third, "g") // not f, which it would hold for an open
			var e mount.Entry
			var under error
			var check func()
			late(c, method.Revoke, func() { under = change.under(other) }, func() {
				e = found(t, cl, "f")
				check = openedOrStale(t, cl, e)
			})
			if err := errors.Join(under, change.behind(other)); err != nil {
				t.Fatal(err)
			}
			check()
			reaped(t, other, e)
		})
	}
}

// TestCreate_BesideARemovalByAnother creates a file that is there, or opens it,
// while another client's removal of it waits for a third.
func TestCreate_BesideARemovalByAnother(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	cl, other, third := clientOf(t, c, "a"), clientOf(t, c, "a"), clientOf(t, c, "a")
	put(t, other, mount.Root, "f", "old", 0)
	put(t, other, mount.Root, "g", "", 0)
	found(t, third, "g") // not f, which it would hold for an open
	var removing, creating error
	var e mount.Entry
	var o mount.Opened
	created := make(chan struct{})
	late(c, method.Revoke, func() { removing = other.Unlink(context.Background(), nobody, mount.Root, "f") }, func() {
		go func() {
			defer close(created)
			e, o, creating = cl.Create(context.Background(), nobody, mount.Root, "f", 0o644, mount.OpenReadWrite)
		}()
		pass := time.NewTimer(slowAnswer / 2)
		defer pass.Stop()
		select {
		case <-created:
		case <-pass.C:
		}
	})
	<-created
	if removing != nil || creating != nil {
		t.Fatalf("removing: %v, creating: %v", removing, creating)
	}
	if got := contents(t, cl, e, o.Handle); got != "" && got != "old" {
		t.Errorf("%q is read of the file that is open", got)
	}
	if _, err := cl.GetAttr(t.Context(), nobody, e.Node, o.Handle); err != nil {
		t.Errorf("the attributes of the file that is open: %v", err)
	}
	cl.Release(e.Node, o.Handle, 1, false)
}

// TestOpen_FindsAFileRemovedAfterItsLookup removes the last name of a file
// elsewhere between its lookup and its open, whatever lease the lookup had. If
// it is not opened after all, it goes in the end.
func TestOpen_FindsAFileRemovedAfterItsLookup(t *testing.T) {
	t.Parallel()
	for _, listed := range []bool{false, true} {
		for _, opens := range []bool{false, true} {
			t.Run(fmt.Sprintf("listed before %v, opened %v", listed, opens), func(t *testing.T) {
				t.Parallel()
				c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
				cl, other := clientOf(t, c, "a"), clientOf(t, c, "a")
				put(t, other, mount.Root, "f", "old", 0)
				if listed { // then the lookup has no lease on the file itself
					if _, err := list(cl, mount.Root); err != nil {
						t.Fatal(err)
					}
				}
				e := found(t, cl, "f")
				replace(t, other, "f", "new")
				if opens {
					o, err := cl.Open(t.Context(), nobody, e.Node, mount.OpenRead)
					if err != nil {
						t.Fatal(err)
					}
					if got := contents(t, cl, e, o.Handle); got != "old" {
						t.Errorf("%q is read", got)
					}
					cl.Release(e.Node, o.Handle, 1, false)
				}
				reaped(t, other, e)
			})
		}
	}
}

// whole reads a file as programs do, and returns an error unless it is one of
// those that were put in its place, all of it.
func whole(path string, size int) error {
	fd, err := openFile(path, unix.O_RDONLY)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	got, reading := readAll(fd)
	err = errors.Join(err, reading, unix.Close(fd))
	if err != nil {
		return err
	}
	if len(got) != size || st.Size != int64(size) || !bytes.Equal(got, bytes.Repeat(got[:1], size)) {
		return fmt.Errorf("%d bytes, of %d, where %d are in each", len(got), st.Size, size)
	}
	return nil
}

// TestOpen_ReadersOfAReplacedFileSeeOneVersion replaces a file by rename on one
// mount while programs on two others, and on that one, open and read it.
func TestOpen_ReadersOfAReplacedFileSeeOneVersion(t *testing.T) {
	mounttest.NeedFUSE(t)
	const size, times = 10_000, 60
	c := servertest.Start(t, servertest.Options{})
	points := []string{mounted(t, clientOf(t, c, "a")), mounted(t, clientOf(t, c, "b")), mounted(t, clientOf(t, c, "c"))}
	swap := func(n int) error {
		from, to := filepath.Join(points[0], "f.new"), filepath.Join(points[0], "f")
		fd, err := openFile(from, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC)
		if err != nil {
			return err
		}
		_, err = again(func() (int, error) { return unix.Pwrite(fd, bytes.Repeat([]byte{byte('a' + n%26)}, size), 0) })
		if err = errors.Join(err, unix.Close(fd)); err != nil {
			return err
		}
		_, err = again(func() (int, error) { return 0, unix.Rename(from, to) })
		return err
	}
	if err := swap(0); err != nil {
		t.Fatal(err)
	}
	var over atomic.Bool
	var reads atomic.Int64
	var all sync.WaitGroup
	for i, point := range points {
		all.Go(func() {
			for !over.Load() {
				if err := whole(filepath.Join(point, "f"), size); err != nil {
					t.Errorf("mount %d, after %d reads: %v", i, reads.Load(), err)
					return
				}
				reads.Add(1)
			}
		})
	}
	for n := range times {
		if err := swap(n); err != nil {
			t.Error(err)
		}
	}
	over.Store(true)
	all.Wait()
	if reads.Load() < times {
		t.Errorf("%d reads in %d renames: nothing was raced", reads.Load(), times)
	}
}
