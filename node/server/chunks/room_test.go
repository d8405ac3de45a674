package chunks_test

import (
	"context"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/chunks"
)

func TestGet_WaitsForRoomBeforeItReads(t *testing.T) {
	x := newTaker(t)
	body := x.chunk()
	a, err := x.put("", body)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	room := chunks.Room{Wait: func(_ context.Context, bytes int) error {
		asked += bytes
		return nil
	}}
	_, got, done, err := x.Get(t.Context(), &pb.GetRequest{Addresses: a[:]}, room)
	if err != nil || len(got) != len(body) || asked != len(body) {
		t.Errorf("%d bytes came, and room was asked for %d: %v", len(got), asked, err)
	}
	done()
	refused := fault.E(fault.Overloaded, "", "", "no room")
	room.Wait = func(context.Context, int) error { return refused }
	if _, got, _, err := x.Get(t.Context(), &pb.GetRequest{Addresses: a[:]}, room); !fault.Is(err, fault.Overloaded) || got != nil {
		t.Errorf("without room %d bytes came: %v", len(got), err)
	}
}

func TestGet_DoesNotWaitForNothing(t *testing.T) {
	x := newTaker(t)
	a := chunk.Sum([]byte("nobody has it"))
	room := chunks.Room{Wait: func(context.Context, int) error {
		t.Error("room was asked for nothing")
		return nil
	}}
	if answer, _, _, err := x.Get(t.Context(), &pb.GetRequest{Addresses: a[:]}, room); err != nil || len(answer.Missing) == 0 {
		t.Errorf("got %v, %v", answer, err)
	}
}

// TestGet_CutsAnAnswerThatMayBeCut asks for four chunks of 64 KiB where there is room
// for two and a half.
func TestGet_CutsAnAnswerThatMayBeCut(t *testing.T) {
	x := newTaker(t)
	var all []byte
	for range 4 {
		a, err := x.put("", x.chunk())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, a[:]...)
	}
	for _, c := range []struct {
		some  bool
		most  int
		bytes int
	}{{true, 160 << 10, 128 << 10}, {true, 1, 64 << 10}, {true, 0, 256 << 10}, {false, 160 << 10, 256 << 10}} {
		_, body, done, err := x.Get(t.Context(), &pb.GetRequest{Addresses: all, Some: c.some}, chunks.Room{Most: c.most})
		if err != nil || len(body) != c.bytes {
			t.Errorf("%+v: %d bytes, %v", c, len(body), err)
			continue
		}
		done()
	}
}

// TestPut_AsksForTheWayToTheNextNode names who asks and who is next.
func TestPut_AsksForTheWayToTheNextNode(t *testing.T) {
	x := newTaker(t)
	asked := make(chan string, 1)
	x.Push = func(_ context.Context, to, asker string, bytes int) error {
		asked <- to + " for " + asker
		return fault.E(fault.Closed, "", "", "the node ends")
	}
	body := x.chunk()
	a := chunk.Sum(body)
	answer, err := x.Put(t.Context(), "client", "", &pb.PutRequest{Addresses: a[:], Sizes: []uint32{uint32(len(body))}, Chain: []string{"next"}}, body)
	if err != nil || len(answer.Stored) != 1 {
		t.Errorf("got %v, %v; want it here alone", answer, err)
	}
	if got := <-asked; got != "next for client" {
		t.Errorf("got %q", got)
	}
}
