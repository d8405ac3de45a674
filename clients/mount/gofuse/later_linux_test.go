package gofuse

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/mount/memfs"
	"golang.org/x/sys/unix"
)

// starting is a twin that begins reads, and answers as the test wants.
type starting struct {
	*memfs.View
	start func(data []byte, then func([]byte, bool)) bool
	// read sees the context of what is read after all.
	read func(ctx context.Context)
}

func (s starting) StartRead(c mount.Caller, n mount.Inode, h mount.Handle, offset int64, size int, then func([]byte, bool)) bool {
	buf := make([]byte, size)
	got, err := s.View.Read(context.Background(), c, n, h, offset, buf)
	return err == nil && s.start(buf[:got], then)
}

func (s starting) Read(ctx context.Context, c mount.Caller, n mount.Inode, h mount.Handle, offset int64, buf []byte) (int, error) {
	if s.read != nil {
		s.read(ctx)
	}
	return s.View.Read(ctx, c, n, h, offset, buf)
}

// startingAt mounts a twin with one file, opened past the kernel's cache.
func startingAt(t *testing.T, s starting, data []byte) (*Server, int) {
	t.Helper()
	m := at(t, s)
	path := filepath.Join(m.Point(), "f")
	if err := fill(path, data); err != nil {
		t.Fatal(err)
	}
	fd := open(t, path, unix.O_RDONLY|unix.O_DIRECT)
	t.Cleanup(func() { _ = unix.Close(fd) }) // before the mount ends
	return m, fd
}

// TestLaterReads_GetTheirOwnBytes reads a file from many threads. Its reads are
// answered at once, later, not after all, or not begun, in turns. Each gets its
// own bytes, and nothing of them stays.
func TestLaterReads_GetTheirOwnBytes(t *testing.T) {
	want := make([]byte, 256<<10+100)
	for i := range want {
		want[i] = byte(i * 131 >> 5)
	}
	var turn, begun, failed, reads atomic.Int64
	s := starting{View: memfs.New(memfs.Options{}).View()}
	s.read = func(context.Context) { reads.Add(1) }
	s.start = func(data []byte, then func([]byte, bool)) bool {
		switch n := turn.Add(1); n % 4 {
		case 0:
			return false
		case 1:
			begun.Add(1)
			then(data, true)
		case 2:
			begun.Add(1)
			go then(data, true)
		case 3:
			failed.Add(1)
			go then(nil, false)
		}
		return true
	}
	m, fd := startingAt(t, s, want)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			buf := make([]byte, 4096)
			for i := range 100 {
				off := (i*37 + g*11) % 65 * 4096
				n, err := unix.Pread(fd, buf, int64(off))
				if err != nil || !bytes.Equal(buf[:n], want[off:min(off+4096, len(want))]) {
					t.Errorf("at %d: %d bytes, %v, or others than were written", off, n, err)
					return
				}
			}
		})
	}
	all.Wait()
	refused := turn.Load() - begun.Load() - failed.Load()
	if begun.Load() < 300 || failed.Load() < 150 || reads.Load() != failed.Load()+refused {
		t.Errorf("%d reads were begun and %d failed, %d were not begun and %d read by a worker", begun.Load(), failed.Load(), refused, reads.Load())
	}
	c := m.server
	for left := 1; left > 0; runtime.Gosched() { // the kernel has the answer before this side forgets it
		c.later.mu.Lock()
		left = len(c.later.reads)
		c.later.mu.Unlock()
	}
}

// TestLaterReads_BeyondTheLimitTakeWorkers holds all reads that are begun, and
// continues to read.
func TestLaterReads_BeyondTheLimitTakeWorkers(t *testing.T) {
	held := make(chan func(), maxLater+8)
	s := starting{View: memfs.New(memfs.Options{}).View()}
	s.start = func(data []byte, then func([]byte, bool)) bool {
		held <- func() { then(data, true) }
		return true
	}
	_, fd := startingAt(t, s, bytes.Repeat([]byte("x"), 4096))
	var all sync.WaitGroup
	read := func() {
		if n, err := unix.Pread(fd, make([]byte, 4096), 0); n != 4096 || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
	}
	var answers []func()
	for range maxLater {
		all.Go(read)
		answers = append(answers, <-held)
	}
	read() // by a worker, or it would hang
	for _, answer := range answers {
		answer()
	}
	all.Wait()
}

// TestLaterReads_InterruptReachesTheWorker interrupts a read before and while a
// worker serves it.
func TestLaterReads_InterruptReachesTheWorker(t *testing.T) {
	for _, before := range []bool{true, false} {
		held, reading, ended := make(chan func(), 1), make(chan bool, 1), make(chan bool, 1)
		s := starting{View: memfs.New(memfs.Options{}).View()}
		s.start = func(_ []byte, then func([]byte, bool)) bool {
			held <- func() { then(nil, false) }
			return true
		}
		s.read = func(ctx context.Context) {
			reading <- true
			select {
			case <-ctx.Done():
				ended <- true
			case <-time.After(10 * time.Second):
				ended <- false
			}
		}
		m, fd := startingAt(t, s, bytes.Repeat([]byte("x"), 4096))
		thread, result := make(chan int, 1), make(chan error, 1)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			thread <- unix.Gettid()
			_, err := unix.Pread(fd, make([]byte, 4096), 0)
			result <- err
		}()
		tid, fail := <-thread, <-held
		if !before {
			fail()
			<-reading
		}
		if err := unix.Tgkill(unix.Getpid(), tid, syscall.SIGURG); err != nil {
			t.Fatal(err)
		}
		for before {
			m.server.later.mu.Lock()
			for _, l := range m.server.later.reads {
				before = !l.interrupted
			}
			m.server.later.mu.Unlock()
			if runtime.Gosched(); !before {
				fail()
			}
		}
		if !<-ended {
			t.Error("the read was not interrupted")
		}
		if err := <-result; err != nil {
			t.Errorf("the answer, which came in spite of it: %v", err)
		}
	}
}

// TestUnmount_WaitsForLaterReads ends a mount by force while a read is in
// flight. Its reader gets an error. The connection stays until the answer has
// come, which goes nowhere.
func TestUnmount_WaitsForLaterReads(t *testing.T) {
	for _, ok := range []bool{true, false} {
		held := make(chan func(), 1)
		s := starting{View: memfs.New(memfs.Options{}).View()}
		s.read = func(context.Context) { t.Error("it was worked on for nobody") }
		s.start = func(data []byte, then func([]byte, bool)) bool {
			held <- func() { then(data, ok) }
			return true
		}
		m, fd := startingAt(t, s, bytes.Repeat([]byte("x"), 4096))
		result := make(chan error, 1)
		go func() {
			_, err := unix.Pread(fd, make([]byte, 4096), 0)
			result <- err
		}()
		answer := <-held
		unmounted := make(chan error, 1)
		go func() { unmounted <- m.Unmount(time.Millisecond) }()
		if err := <-result; !errors.Is(err, syscall.ECONNABORTED) && !errors.Is(err, syscall.ENOTCONN) {
			t.Errorf("a read on a mount that is gone: %v", err)
		}
		for !m.server.later.isOver() { // what comes later is worked on for nobody
			runtime.Gosched()
		}
		select {
		case <-m.Done():
			t.Error("the connection ended before a read was answered")
		default:
		}
		answer()
		if err := <-unmounted; err != nil {
			t.Error(err)
		}
		<-m.Done()
	}
}
