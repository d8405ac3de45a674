package chunks_test

import (
	"context"
	"testing"
	"time"

	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
)

// TestProved_OnlyAProofPinsAChunk asks for chunks that are here and not pinned
// any more. A user without their bytes pins none.
func TestProved_OnlyAProofPinsAChunk(t *testing.T) {
	x := newTaker(t)
	body := x.chunk()
	a, err := x.put("ann", body)
	if err != nil {
		t.Fatal(err)
	}
	x.now += 3 * time.Hour
	nonce := [32]byte{1}
	have := func(proof [chunk.ProofSize]byte) bool {
		t.Helper()
		answer, err := x.Proved(context.Background(), &pb.HaveRequest{Addresses: a[:], Proofs: proof[:]}, nonce)
		if err != nil || len(answer.Missing) != 1 {
			t.Fatalf("got %v, %v", answer, err)
		}
		return answer.Missing[0]&1 == 0
	}
	if have(chunk.Prove(nonce, body[1:])) || x.Packs.Pinned(a) {
		t.Errorf("without a proof the chunk is told to be here, or pinned: %v", x.Packs.Pinned(a))
	}
	if !have(chunk.Prove(nonce, body)) || !x.Packs.Pinned(a) {
		t.Errorf("with a proof the chunk is told to be missing, or not pinned: %v", x.Packs.Pinned(a))
	}
}
