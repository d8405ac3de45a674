package gofuse

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/mount/memfs"
	"cartwheel.dev/clients/mount/mounttest"
	"cartwheel.dev/geo-config/fault"
	"github.com/hanwen/go-fuse/v2/fuse"
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

func (w waiters) SetLock(ctx context.Context, c mount.Caller, n mount.Inode, h mount.Handle, l mount.Lock, wait bool) error {
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

func TestConnection_LockWaitersHoldUpNoOthers(t *testing.T) {
	many := maxBuffers + 50
	if os.Getenv("CARTWHEEL_WHOLE") == "1" {
		many = 4300
	}
	w := waiters{memfs.New(memfs.Options{}).View(), make(chan struct{}, many+1)}
	m := at(t, w)
	release, got := locked(t, m.Point(), w, many)
	for range 3 {
		if err := fill(filepath.Join(m.Point(), "other"), []byte("x")); err != nil {
			t.Error(err)
		}
	}
	// The kernel does not wait for the answers to releases and forgets.
	var waiting, working, all int
	for end := time.Now().Add(10 * time.Second); ; <-time.After(time.Millisecond) {
		m.server.locks.mu.Lock()
		waiting = len(m.server.locks.waiting)
		m.server.locks.mu.Unlock()
		m.server.mu.Lock()
		working, all = len(m.server.busy), m.server.all
		m.server.mu.Unlock()
		if working <= 1 || time.Now().After(end) {
			break
		}
	}
	if waiting != many || working > 1 || all > keepWorkers+4 {
		t.Errorf("%d wait for the lock, and %d of %d workers are at work; want %d, and none for those", waiting, working, all, many)
	}
	release()
	for range many {
		if err := <-got; err != nil {
			t.Error(err)
		}
	}
}

func TestUnmount_InterruptsWaitingRequests(t *testing.T) {
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

func TestConnection_KeepsFewWorkers(t *testing.T) {
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

func (p pieced) ReadPieces(ctx context.Context, c mount.Caller, n mount.Inode, h mount.Handle, offset int64, buf []byte) ([][]byte, int, error) {
	got, err := p.Read(ctx, c, n, h, offset, buf)
	var out [][]byte
	for rest := bytes.Clone(buf[:got]); len(rest) > 0; {
		k := min(len(rest), 7919)
		out, rest = append(out, rest[:k]), rest[k:]
	}
	clear(buf)
	return out, got, err
}

func TestRead_IsAnsweredFromPieces(t *testing.T) {
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

func TestBuffers_AreBounded(t *testing.T) {
	b := newBuffers(100<<10, 2, 1, 256<<10)
	first, second := b.get(), b.get()
	if b.get() != nil {
		t.Error("a third of two was lent")
	}
	b.put(first)
	if len(b.get()) != 100<<10 {
		t.Error("none was lent after one came back")
	}
	var taken [][]byte
	for range 100 {
		n := b.room(1 << 20)
		if n < smallSize {
			t.Fatalf("a write beyond the buffers may keep %d bytes, want some", n)
		}
		taken = append(taken, b.getExact(n))
	}
	if most := 256<<10 + 100*smallSize; b.more > most {
		t.Errorf("100 writes beyond the buffers took %d bytes, want at most %d", b.more, most)
	}
	for _, x := range append(taken, second, first) {
		b.put(x)
	}
	if len(b.free) != 1 || b.lent != 0 || b.more != 0 {
		t.Errorf("%d are kept, %d and %d bytes lent; want 1, 0 and 0", len(b.free), b.lent, b.more)
	}
}

// writeIn is a request to write n bytes.
func writeIn(n int, flags uint32) []byte {
	in := make([]byte, writeData+n)
	binary.NativeEndian.PutUint32(in, uint32(len(in)))
	binary.NativeEndian.PutUint32(in[4:], opWrite)
	binary.NativeEndian.PutUint32(in[writeSizeAt:], uint32(n))
	binary.NativeEndian.PutUint32(in[writeFlagsAt:], flags)
	return in
}

func TestWrite_BeyondTheBuffersIsCutShort(t *testing.T) {
	c := &connection{big: newBuffers(bufferSize, 0, 0, 1<<20), inbox: make([]byte, bufferSize)}
	for _, tt := range []struct {
		name  string
		n     int
		flags uint32
		want  int
	}{
		{"of a program", 1 << 20, 0, 1 << 20 / shareOfExtra},
		{"that is short", 20 << 10, 0, 20 << 10},
		{"of the kernel's own pages", 1 << 20, fuse.WRITE_CACHE, 1 << 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := &worker{}
			in := c.inbox[:copy(c.inbox, writeIn(tt.n, tt.flags))]
			own := c.own(w, in)
			defer c.big.put(own)
			length, size := int(binary.NativeEndian.Uint32(own)), int(binary.NativeEndian.Uint32(own[writeSizeAt:]))
			if len(own) != writeData+tt.want || length != len(own) || size != tt.want {
				t.Errorf("%d bytes of %d are kept, and the request says %d; want %d", len(own)-writeData, tt.n, size, tt.want)
			}
			if &own[0] == &c.inbox[0] {
				t.Error("the request lies where the next one is read")
			}
		})
	}
}

// blocked is a twin whose writes of one file wait until they are interrupted or
// let go.
type blocked struct {
	*memfs.View
	came chan struct{}
	open chan struct{}
	mark byte // with which the data of those that wait begin
}

func (b blocked) Write(ctx context.Context, c mount.Caller, n mount.Inode, h mount.Handle, off int64, data []byte, f mount.WriteFlags) (int, error) {
	if data[0] == b.mark {
		b.came <- struct{}{}
		select {
		case <-b.open:
		case <-ctx.Done():
			return 0, fault.E(fault.Interrupted, "test", "", "")
		}
	}
	return b.View.Write(ctx, c, n, h, off, data, f)
}

func TestConnection_BlockedWritesHoldUpNoOthers(t *testing.T) {
	const many = maxBuffers + 30
	b := blocked{memfs.New(memfs.Options{}).View(), make(chan struct{}, many+2), make(chan struct{}), 'w'}
	m := at(t, b)
	data := bytes.Repeat([]byte{b.mark}, 512<<10)
	written := make(chan error, many)
	for i := range many { // each a file, because the kernel lets one write at a time into a file
		fd := open(t, filepath.Join(m.Point(), fmt.Sprint("blocked", i)), unix.O_CREAT|unix.O_WRONLY)
		go func() {
			n, err := unix.Write(fd, data)
			if err == nil && n != len(data) {
				err = fmt.Errorf("%d bytes of %d", n, len(data))
			}
			written <- errors.Join(err, unix.Close(fd))
		}()
	}
	// And one in a process of its own, which is killed.
	dd := exec.Command("sh", "-c", "head -c 524288 /dev/zero | tr '\\0' w | dd of="+filepath.Join(m.Point(), "killed")+" bs=524288 iflag=fullblock conv=notrunc 2>/dev/null")
	dd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := dd.Start(); err != nil {
		t.Fatal(err)
	}
	for range many + 1 {
		<-b.came
	}
	if err := fill(filepath.Join(m.Point(), "other"), []byte("x")); err != nil {
		t.Error(err)
	}
	if err := syscall.Kill(-dd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	_ = dd.Wait() // it was killed
	close(b.open)
	for range many {
		if err := <-written; err != nil {
			t.Error(err)
		}
	}
}

// closing is a twin whose flushes wait until they are interrupted.
type closing struct {
	*memfs.View
	came chan struct{}
}

func (c closing) Flush(ctx context.Context, _ mount.Caller, _ mount.Inode, _ mount.Handle, _ mount.LockOwner) error {
	c.came <- struct{}{}
	<-ctx.Done()
	return nil
}

func TestFlush_OfAKilledProcessIsInterrupted(t *testing.T) {
	f := closing{memfs.New(memfs.Options{}).View(), make(chan struct{}, 4)}
	m := at(t, f)
	holder := exec.Command("sh", "-c", "exec 3>"+filepath.Join(m.Point(), "f")+"; exec sleep 1000")
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	for { // until it has the file open, and nothing else to close
		name, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", holder.Process.Pid))
		if err == nil && filepath.Base(name) != "dash" && filepath.Base(name) != "bash" && filepath.Base(name) != "sh" {
			break
		}
		runtime.Gosched()
	}
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-f.came
	_ = holder.Wait() // which the close held up
}

func TestAreBystanders_ReadsPendingSignals(t *testing.T) {
	// A thread with a signal pending that it blocks has none that counts.
	for _, tt := range []struct {
		signals, blocked uint64
		want             bool
	}{
		{1 << (unix.SIGCHLD - 1), 0, true},
		{1<<(unix.SIGCHLD-1) | 1<<(unix.SIGINT-1), 0, false},
		{1<<(unix.SIGCHLD-1) | 1<<(unix.SIGINT-1), 1 << (unix.SIGINT - 1), true},
		{0, 0, false},
	} {
		status := fmt.Appendf(nil, "Name:\tx\nSigPnd:\t%016x\nShdPnd:\t%016x\nSigBlk:\t%016x\nSigIgn:\t0\n", tt.signals, 0, tt.blocked)
		if got := areBystanders(status); got != tt.want {
			t.Errorf("pending %x, blocked %x: %v, want %v", tt.signals, tt.blocked, got, tt.want)
		}
	}
}

// stuck is a twin whose reads of files that begin with a mark wait until they
// are let go.
type stuck struct {
	*memfs.View
	came, open chan struct{}
	mark       byte
}

func (s stuck) Read(ctx context.Context, c mount.Caller, n mount.Inode, h mount.Handle, off int64, buf []byte) (int, error) {
	got, err := s.View.Read(ctx, c, n, h, off, buf)
	if err == nil && got > 0 && buf[0] == s.mark {
		s.came <- struct{}{}
		select {
		case <-s.open:
		case <-ctx.Done():
			return 0, fault.E(fault.Interrupted, "test", "", "")
		}
	}
	return got, err
}

// TestConnection_BlockedReadsHoldUpNoOthers has more programs read files of a
// slice that does not answer than the kernel may read ahead at once. To the
// kernel what they wait for is a request of its own, as read-ahead is.
func TestConnection_BlockedReadsHoldUpNoOthers(t *testing.T) {
	const many = 3 * defaultBackground
	s := stuck{memfs.New(memfs.Options{}).View(), make(chan struct{}, 16*many), make(chan struct{}), 'r'}
	m := at(t, s)
	other := filepath.Join(m.Point(), "other")
	data := bytes.Repeat([]byte("other"), 200<<10)
	if err := fill(other, data); err != nil {
		t.Fatal(err)
	}
	read := func(path string, into []byte) error {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		_, err = unix.Read(fd, into)
		return errors.Join(err, unix.Close(fd))
	}
	ended := make(chan error, many)
	for i := range many {
		path := filepath.Join(m.Point(), fmt.Sprint("stuck", i))
		if err := fill(path, bytes.Repeat([]byte{s.mark}, 1<<20)); err != nil {
			t.Fatal(err)
		}
		go func() { ended <- read(path, make([]byte, 256<<10)) }()
	}
	late := time.After(20 * time.Second)
	came := 0
	for ; came < many; came++ {
		select {
		case <-s.came:
			continue
		case <-late:
			t.Errorf("%d of %d reads came", came, many)
		}
		break
	}
	went := make(chan error, 1)
	into := make([]byte, 256<<10)
	go func() { went <- read(other, into) }()
	select {
	case err := <-went:
		if err != nil || !bytes.Equal(into, data[:len(into)]) {
			t.Errorf("the other file: %q, %v", into[:5], err)
		}
	case <-time.After(10 * time.Second):
		t.Error("a read of another file is held up")
	}
	close(s.open)
	for range many {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
