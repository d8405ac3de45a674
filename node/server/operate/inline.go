package operate

import (
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/tree"
)

// inlineChunk is content of a proposed entry that is not applied yet.
type inlineChunk struct {
	data []byte
	uses map[ids.Slice]int // entries that carry it; no slice is there with 0
}

// inlineChunks are the chunks of proposed entries that the packs may not have yet.
// They belong to the loop's goroutine.
type inlineChunks struct {
	packs Chunks
	by    map[chunk.Address]*inlineChunk
}

func newInlineChunks(packs Chunks) *inlineChunks {
	return &inlineChunks{packs: packs, by: map[chunk.Address]*inlineChunk{}}
}

// keep lets later evaluations read the chunks of an entry proposed to a
// slice. Its data holds them as long as it is not applied.
func (c *inlineChunks) keep(id ids.Slice, op *Operation, data []byte) {
	if len(op.outcome.Inline) == 0 {
		return
	}
	_, inline, err := tree.DecodeData(data)
	if err != nil {
		return // encoded a moment ago: it decodes
	}
	op.outcome.Inline = inline // the request's memory may go before these do
	for i := range inline {
		x := c.by[inline[i].Address]
		if x == nil {
			x = &inlineChunk{data: inline[i].Data, uses: map[ids.Slice]int{}}
			c.by[inline[i].Address] = x
		}
		x.uses[id]++
	}
}

// drop forgets them: the packs have them now, or never will.
func (c *inlineChunks) drop(id ids.Slice, op *Operation) {
	for i := range op.outcome.Inline {
		a := op.outcome.Inline[i].Address
		if x := c.by[a]; x != nil {
			if x.uses[id]--; x.uses[id] == 0 {
				delete(x.uses, id)
			}
			if len(x.uses) == 0 {
				delete(c.by, a)
			}
		}
	}
}

// Node reads a manifest node for an evaluation; it implements chunk.Reader.
func (c *inlineChunks) Node(a chunk.Address) ([]byte, error) {
	if x := c.by[a]; x != nil {
		return x.data, nil
	}
	return c.packs.Node(a)
}

// has reports whether an entry that is proposed to a slice may name a chunk: it is
// in the packs, or comes with an entry that is before it in the same log. One
// that comes with an entry of another slice may be refused with it.
func (c *inlineChunks) has(id ids.Slice, a chunk.Address) bool {
	x := c.by[a]
	return x != nil && x.uses[id] > 0 || c.packs.Has(a)
}

// missing returns which of the addresses an entry of a slice may not name yet.
func (c *inlineChunks) missing(id ids.Slice, addresses []byte) []chunk.Address {
	var out []chunk.Address
	for ; len(addresses) >= chunk.AddressSize; addresses = addresses[chunk.AddressSize:] {
		if a := chunk.Address(addresses[:chunk.AddressSize]); !c.has(id, a) {
			out = append(out, a)
		}
	}
	return out
}
