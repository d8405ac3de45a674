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

	"golang.org/x/sys/unix"

	"cartwheel.dev/node/wire/framing"
)

// smallSocket is one end of a Unix socket with small buffers.
type smallSocket struct{ *net.UnixConn }

func (s smallSocket) WriteAll(v net.Buffers) (int64, error) { return v.WriteTo(s.UnixConn) }

// TryWrite writes what the socket takes at once.
func (s smallSocket) TryWrite(b []byte) int {
	n := 0
	if raw, err := s.SyscallConn(); err == nil {
		_ = raw.Write(func(fd uintptr) bool { n, _ = unix.Write(int(fd), b); return true })
	}
	return max(n, 0)
}

func smallPair(t *testing.T) (a, b smallSocket) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]smallSocket
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket")
		c, err := net.FileConn(f)
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		ends[i] = smallSocket{c.(*net.UnixConn)}
		t.Cleanup(func() { c.Close() })
		if err := errors.Join(ends[i].SetWriteBuffer(4<<10), ends[i].SetReadBuffer(4<<10)); err != nil {
			t.Fatal(err)
		}
	}
	return ends[0], ends[1]
}

// TestLink_FramesArriveWhole sends frames from several goroutines, alone or not,
// over a socket that takes little at once. All arrive whole, those of each
// goroutine in its order, and each body is released once.
func TestLink_FramesArriveWhole(t *testing.T) {
	const senders, each = 2, 400
	a, b := smallPair(t)
	l := bareLink(t)
	l.queue.Inline, l.limits.Queue = true, 1<<20
	l.conn = &directConn{raw: &raw{local: a}}
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
				for wait := r.IntN(2) == 0; wait && <-came[s] != i; { // so that the writer is idle at times
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
		t.Errorf("%d of %d bodies were released; %d bytes are in the account", n, senders*each, l.queue.Size())
	}
}
