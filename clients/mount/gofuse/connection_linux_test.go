package gofuse

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/mount/memfs"
	"cartwheel.dev/clients/mount/mounttest"
	"golang.org/x/sys/unix"
)

// at mounts fs until the test ends.
func at(t *testing.T, fs mount.FileSystem) *Server {
	t.Helper()
	mounttest.NeedFUSE(t)
	m, err := Mount(fs, mount.Options{Point: mounttest.Point(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Unmount(mount.UnmountLimit); err != nil {
			t.Error(err)
		}
	})
	return m
}

// open opens a file without Go's poller: that would ask the mount about it with
// a scheduler's slot held, which the mount in this process may need to answer.
func open(t *testing.T, path string, flags int) int {
	t.Helper()
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o644)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return fd
}

// fill makes a file, a piece at a time.
func fill(path string, data []byte) error {
	fd, err := unix.Open(path, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	for len(data) > 0 && err == nil {
		var n int
		n, err = unix.Write(fd, data)
		data = data[max(n, 0):]
	}
	return errors.Join(err, unix.Close(fd))
}

// waiters is a twin that tells of each lock that is waited for.
type waiters struct {
	*memfs.View
	came chan struct{}
}

func (w waiters) SetLock(ctx context.Context, c mount.Caller, n mount.NodeID, h mount.Handle, l mount.Lock, wait bool) error {
	if wait && l.Type != mount.Unlock {
		w.came <- struct{}{}
	}
	return w.View.SetLock(ctx, c, n, h, l, wait)
}

// locked takes a lock of a file below dir, and lets n others wait for it. The
// first result gives it up; the second returns what the others got.
func locked(t *testing.T, dir string, w waiters, n int) (release func(), got chan error) {
	t.Helper()
	path := filepath.Join(dir, "locked")
	whole := func(fd int, kind int16) error {
		return unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLKW, &unix.Flock_t{Type: kind})
	}
	holder := open(t, path, unix.O_CREAT|unix.O_RDWR)
	if err := whole(holder, unix.F_WRLCK); err != nil {
		t.Fatal(err)
	}
	<-w.came
	got = make(chan error, n)
	for range n {
		fd := open(t, path, unix.O_RDWR)
		go func() {
			err := whole(fd, unix.F_WRLCK)
			_ = unix.Close(fd) // which gives it up
			got <- err
		}()
	}
	for range n {
		<-w.came
	}
	return func() { _ = unix.Close(holder) }, got
}

func TestManyWhoWaitForALockHoldNobodyElseUp(t *testing.T) {
	const many = maxBuffers + 50
	w := waiters{memfs.New(memfs.Options{}).View(), make(chan struct{}, many+1)}
	m := at(t, w)
	release, got := locked(t, m.Point(), w, many)
	for range 3 {
		if err := fill(filepath.Join(m.Point(), "other"), []byte("x")); err != nil {
			t.Error(err)
		}
	}
	release()
	for range many {
		if err := <-got; err != nil {
			t.Error(err)
		}
	}
}

func TestTheEndInterruptsWhoWaits(t *testing.T) {
	w := waiters{memfs.New(memfs.Options{}).View(), make(chan struct{}, 3)}
	m := at(t, w)
	release, got := locked(t, m.Point(), w, 2)
	if err := m.Unmount(time.Millisecond); err != nil {
		t.Errorf("by force: %v", err)
	}
	for range 2 {
		if err := <-got; err == nil {
			t.Error("a lock was granted on a mount that is gone")
		}
	}
	release()
}

func TestFewWorkersStayForMore(t *testing.T) {
	m := at(t, memfs.New(memfs.Options{}).View())
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			for range 20 {
				if err := fill(filepath.Join(m.Point(), string(rune('a'+i%26))), []byte("x")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	c := m.server
	c.mu.Lock()
	defer c.mu.Unlock()
	// One reads, and one may just have answered.
	if c.all-len(c.busy) > keepWorkers+1 || c.idle > c.all {
		t.Errorf("%d workers wait, %d in all, %d at work; want at most %d waiting", c.idle, c.all, len(c.busy), keepWorkers)
	}
}

// pieced answers reads in pieces of a length that divides nothing.
type pieced struct{ *memfs.View }

func (p pieced) ReadPieces(ctx context.Context, c mount.Caller, n mount.NodeID, h mount.Handle, offset int64, buf []byte) ([][]byte, int, error) {
	got, err := p.Read(ctx, c, n, h, offset, buf)
	var out [][]byte
	for rest := bytes.Clone(buf[:got]); len(rest) > 0; {
		k := min(len(rest), 7919)
		out, rest = append(out, rest[:k]), rest[k:]
	}
	clear(buf)
	return out, got, err
}

func TestReadsAreAnsweredFromPieces(t *testing.T) {
	m := at(t, pieced{memfs.New(memfs.Options{}).View()})
	path := filepath.Join(m.Point(), "f")
	want := make([]byte, 3<<20+17)
	for i := range want {
		want[i] = byte(i * 131 >> 3)
	}
	if err := fill(path, want); err != nil {
		t.Fatal(err)
	}
	fd := open(t, path, unix.O_RDONLY|unix.O_DIRECT)
	defer unix.Close(fd)
	got := make([]byte, len(want))
	for off := 0; off < len(got); {
		n, err := unix.Pread(fd, got[off:min(len(got), off+700_000)], int64(off))
		if n <= 0 {
			t.Fatalf("at %d: %v", off, err)
		}
		off += n
	}
	if !bytes.Equal(got, want) {
		t.Error("what was read differs from what was written")
	}
}

func TestBuffersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBuffers(10, 3, 1)
		lent := [][]byte{b.get(), b.get(), b.get()}
		var fourth []byte
		go func() { fourth = b.get() }()
		synctest.Wait()
		if fourth != nil {
			t.Error("a fourth of three was lent")
		}
		b.put(lent[0])
		synctest.Wait()
		if len(fourth) != 10 {
			t.Error("who waited got none when one came back")
		}
		b.put(fourth)
		b.put(lent[1])
		b.put(lent[2])
		if len(b.free) != 1 || b.lent != 0 {
			t.Errorf("%d are kept and %d lent; want 1 and 0", len(b.free), b.lent)
		}
	})
}
