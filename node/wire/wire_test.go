package wire_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/wiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Methods of these tests.
const (
	echo    wire.Method = 1 // inline: message and body back
	spawned wire.Method = 2 // the same from a worker
	failing wire.Method = 3
	hanging wire.Method = 4 // answers when its context ends
	note    wire.Method = 5 // one-way
	unknown wire.Method = 6
)

// within bounds a test's calls.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// serveEcho registers echo and spawned.
func serveEcho(h *wire.Host) {
	answer := func(r *wire.Request) {
		var m pb.ReadHeader
		if err := r.Decode(&m); err != nil {
			r.Fail(err)
			return
		}
		b := r.TakeBody()
		r.ReplyOwned(b.Release, &m, b.Bytes())
	}
	h.Inline(echo, answer)
	h.Spawn(spawned, func(_ context.Context, r *wire.Request) { answer(r) })
}

// pattern repeats with an odd period, so that misplaced bytes show.
func pattern(n int, seed byte) []byte {
	const period = 1021
	b := make([]byte, n)
	for i := range min(n, period) {
		b[i] = byte(i*7) ^ byte(i>>8) ^ seed
	}
	for at := period; at < n; at *= 2 {
		copy(b[at:], b[:at])
	}
	return b
}

func TestCall_MessagesAndBodiesOfEverySize(t *testing.T) {
	for _, noise := range []bool{false, true} {
		t.Run(fmt.Sprintf("noise=%v", noise), func(t *testing.T) {
			a, b := wiretest.Pair(t, func(_ int, o *wire.Options) { o.Noise = noise })
			serveEcho(b)
			ctx := within(t, 20*time.Second)
			for _, class := range []wire.Class{wire.Beacon, wire.Operation, wire.Chunk} {
				for _, n := range []int{0, 1, 4095, 16 << 10, 16<<10 + 1, 100_000, 256 << 10, 4 << 20, 8 << 20} {
					if n > a.MaxPayload(class) || noise && n > 256<<10 {
						continue
					}
					for _, m := range []wire.Method{echo, spawned} {
						body := pattern(n, byte(n))
						var out pb.ReadHeader
						got, err := a.Call(ctx, b.KeyID(), class, m, &pb.ReadHeader{Slice: 7, Epoch: uint64(n)},
							[][]byte{body[:n/3], body[n/3:]}, &out)
						if err != nil {
							t.Fatalf("%v %d bytes: %v", class, n, err)
						}
						if out.Slice != 7 || out.Epoch != uint64(n) || !bytes.Equal(got.Bytes(), body) {
							t.Fatalf("%v %d bytes: got %v and %d bytes", class, n, &out, got.Len())
						}
						got.Release()
					}
				}
			}
		})
	}
}

