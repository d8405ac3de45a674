package chunk

import (
	"testing"

	"pgregory.net/rapid"
)

// TestPieces_AreAllChunksInOrder parts chunks of any sizes.
func TestPieces_AreAllChunksInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOf(rapid.Uint32Range(1, MaxSize)).Draw(t, "sizes")
		next, at := 0, 0
		pieces := Pieces(sizes)
		for i, p := range pieces {
			bytes := 0
			for _, n := range sizes[p.First:][:p.Chunks] {
				bytes += int(n)
			}
			if p.First != next || p.At != at || p.Bytes != bytes || p.Chunks == 0 || p.Chunks > 1 && p.Bytes > PieceSize {
				t.Fatalf("piece %d is %+v, behind %d chunks of %d bytes", i, p, next, at)
			}
			next, at = next+p.Chunks, at+p.Bytes
			if next < len(sizes) && p.Bytes+int(sizes[next]) <= PieceSize {
				t.Fatalf("piece %d has room for the next chunk", i)
			}
		}
		if next != len(sizes) {
			t.Fatalf("%d chunks of %d", next, len(sizes))
		}
	})
}
