package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire/framing"
)

// noSocket takes nothing.
type noSocket struct{}

func (noSocket) WriteAll(net.Buffers) (int64, error) { return 0, net.ErrClosed }
func (noSocket) TryWrite([]byte) int                 { return 0 }

// bareLink is a link without a connection: what it sends stays in its queue.
func bareLink(t testing.TB) *link {
	t.Helper()
	h := &Host{id: "self", epoch: time.Now(), peers: map[string]*peerState{}, links: map[*link]struct{}{}}
	for class := range h.workers {
		h.workers[class] = newWorkers(0, 0, 4, &h.wg, work.serve) // refuses everything
	}
	h.Inline(1, func(r *Request) {
		var m pb.OperateRequest
		if err := r.Decode(&m); err != nil {
			r.Fail(err)
			return
		}
		b := r.TakeBody()
		r.ReplyOwned(b.Release, &m, b.Bytes())
	})
	h.Spawn(2, func(_ context.Context, r *Request) { r.Reply(nil) })
	h.Message(3, func(m Message) { m.Payload.Release() })
	h.Inline(4, func(*Request) {}) // never answers
	limits := ClassLimits{Header: 1 << 16, Body: 1 << 16, Queue: 1 << 20, Held: 1 << 17, Calls: 4}
	socket, _ := net.Pipe() // it only takes deadlines
	l := &link{host: h, peer: &peerState{id: "peer"}, limits: &limits, queue: framing.NewQueue(limits.Queue), class: Operation,
		conn: &directConn{Conn: socket, raw: &raw{local: noSocket{}}}, calls: callTable{pending: map[uint64]*call{}}, serving: serving{requests: map[uint64]*Request{}}}
	l.reader = reader{conn: l.conn, buffers: &h.buffers}
	l.delays.queue, l.delays.spawn = l.queue, h.spawn
	l.admission.admitted.Store(true)
	return l
}

// FuzzRead feeds bytes to a connection's reader: it must not panic, must keep
// its limits, and what it sends must be frames.
func FuzzRead(f *testing.F) {
	message, err := proto.Marshal(&pb.OperateRequest{Slice: 3, Number: 9})
	if err != nil {
		f.Fatal(err)
	}
	add := func(frames ...[]byte) { f.Add(bytes.Join(frames, nil)) }
	encode := func(fr framing.Frame, content ...[]byte) []byte {
		return append(fr.Append(nil), bytes.Join(content, nil)...)
	}
	add()
	add(encode(framing.Frame{Kind: framing.Heartbeat}))
	ask := encode(framing.Frame{Kind: framing.Call, Method: 1, Header: uint32(len(message)), Body: 4, ID: 1}, message, []byte("body"))
	add(ask)
	add(ask, ask)
	add(ask[:40])
	add(encode(framing.Frame{Kind: framing.Call, Flags: framing.HasCoordinate, Method: 2, ID: 5}), encode(framing.Frame{Kind: framing.Cancel, ID: 5}))
	wide := framing.Frame{Kind: framing.OneWay, Method: 3, Body: 3}
	wide.Carry(&framing.Coordinate{Vector: [8]float32{1, 2, 3, 4, 5, 6, 7, 8}, Dimensions: 8})
	add(encode(wide, []byte("abc")), ask)
	add(encode(wide)[:40], ask)
	add(encode(framing.Frame{Kind: framing.OneWay, Method: 3, Body: 3}, []byte("abc")), ask)
	held := encode(framing.Frame{Kind: framing.Call, Method: 4, Body: 2, ID: 8}, []byte("ab"))
	add(held, held) // a number used twice
	add(held, encode(framing.Frame{Kind: framing.Cancel, ID: 8}), ask)
	add(encode(framing.Frame{Kind: framing.Call, Method: 99, Body: 2, ID: 8}, []byte("ab")), ask)
	add(encode(framing.Frame{Kind: framing.Error, Header: 13, ID: 1}, framing.AppendFault(nil, fault.E(fault.Busy, "a", "b", "c"))))
	add(encode(framing.Frame{Kind: framing.Answer, Header: 2, Body: 1, ID: 1}, []byte("\xff\xffx")))
	add(encode(framing.Frame{Kind: framing.Call, Method: 1, Header: 1 << 31}))
	f.Fuzz(func(t *testing.T, data []byte) {
		l := bareLink(t)
		c := &call{id: 1, done: make(chan struct{}, 1)}
		l.calls.pending[1] = c
		r := bufio.NewReaderSize(bytes.NewReader(data), 4096)
		var err error
		for err == nil {
			err = l.readFrame(r)
		}
		var fe *fault.Error
		if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.As(err, &fe) {
			t.Errorf("ended with %v", err)
		}
		if len(l.serving.requests) > l.limits.Calls {
			t.Errorf("%d requests under way", len(l.serving.requests))
		}
		checkFrames(t, l)
	})
}

