package operate

import (
	"bytes"
	"log/slog"
	"reflect"
	"testing"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/wire"
)

// sent is a network that keeps frames, and takes none that is larger than limit.
type sent struct {
	t      *testing.T
	limit  int
	frames map[frameKey][][]byte
}

func (s *sent) MaxPayload(wire.Class) int { return s.limit }

func (s *sent) Send(peer string, class wire.Class, m wire.Method, payload ...[]byte) error {
	if (m == method.Beacon) != (class == wire.Beacon) {
		s.t.Errorf("method %d in class %v", m, class)
	}
	frame := bytes.Join(payload, nil)
	if len(frame) > s.limit {
		s.t.Errorf("a frame of %d bytes, at most %d", len(frame), s.limit)
	}
	clear(payload) // the list is the sender's again
	key := frameKey{ids.Node(peer), class}
	s.frames[key] = append(s.frames[key], frame)
	return nil
}

func TestFrames_GatherUpToTheLimit(t *testing.T) {
	net := &sent{t: t, limit: 10_000}
	out := newFrames(net, slog.New(slog.DiscardHandler))
	entry := func(serial ids.Serial, size int) *replica.Entry {
		return &replica.Entry{Slice: 1, Serial: serial, Epoch: 1, Data: bytes.Repeat([]byte{byte(serial)}, size)}
	}
	var messages []replica.Outgoing
	want := map[frameKey][]*replica.Message{}
	add := func(to ids.Node, m *replica.Message) {
		messages = append(messages, replica.Outgoing{To: to, Message: m})
		key := frameKey{to, wire.Operation}
		if m.Control() {
			key.class = wire.Beacon
		}
		want[key] = append(want[key], m)
	}
	for i := range ids.Serial(6) {
		add("b", &replica.Message{Kind: replica.Append, Slice: 1, Epoch: 1, Entries: []*replica.Entry{entry(2*i+1, 4000), entry(2*i+2, 10)}})
		add("c", &replica.Message{Kind: replica.Ack, Slice: 1, Epoch: 1, Serial: i})
		add("b", &replica.Message{Kind: replica.Beacon, Boot: 1, Sequence: uint64(i)})
	}
	for range 2 { // a second flush starts anew
		net.frames = map[frameKey][][]byte{}
		out.send(messages)
		for key, list := range want {
			var got []*replica.Message
			for _, frame := range net.frames[key] {
				m, err := DecodeFrame(frame)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, m...)
			}
			if !reflect.DeepEqual(got, list) {
				t.Errorf("%v: got %d messages, want the %d sent, in order", key, len(got), len(list))
			}
		}
		if n := len(net.frames[frameKey{"b", wire.Operation}]); n != 3 {
			t.Errorf("got %d frames for six messages of 4 KB, want two in each of three", n)
		}
		if n := len(net.frames[frameKey{"c", wire.Operation}]); n != 1 {
			t.Errorf("got %d frames for small messages, want 1", n)
		}
	}
}
