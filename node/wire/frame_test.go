package wire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/protocol/pb"
)

// TestFrameBytes holds the frames of docs/formats/wire.md.
func TestFrameBytes(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   frame
		want string
	}{
		{"a call with a coordinate", frame{kind: kindCall, flags: flagCoordinate, method: 0x0102, header: 3, body: 0x10000,
			time: 1500, id: 7, hlc: 0x1122334455667788, coordinate: Coordinate{1, -2, 3, 0.5}},
			"0101" + "0201" + "03000000" + "00000100" + "dc050000" + "0700000000000000" + "8877665544332211" +
				"0000803f" + "000000c0" + "00004040" + "0000003f"},
		{"a heartbeat", frame{kind: kindHeartbeat}, "0600" + "0000" + "00000000" + "00000000" + "00000000" + "0000000000000000" + "0000000000000000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.in.append(nil)
			if hex.EncodeToString(got) != tt.want {
				t.Errorf("got %x, want %s", got, tt.want)
			}
			var back frame
			limits := DefaultLimits().Class[Operation]
			if err := back.parse(got, &limits); err != nil {
				t.Fatal(err)
			}
			if back.flags&flagCoordinate != 0 {
				back.parseCoordinate(got[frameSize:])
			}
			if back != tt.in {
				t.Errorf("read back %+v, want %+v", back, tt.in)
			}
		})
	}
	f := appendFault(nil, fault.E(fault.NotFound, "tree.Lookup", "/a", "no"))
	const want = "02000000" + "0b00" + "747265652e4c6f6f6b7570" + "0200" + "2f61" + "0200" + "6e6f"
	if hex.EncodeToString(f) != want {
		t.Errorf("a fault: got %x, want %s", f, want)
	}
}

func TestFramesBeyondLimitsAreRefused(t *testing.T) {
	limits := ClassLimits{Header: 100, Body: 1000}
	ok := frame{kind: kindCall, method: 1, header: 100, body: 1000}
	for _, tt := range []struct {
		name   string
		change func(*frame)
		want   fault.Kind
	}{
		{"at the limits", func(*frame) {}, fault.None},
		{"a longer message", func(f *frame) { f.header++ }, fault.TooLarge},
		{"a longer body", func(f *frame) { f.body++ }, fault.TooLarge},
		{"the longest body", func(f *frame) { f.body = 1<<32 - 1 }, fault.TooLarge},
		{"kind 0", func(f *frame) { f.kind = 0 }, fault.NotSupported},
		{"a kind of the future", func(f *frame) { f.kind = kindEnd }, fault.NotSupported},
		{"a flag of the future", func(f *frame) { f.flags = 0x80 }, fault.NotSupported},
		{"a method out of range", func(f *frame) { f.method = MaxMethod }, fault.NotSupported},
		{"a cancellation with content", func(f *frame) { f.kind = kindCancel }, fault.Invalid},
	} {
		f := ok
		tt.change(&f)
		var got frame
		if err := got.parse(f.append(nil), &limits); fault.KindOf(err) != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
	}
}

