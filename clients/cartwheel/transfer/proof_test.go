package transfer

import (
	"bytes"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
)

func TestProofs_FollowChunksThroughParts(t *testing.T) {
	nonce := bytes.Repeat([]byte{7}, chunk.ProofSize)
	body := [][]byte{[]byte("ab"), []byte("cdefg"), []byte("h")}
	sizes := []uint32{3, 4, 1}
	got, err := proofs(nonce, sizes, body)
	if err != nil {
		t.Fatal(err)
	}
	var want []byte
	for _, c := range []string{"abc", "defg", "h"} {
		proof := chunk.Prove([32]byte(nonce), []byte(c))
		want = append(want, proof[:]...)
	}
	if !bytes.Equal(got, want) {
		t.Error("a proof is not of its chunk's bytes")
	}
}

func TestProofs_NeedTheWholeBody(t *testing.T) {
	nonce := bytes.Repeat([]byte{7}, chunk.ProofSize)
	if _, err := proofs(nonce, []uint32{3}, [][]byte{[]byte("ab")}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a short body: %v, want Invalid", err)
	}
	if got, err := proofs(nil, []uint32{3}, [][]byte{[]byte("abc")}); got != nil || err != nil {
		t.Errorf("without a nonce: %v, %v", got, err)
	}
}
