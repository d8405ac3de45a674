package wire

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cartwheel.dev/node/wire/framing"
)

// quietPair returns two ends that hold little of what was not read.
func quietPair(t *testing.T) (a, b *quiet) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*quiet
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket")
		c, err := net.FileConn(f)
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		widen(c.(*net.UnixConn), 4<<10)
		if ends[i], err = hush(c.(*net.UnixConn)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ends[i].Close() })
	}
	return ends[0], ends[1]
}

func TestAQuietSocketCarriesWhatItIsGiven(t *testing.T) {
	a, b := quietPair(t)
	want := make([]byte, 3<<20)
	rand.NewChaCha8([32]byte{1}).Read(want)
	var parts net.Buffers // more than one system call takes, of all sizes, some empty
	for rest := want; len(rest) > 0; {
		n := min(len(rest), len(parts)%2500)
		parts, rest = append(parts, rest[:n]), rest[n:]
	}
	sent := make(chan error, 1)
	go func() {
		n, err := a.writev(parts)
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

func TestClosingAQuietSocketEndsWhoWaitsOnIt(t *testing.T) {
	for name, wait := range map[string]func(*quiet) error{
		"to read":  func(q *quiet) error { _, err := q.Read(make([]byte, 1)); return err },
		"to write": func(q *quiet) error { _, err := q.Write(make([]byte, 8<<20)); return err },
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := quietPair(t)
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

func TestAQuietSocketHasDeadlines(t *testing.T) {
	a, _ := quietPair(t)
	if err := a.SetDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	_, read := a.Read(make([]byte, 1))
	_, write := a.Write(make([]byte, 8<<20))
	if !errors.Is(read, os.ErrDeadlineExceeded) || !errors.Is(write, os.ErrDeadlineExceeded) {
		t.Errorf("read: %v, write: %v; want that both took too long", read, write)
	}
}

// What the runtime's poller would be woken by is asked of an epoll instance
// that watches the same.
func TestAQuietSocketIsNotToldThatItsBytesWereRead(t *testing.T) {
	a, b := quietPair(t)
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
	for _, w := range []*watch{a.in, a.out} {
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

// Several goroutines send frames, alone or not, over a socket that takes little
// at once: all arrive whole, those of each in its order, and what was lent
// with them is given back once.
func TestFramesArriveWholeWhoeverWritesThem(t *testing.T) {
	const senders, each = 2, 400
	a, b := quietPair(t)
	l := bareLink(t)
	l.queue.Inline, l.limits.Queue = true, 1<<20
	l.conn = &directConn{raw: newRaw(&localSocket{quiet: a})}
	var all sync.WaitGroup
	all.Go(l.drain)
	var given atomic.Int32
	var came [senders]chan int
	for s := range senders {
		came[s] = make(chan int, each)
		all.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(s)))
			for i := range each {
				body := bytes.Repeat([]byte{byte(i)}, r.IntN(20<<10))
				o := &outgoing{Frame: framing.Frame{Kind: framing.Answer, ID: uint64(s<<32 | i)}, body: [][]byte{body}, alone: r.IntN(3) > 0}
				if r.IntN(2) == 0 {
					o.done = func() { given.Add(1) }
				} else {
					given.Add(1)
				}
				if result, err := l.send(o, false); result != sendDone {
					t.Errorf("frame %x: %v, %v", o.ID, result, err)
				}
				for wait := r.IntN(2) == 0; wait && <-came[s] != i; { // so that the writer has nothing to do at times
				}
			}
		})
	}
	next := [senders]int{}
	for range senders * each {
		var f framing.Frame
		head := make([]byte, framing.FixedSize)
		if _, err := io.ReadFull(b, head); err != nil {
			t.Fatal(err)
		}
		if err := f.Parse(head, l.limits.frame()); err != nil {
			t.Fatal(err)
		}
		body := make([]byte, f.Body)
		if _, err := io.ReadFull(b, body); err != nil {
			t.Fatal(err)
		}
		s, i := f.ID>>32, int(uint32(f.ID))
		if s >= senders || i != next[s] || !bytes.Equal(body, bytes.Repeat([]byte{byte(i)}, len(body))) {
			t.Fatalf("frame %x came, the next is %v, its body is its own: %v", f.ID, next, bytes.Count(body, []byte{byte(i)}) == len(body))
		}
		next[s]++
		came[s] <- i
	}
	l.queue.Close()
	all.Wait()
	if n := given.Load(); n != senders*each || l.queue.Size() != 0 {
		t.Errorf("%d of %d bodies were given back; %d bytes are in the account", n, senders*each, l.queue.Size())
	}
}