// bareLink is a link without a connection: what it sends stays in its queue.
func bareLink(t testing.TB) *link {
	t.Helper()
	h := &Host{id: "self", epoch: time.Now(), peers: map[string]*peerState{}, links: map[*link]struct{}{}}
	for class := range h.workers {
		h.workers[class] = newWorkers(0, 0, 4, &h.wg) // refuses everything
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
	l := &link{host: h, peer: &peerState{id: "peer"}, limits: &limits, queue: newQueue(limits.Queue), class: Operation,
		conn: &directConn{Conn: socket, raw: &raw{local: &localSocket{}}}, pending: map[uint64]*call{}, serving: map[uint64]*Request{}}
	l.admitted.Store(true)
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
	encode := func(fr frame, content ...[]byte) []byte {
		return append(fr.append(nil), bytes.Join(content, nil)...)
	}
	add()
	add(encode(frame{kind: kindHeartbeat}))
	ask := encode(frame{kind: kindCall, method: 1, header: uint32(len(message)), body: 4, id: 1}, message, []byte("body"))
	add(ask)
	add(ask, ask)
	add(ask[:40])
	add(encode(frame{kind: kindCall, flags: flagCoordinate, method: 2, id: 5}), encode(frame{kind: kindCancel, id: 5}))
	add(encode(frame{kind: kindMessage, method: 3, body: 3}, []byte("abc")), ask)
	held := encode(frame{kind: kindCall, method: 4, body: 2, id: 8}, []byte("ab"))
	add(held, held) // a number used twice
	add(held, encode(frame{kind: kindCancel, id: 8}), ask)
	add(encode(frame{kind: kindCall, method: 99, body: 2, id: 8}, []byte("ab")), ask)
	add(encode(frame{kind: kindError, header: 13, id: 1}, appendFault(nil, fault.E(fault.Busy, "a", "b", "c"))))
	add(encode(frame{kind: kindAnswer, header: 2, body: 1, id: 1}, []byte("\xff\xffx")))
	add(encode(frame{kind: kindCall, method: 1, header: 1 << 31}))
	f.Fuzz(func(t *testing.T, data []byte) {
		l := bareLink(t)
		c := &call{id: 1, done: make(chan struct{}, 1)}
		l.pending[1] = c
		r := bufio.NewReaderSize(bytes.NewReader(data), 4096)
		var err error
		for err == nil {
			err = l.readFrame(r)
		}
		var fe *fault.Error
		if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.As(err, &fe) {
			t.Errorf("ended with %v", err)
		}
		if len(l.serving) > l.limits.Calls {
			t.Errorf("%d requests under way", len(l.serving))
		}
		checkFrames(t, l)
	})
}

// FuzzStranger feeds bytes to the reader of a connection whose peer is not
// admitted: nothing but a hello may reach a handler, and little is read.
func FuzzStranger(f *testing.F) {
	const hello = 1
	encode := func(fr frame, content ...[]byte) []byte { return append(fr.append(nil), bytes.Join(content, nil)...) }
	greeting := encode(frame{kind: kindCall, method: hello, header: 3, id: 1}, []byte("abc"))
	for _, seed := range [][]byte{
		{}, greeting, append(greeting[:len(greeting):len(greeting)], greeting...),
		encode(frame{kind: kindCall, method: 4, header: 1, body: 2, id: 1}, []byte("abc")),
		encode(frame{kind: kindCall, method: hello, body: 1 << 16, id: 1}),
		encode(frame{kind: kindMessage, method: 3, body: 3, hlc: 1 << 63}, []byte("abc")),
		bytes.Repeat(encode(frame{kind: kindHeartbeat, flags: flagCoordinate, hlc: ^uint64(0)}), 300),
		encode(frame{kind: kindAnswer, header: 3, id: 1}, []byte("abc")),
		encode(frame{kind: kindCancel, id: 1}),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l := bareLink(t)
		h := l.host
		h.options.Hello, h.options.Limits.StrangerBytes = hello, 64<<10
		h.options.Admit = func(string) (string, bool) { return "", false }
		h.options.OnHLC = func(string, uint64) { t.Error("the clock was told") }
		l.admitted.Store(false)
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
		if l.queue.size > l.host.options.Limits.StrangerBytes {
			t.Errorf("%d bytes of answers wait", l.queue.size)
		}
		checkFrames(t, l)
	})
}

// checkFrames reads what a bare link queued.
func checkFrames(t *testing.T, l *link) {
	t.Helper()
	if !l.queue.waiting() {
		return
	}
	var out bytes.Buffer
	b, _ := l.queue.take()
	if err := l.queue.write(b, &out); err != nil {
		t.Fatal(err)
	}
	if l.queue.size != 0 {
		t.Errorf("%d bytes are left in the account", l.queue.size)
	}
	for rest := out.Bytes(); len(rest) > 0; {
		var f frame
		if err := f.parse(rest, l.limits); err != nil {
			t.Fatalf("sent a bad frame: %v", err)
		}
		if f.kind == kindError {
			if e := parseFault(rest[frameSize:frameSize+f.header], "peer"); e.Kind == fault.Corrupt && e.Op == opFrame && e.Public == "an error that cannot be read" {
				t.Error("sent a bad fault")
			}
		}
		rest = rest[frameSize+int(f.header)+int(f.body):]
	}
}

func FuzzFault(f *testing.F) {
	f.Add([]byte{})
	f.Add(appendFault(nil, fault.E(fault.Busy, "a.B", "subject", "public")))
	f.Add(binary.LittleEndian.AppendUint32(nil, 7))
	f.Fuzz(func(t *testing.T, data []byte) {
		e := parseFault(data, "peer")
		if e.Kind == fault.None || !Answered(e) {
			t.Errorf("%x became %+v", data, e)
		}
		again := parseFault(appendFault(nil, e), "peer")
		if len(e.Public) <= maxFaultText && len(e.Subject) <= maxFaultText && len(e.Op) <= maxFaultText &&
			(again.Kind != e.Kind || again.Op != e.Op || again.Subject != e.Subject || again.Public != e.Public) {
			t.Errorf("%+v became %+v", e, again)
		}
	})
}

func TestPeersThatLeaveAreForgotten(t *testing.T) {
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
