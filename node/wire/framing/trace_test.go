package framing

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/node/protocol/pb"
)

func TestTrace_TravelsBehindAMessage(t *testing.T) {
	want := Trace{ID: [16]byte{1, 15: 2}, Span: [8]byte{3, 7: 4}, Flags: 1}
	for _, m := range []proto.Message{&pb.StatusRequest{}, &pb.HandOverRequest{Slice: 7, To: "a"}} {
		plain, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := TraceOf(plain); ok {
			t.Errorf("%v without a trace has %+v", m, got)
		}
		with := AppendTrace(plain, want)
		if got, ok := TraceOf(with); !ok || got != want {
			t.Errorf("%v: got %+v, %v, want %+v", m, got, ok, want)
		}
		got := m.ProtoReflect().New().Interface()
		if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(with, got); err != nil || !proto.Equal(got, m) {
			t.Errorf("who knows nothing of traces reads %v (%v), want %v", got, err, m)
		}
	}
}

func TestTrace_IsNotInWhatIsTooShort(t *testing.T) {
	whole := AppendTrace(nil, Trace{})
	for n := range whole {
		if _, ok := TraceOf(whole[:n]); ok {
			t.Errorf("%d of %d bytes are a trace", n, len(whole))
		}
	}
}
