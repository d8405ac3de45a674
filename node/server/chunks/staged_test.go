package chunks_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/chunks"
	"cartwheel.dev/node/store/disk"
	"cartwheel.dev/node/store/pack"
)

// taker is a content server whose users may stage 1 MiB for 1 to 2 hours.
type taker struct {
	*chunks.Server
	t    *testing.T
	now  time.Duration
	next int
}

func newTaker(t *testing.T) *taker {
	t.Helper()
	x := &taker{t: t}
	clock := func() time.Duration { return x.now }
	packs, err := pack.Open(disk.NewMemory(), pack.Options{Clock: clock, ReserveBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = packs.Close() }) // nothing reads it any more
	x.Server = &chunks.Server{Self: "here", Packs: packs, Nodes: chunks.NewNodes(packs, 1<<20), Full: func() bool { return false },
		Staged: chunks.NewStaged(1<<20, time.Hour, clock)}
	return x
}

// chunk makes a chunk of 64 KiB that nobody has.
func (x *taker) chunk() []byte {
	x.next++
	return []byte(strings.Repeat(fmt.Sprintf("%016d", x.next), 4096))
}

func (x *taker) put(user string, body []byte) (chunk.Address, error) {
	a := chunk.Sum(body)
	_, err := x.Put(context.Background(), "", user, &pb.PutRequest{Addresses: a[:], Sizes: []uint32{uint32(len(body))}}, body)
	return a, err
}

// fill has a user store as many new chunks as it may, and returns them.
func (x *taker) fill(user string) []chunk.Address {
	x.t.Helper()
	var out []chunk.Address
	for {
		a, err := x.put(user, x.chunk())
		switch {
		case err == nil:
			out = append(out, a)
		case !fault.Is(err, fault.Overloaded):
			x.t.Fatal(err)
		default:
			return out
		}
		if len(out) > 1000 {
			x.t.Fatal("a user stored 1,000 chunks of 64 KiB that no file names; 1 MiB may be")
		}
	}
}

func TestStaged_IsBoundedForEachUser(t *testing.T) {
	x := newTaker(t)
	first := x.fill("ann")
	if len(first) != 16 {
		t.Errorf("ann stored %d chunks of 64 KiB, want the 16 of 1 MiB", len(first))
	}
	_, err := x.put("ann", x.chunk())
	if text := fmt.Sprint(err); !strings.Contains(text, "max_user_staged_bytes") || !strings.Contains(text, "ann") || !strings.Contains(text, "commit") {
		t.Errorf("the refusal names neither the limit nor what to do: %v", err)
	}
	if n := len(x.fill("bob")); n != 16 {
		t.Errorf("beside ann bob stored %d chunks, want 16", n)
	}
	if _, err := x.put("", x.chunk()); err != nil {
		t.Errorf("what a node passes on: %v", err)
	}

	x.Staged.Committed(append(first[3][:], first[7][:]...))
	x.Staged.Committed(first[3][:]) // counts once
	if n := len(x.fill("ann")); n != 2 {
		t.Errorf("after a commit of two chunks ann stored %d more", n)
	}
}

func TestStaged_CountsNoKnownOrDamagedChunks(t *testing.T) {
	x := newTaker(t)
	body := x.chunk()
	for range 100 {
		if _, err := x.put("ann", body); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		a := chunk.Sum(x.chunk())
		_, err := x.Put(t.Context(), "", "ann", &pb.PutRequest{Addresses: a[:], Sizes: []uint32{uint32(len(body))}}, body)
		if !fault.Is(err, fault.Corrupt) {
			t.Fatalf("a chunk under another name: %v", err)
		}
	}
	if n := len(x.fill("ann")); n != 15 {
		t.Errorf("beside one chunk ann stored %d of 64 KiB, want 15", n)
	}
}

func TestStaged_CountsSmallChunksForWhatTheyTake(t *testing.T) {
	x := newTaker(t)
	n := 0
	for ; n < 1000; n++ {
		if _, err := x.put("ann", fmt.Appendf(nil, "small %d", n)); err != nil {
			break
		}
	}
	if n != 64 {
		t.Errorf("ann stored %d small chunks in 1 MiB, want 64", n)
	}
}

func TestStaged_ForgetsUncommittedChunksInTime(t *testing.T) {
	x := newTaker(t)
	x.now = 30 * time.Minute
	x.fill("ann")
	x.now = 61 * time.Minute
	if n := len(x.fill("ann")); n != 0 {
		t.Errorf("within one hour of the last ann stored %d more", n)
	}
	x.now = 122 * time.Minute
	if n := len(x.fill("ann")); n != 16 {
		t.Errorf("after two hours ann stored %d, want 16", n)
	}
	x.now = 900 * time.Minute
	if n := len(x.fill("ann")); n != 16 {
		t.Errorf("after a long time ann stored %d, want 16", n)
	}
}