func TestCall_EitherEndOverOneConnection(t *testing.T) {
	node := wiretest.Open(t, wire.Options{Key: wiretest.Key(t, 1), Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
	client := wiretest.Open(t, wire.Options{Key: wiretest.Key(t, 2)}) // listens nowhere
	serveEcho(node)
	serveEcho(client)
	ctx := within(t, 10*time.Second)
	if _, err := node.Call(ctx, client.KeyID(), wire.Operation, echo, nil, nil, nil); !fault.Is(err, fault.Unreachable) {
		t.Fatalf("calling a client never seen: got %v, want unreachable", err)
	}
	if err := client.AddPeer(node.KeyID(), node.Addresses()); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Call(ctx, node.KeyID(), wire.Operation, echo, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := node.Call(ctx, client.KeyID(), wire.Operation, echo, nil, nil, nil); err != nil {
		t.Fatalf("calling back: %v", err)
	}
	if s := node.Status(); len(s) != 1 || s[0].Peer != client.KeyID() || s[0].Class != wire.Operation || s[0].Outbound || !s[0].Current || s[0].Frames != 4 {
		t.Errorf("status: got %+v", s)
	}
	if got := node.Peers(); len(got) != 1 || got[0] != client.KeyID() {
		t.Fatalf("peers: got %v", got)
	}
}

func TestCall_ErrorsCrossTheWire(t *testing.T) {
	a, b := wiretest.Pair(t)
	var answer error
	b.Inline(failing, func(r *wire.Request) { r.Fail(answer) })
	ctx := within(t, 10*time.Second)
	inner := fault.E(fault.WrongEpoch, "replica.Step", "slice 3", "the epoch is 9")
	for _, tt := range []struct {
		name string
		in   error
		want fault.Error
	}{
		{"a fault", inner, fault.Error{Kind: fault.WrongEpoch, Op: "replica.Step", Subject: "slice 3", Public: "the epoch is 9"}},
		{"a wrapped fault", fault.Wrap(fault.Other, "server.Operate", "/a", fmt.Errorf("step: %w", inner)),
			fault.Error{Kind: fault.WrongEpoch, Op: "server.Operate", Subject: "/a", Public: "the epoch is 9"}},
		{"a foreign error keeps its text to itself", errors.New("secret"), fault.Error{Kind: fault.Other}},
		{"a long text is cut", fault.E(fault.Invalid, "x.Y", "", strings.Repeat("x", 70_000)),
			fault.Error{Kind: fault.Invalid, Op: "x.Y", Public: strings.Repeat("x", 4096)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answer = tt.in
			_, err := a.Call(ctx, b.KeyID(), wire.Operation, failing, nil, nil, nil)
			var got *fault.Error
			if !errors.As(err, &got) || !wire.Answered(err) {
				t.Fatalf("got %v, want a fault that the peer answered", err)
			}
			if got.Kind != tt.want.Kind || got.Op != tt.want.Op || got.Subject != tt.want.Subject || got.Public != tt.want.Public {
				t.Errorf("got %+v, want %+v", *got, tt.want)
			}
		})
	}
	if _, err := a.Call(ctx, b.KeyID(), wire.Operation, unknown, nil, [][]byte{pattern(100_000, 1)}, nil); !fault.Is(err, fault.NotSupported) || !wire.Answered(err) {
		t.Errorf("a method that is not there: got %v", err)
	}
}

func TestCall_DeadlineAndCancelReachHandler(t *testing.T) {
	a, b := wiretest.Pair(t)
	ended := make(chan error, 4)
	deadlines := make(chan time.Duration, 4)
	b.Spawn(hanging, func(ctx context.Context, r *wire.Request) {
		left := time.Duration(0)
		if d, ok := ctx.Deadline(); ok {
			left = time.Until(d)
		}
		deadlines <- left
		<-ctx.Done()
		ended <- context.Cause(ctx)
	})
	wait := func(c chan error) error {
		select {
		case err := <-c:
			return err
		case <-time.After(5 * time.Second):
			t.Fatal("the handler's context did not end")
			return nil
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-deadlines; cancel() }()
	if _, err := a.Call(ctx, b.KeyID(), wire.Operation, hanging, nil, nil, nil); !fault.Is(err, fault.Canceled) || wire.Answered(err) {
		t.Fatalf("cancelled call: got %v", err)
	}
	if err := wait(ended); !errors.Is(err, context.Canceled) {
		t.Fatalf("handler saw %v", err)
	}
	ctx, cancel = context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := a.Call(ctx, b.KeyID(), wire.Operation, hanging, nil, nil, nil); !fault.Is(err, fault.TimedOut) {
		t.Fatalf("call over its deadline: got %v", err)
	}
	if d := time.Since(start); d > 1500*time.Millisecond {
		t.Errorf("it took %v", d)
	}
	if left := <-deadlines; left <= 0 || left > 310*time.Millisecond {
		t.Errorf("the handler had %v left", left)
	}
	if err := wait(ended); err == nil {
		t.Error("no cause")
	}
}

func TestSend_DeliversInOrder(t *testing.T) {
	a, b := wiretest.Pair(t)
	const n = 4_000
	var next atomic.Uint32
	var wrong atomic.Uint32
	b.Message(note, func(m wire.Message) {
		p := m.Payload.Bytes()
		if len(p) < 4 || uint32(p[0])|uint32(p[1])<<8|uint32(p[2])<<16 != next.Load() || m.Peer != a.KeyID() {
			wrong.Add(1)
		}
		next.Add(1)
		m.Payload.Release()
	})
	wiretest.Wait(t, "a connection", func() bool {
		err := a.Send(b.KeyID(), wire.Operation, unknown)
		return err == nil
	})
	for i := range n {
		head := []byte{byte(i), byte(i >> 8), byte(i >> 16), 0}
		body := pattern(i*11%40_000, 0)
		for {
			err := a.Send(b.KeyID(), wire.Operation, note, head, body)
			if err == nil {
				break
			}
			if !fault.Is(err, fault.Overloaded) {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
	}
	wiretest.Wait(t, "all frames", func() bool { return next.Load() == n })
	if wrong.Load() != 0 {
		t.Errorf("%d frames out of order or damaged", wrong.Load())
	}
}

func TestCall_ManyShareAConnection(t *testing.T) {
	a, b := wiretest.Pair(t)
	serveEcho(a)
	serveEcho(b)
	ctx := within(t, 30*time.Second)
	var wg sync.WaitGroup
	for i := range 32 {
		from, to, m := a, b, echo
		if i%2 == 1 {
			from, to = b, a
		}
		if i%4 >= 2 {
			m = spawned
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			for j := range 60 {
				class, size := wire.Class(j%3), (i*60+j)*37%70_000
				if class == wire.Beacon {
					size /= 16 // its queues are short
				}
				body := pattern(size, byte(j))
				var out pb.ReadHeader
				got, err := from.Call(ctx, to.KeyID(), class, m, &pb.ReadHeader{Epoch: uint64(j)}, [][]byte{body}, &out)
				if err != nil || out.Epoch != uint64(j) || !bytes.Equal(got.Bytes(), body) {
					t.Errorf("caller %d call %d: got %v, epoch %d, %d of %d bytes", i, j, err, out.Epoch, got.Len(), len(body))
					return
				}
				got.Release()
			}
		}()
	}
	wg.Wait()
}

func TestStart_CallsBackOnce(t *testing.T) {
	m := wiretest.New(t, 2)
	a, b := m.Hosts[0], m.Hosts[1]
	serveEcho(b)
	b.Inline(hanging, func(*wire.Request) {}) // never answers
	wiretest.Wait(t, "a connection", func() bool { return a.Start(b.KeyID(), wire.Beacon, echo, nil, nil, 0, func(*wire.Answer) {}) == nil })
	answers := make(chan error, 10)
	call := func(method wire.Method, timeout time.Duration) {
		t.Helper()
		err := a.Start(b.KeyID(), wire.Beacon, method, &pb.ReadHeader{Slice: 5}, [][]byte{[]byte("body")}, timeout, func(r *wire.Answer) {
			var out pb.ReadHeader
			if r.Err == nil && (r.Decode(&out) != nil || out.Slice != 5 || string(r.Body.Bytes()) != "body") {
				r.Err = io.ErrUnexpectedEOF
			}
			answers <- r.Err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	get := func() error {
		select {
		case err := <-answers:
			return err
		case <-time.After(5 * time.Second):
			t.Fatal("no answer")
			return nil
		}
	}
	call(echo, time.Second)
	if err := get(); err != nil {
		t.Errorf("echo: got %v", err)
	}
	call(hanging, 100*time.Millisecond)
	if err := get(); !fault.Is(err, fault.TimedOut) {
		t.Errorf("a call that is never answered: got %v, want timed out", err)
	}
	call(hanging, 0)
	a.Disconnect(b.KeyID())
	if err := get(); !fault.Is(err, fault.Unreachable) {
		t.Errorf("a call whose connection broke: got %v, want unreachable", err)
	}
	if len(answers) != 0 {
		t.Error("called back twice")
	}
}
