package chunk

import "github.com/zeebo/blake3"

// ProofSize is the length of a proof in bytes.
const ProofSize = 32

// Prove returns the proof that its maker has a chunk, which lies in parts end to
// end: BLAKE3 of its bytes keyed with a nonce of the node that asks for it. A
// chunk's address does not lead to it.
func Prove(nonce [32]byte, parts ...[]byte) (proof [ProofSize]byte) {
	h, err := blake3.NewKeyed(nonce[:])
	if err != nil {
		return proof // not reached: the key has 32 bytes
	}
	for _, p := range parts {
		_, _ = h.Write(p) // a hash never fails
	}
	h.Sum(proof[:0])
	return proof
}
