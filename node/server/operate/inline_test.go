package operate

import (
	"testing"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/tree"
)

// emptyPacks have nothing.
type emptyPacks struct{ Chunks }

func (emptyPacks) Has(chunk.Address) bool { return false }

// TestInline_ChunksBelongToOneSlice keeps a chunk that comes with an entry of
// one slice. The entry may be refused yet, so that the chunk is not here for an
// entry of another slice.
func TestInline_ChunksBelongToOneSlice(t *testing.T) {
	const one, other ids.Slice = 6, 4
	c := newInlineChunks(emptyPacks{})
	inline := []tree.Chunk{{Address: chunk.Sum([]byte("node")), Data: []byte("node")}}
	op := &Operation{}
	op.outcome.Inline = inline
	c.keep(one, op, tree.AppendData(nil, nil, inline))
	address := inline[0].Address
	if len(c.missing(one, address[:])) != 0 {
		t.Error("it is missing for the slice whose entry brings it")
	}
	if len(c.missing(other, address[:])) != 1 {
		t.Error("it is here for another slice")
	}
	c.drop(one, op)
	if len(c.missing(one, address[:])) != 1 || len(c.by) != 0 {
		t.Error("it is here after its entry was refused")
	}
}
