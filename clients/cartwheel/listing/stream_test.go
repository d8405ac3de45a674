package listing

import (
	"encoding/binary"
	"testing"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/framing"
	"google.golang.org/protobuf/proto"
)

// waiting is a stream whose call is under way.
func waiting(r *Reader) *stream {
	s := &stream{r: r, dir: 7, most: aheadBytes, ready: make(chan struct{}, 1), room: make(chan struct{}, 1)}
	s.number = r.streams.put(s)
	return s
}

// pushed is a page as a node pushes it.
func pushed(t *testing.T, stream uint64, page uint32, names ...string) wire.Message {
	t.Helper()
	resp := &pb.ListResponse{More: true}
	for _, n := range names {
		resp.Entries = append(resp.Entries, &pb.Entry{Name: []byte(n), Object: 9})
	}
	data, err := proto.Marshal(resp)
	if err != nil {
		t.Fatal(err)
	}
	frame := binary.LittleEndian.AppendUint64(nil, stream)
	frame = binary.LittleEndian.AppendUint32(frame, page)
	return wire.Message{Peer: "n", Payload: framing.NewBuffer(append(frame, data...))}
}

func TestPushed_TakesPagesInOrder(t *testing.T) {
	r := New(Options{IsNear: func(ids.Node) bool { return true }})
	s := waiting(r)
	r.Pushed(pushed(t, s.number, 0, "a", "b"))
	r.Pushed(pushed(t, s.number, 2, "e"))   // out of order
	r.Pushed(pushed(t, s.number+1, 1, "x")) // of no stream
	r.Pushed(pushed(t, s.number, 1, "c", "d"))
	if len(s.pages) != 2 || s.pushed != 2 {
		t.Fatalf("%d pages came, want 2", len(s.pages))
	}
	for _, want := range []string{"b", "d"} {
		p, err := s.take(t.Context())
		if err != nil || string(last(p.resp, nil)) != want {
			t.Errorf("got %v, %v, want a page up to %s", p, err, want)
		}
	}
	if string(s.after) != "d" || s.queued != 0 {
		t.Errorf("the stream is behind %q with %d bytes", s.after, s.queued)
	}
}