// FuzzStranger feeds bytes to the reader of a connection whose peer is not
// admitted: nothing but a hello may reach a handler, and little is read.
func FuzzStranger(f *testing.F) {
	const hello = 1
	encode := func(fr framing.Frame, content ...[]byte) []byte {
		return append(fr.Append(nil), bytes.Join(content, nil)...)
	}
	greeting := encode(framing.Frame{Kind: framing.Call, Method: hello, Header: 3, ID: 1}, []byte("abc"))
	for _, seed := range [][]byte{
		{}, greeting, append(greeting[:len(greeting):len(greeting)], greeting...),
		encode(framing.Frame{Kind: framing.Call, Method: 4, Header: 1, Body: 2, ID: 1}, []byte("abc")),
		encode(framing.Frame{Kind: framing.Call, Method: hello, Body: 1 << 16, ID: 1}),
		encode(framing.Frame{Kind: framing.OneWay, Method: 3, Body: 3, HLC: 1 << 63}, []byte("abc")),
		bytes.Repeat(encode(framing.Frame{Kind: framing.Heartbeat, Flags: framing.HasCoordinate, HLC: ^uint64(0)}), 300),
		encode(framing.Frame{Kind: framing.Answer, Header: 3, ID: 1}, []byte("abc")),
		encode(framing.Frame{Kind: framing.Cancel, ID: 1}),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l := bareLink(t)
		h := l.host
		h.options.Hello, h.options.Limits.StrangerBytes = hello, 64<<10
		h.options.Admit = func(string) (string, bool) { return "", false }
		h.options.OnHLC = func(string, uint64) { t.Error("the clock was told") }
		l.admission.admitted.Store(false)
		h.Inline(4, func(*Request) { t.Error("a stranger is served") })
		h.Message(3, func(Message) { t.Error("a stranger is heard") })
		source := bytes.NewReader(data)
		r := bufio.NewReaderSize(source, strangerBuffer)
		var err error
		for err == nil {
			err = l.readFrame(r)
		}
		if read := len(data) - source.Len(); read > h.options.Limits.StrangerBytes+strangerBuffer {
			t.Errorf("%d bytes were read", read)
		}
		if l.queue.Size() > l.host.options.Limits.StrangerBytes {
			t.Errorf("%d bytes of answers wait", l.queue.Size())
		}
		checkFrames(t, l)
	})
}

// checkFrames reads what a bare link queued.
func checkFrames(t *testing.T, l *link) {
	t.Helper()
	if !l.queue.IsWaiting() {
		return
	}
	var out bytes.Buffer
	b, _ := l.queue.Take()
	if err := l.queue.Write(b, &out); err != nil {
		t.Fatal(err)
	}
	if l.queue.Size() != 0 {
		t.Errorf("%d bytes are left in the account", l.queue.Size())
	}
	for rest := out.Bytes(); len(rest) > 0; {
		var f framing.Frame
		if err := f.Parse(rest, l.limits.frame()); err != nil {
			t.Fatalf("sent a bad frame: %v", err)
		}
		if f.Kind == framing.Error {
			if e := framing.ParseFault(rest[framing.FixedSize:framing.FixedSize+f.Header], "peer"); e.Kind == fault.Corrupt && e.Op == framing.Op && e.Public == "an error that cannot be read" {
				t.Error("sent a bad fault")
			}
		}
		rest = rest[framing.FixedSize+int(f.Header)+int(f.Body):]
	}
}

func TestPeers_ForgottenWhenTheyLeave(t *testing.T) {
	node := testHost(t)
	for range 3 {
		key, err := NewKey(nil)
		if err != nil {
			t.Fatal(err)
		}
		client, err := New(Options{Key: key})
		if err != nil {
			t.Fatal(err)
		}
		if err := client.AddPeer(node.KeyID(), node.Addresses()); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Call(t.Context(), node.KeyID(), Operation, 1, nil, nil, nil); err != nil {
			t.Error(err)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
	eventually(t, "peers that left to be forgotten", func() bool {
		node.mu.RLock()
		defer node.mu.RUnlock()
		return len(node.peers)+len(node.links) == 0
	})
}
