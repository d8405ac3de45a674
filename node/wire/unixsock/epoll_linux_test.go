package unixsock

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// epollPair returns two ends with small buffers.
func epollPair(t *testing.T) (a, b *epollConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*epollConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket")
		c, err := net.FileConn(f)
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		widen(c.(*net.UnixConn), 4<<10)
		if ends[i], err = wrap(c.(*net.UnixConn)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ends[i].Close() })
	}
	return ends[0], ends[1]
}

func TestEpollConn_CarriesAllBytes(t *testing.T) {
	a, b := epollPair(t)
	want := make([]byte, 3<<20)
	rand.NewChaCha8([32]byte{1}).Read(want)
	var parts net.Buffers // more than one system call takes, of all sizes, some empty
	for rest := want; len(rest) > 0; {
		n := min(len(rest), len(parts)%2500)
		parts, rest = append(parts, rest[:n]), rest[n:]
	}
	sent := make(chan error, 1)
	go func() {
		n, err := a.WriteAll(parts)
		if err == nil && n != int64(len(want)) {
			err = errors.New("it counts wrongly")
		}
		sent <- errors.Join(err, a.Close())
	}()
	got, err := io.ReadAll(b)
	if err = errors.Join(err, <-sent); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes came of %d, the same ones: %v; %v", len(got), len(want), bytes.Equal(got, want), err)
	}
}

func TestEpollConn_CloseEndsWaits(t *testing.T) {
	for name, wait := range map[string]func(*epollConn) error{
		"to read":  func(q *epollConn) error { _, err := q.Read(make([]byte, 1)); return err },
		"to write": func(q *epollConn) error { _, err := q.Write(make([]byte, 8<<20)); return err },
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := epollPair(t)
			ended := make(chan error, 1)
			go func() { ended <- wait(a) }()
			select {
			case err := <-ended:
				t.Fatalf("it did not wait: %v", err)
			case <-time.After(20 * time.Millisecond): // it may not have begun; then it finds it closed
			}
			if err := a.Close(); err != nil {
				t.Error(err)
			}
			if err := <-ended; !errors.Is(err, net.ErrClosed) {
				t.Errorf("got %v, want that it is closed", err)
			}
		})
	}
}

func TestEpollConn_Deadlines(t *testing.T) {
	a, _ := epollPair(t)
	if err := a.SetDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	_, read := a.Read(make([]byte, 1))
	_, write := a.Write(make([]byte, 8<<20))
	if !errors.Is(read, os.ErrDeadlineExceeded) || !errors.Is(write, os.ErrDeadlineExceeded) {
		t.Errorf("read: %v, write: %v; want that both took too long", read, write)
	}
}

// TestEpollConn_NotWokenByPeersReads asks an epoll instance that watches the same
// as the runtime's poller.
func TestEpollConn_NotWokenByPeersReads(t *testing.T) {
	a, b := epollPair(t)
	var all sync.WaitGroup
	const large = 1 << 20 // it has to wait for room
	all.Go(func() {
		if _, err := a.Write(make([]byte, large)); err != nil {
			t.Error(err)
		}
	})
	_, err := io.ReadFull(b, make([]byte, large))
	all.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Write([]byte("question")); err != nil {
		t.Fatal(err)
	}
	above, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(above)
	for _, w := range []*poller{a.in, a.out} {
		e := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLET, Fd: int32(w.ep)}
		if err := unix.EpollCtl(above, unix.EPOLL_CTL_ADD, w.ep, &e); err != nil {
			t.Fatal(err)
		}
	}
	told := func() bool {
		var events [4]unix.EpollEvent
		n, err := unix.EpollWait(above, events[:], 0)
		if err != nil {
			t.Fatal(err)
		}
		return n > 0
	}
	if _, err := b.Read(make([]byte, 8)); err != nil || told() {
		t.Errorf("told of room for what always had room (%v)", err)
	}
	if _, err := b.Write([]byte("answer")); err != nil || !told() {
		t.Errorf("not told of what came (%v)", err)
	}
}
