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

// keepInline lets later evaluations read the chunks of an entry proposed to a
// slice. Its data holds them as long as it is not applied.
func (l *Loop) keepInline(id ids.Slice, op *Operation, data []byte) {
	if len(op.outcome.Inline) == 0 {
		return
	}
	_, inline, err := tree.DecodeData(data)
	if err != nil {
		return // encoded a moment ago: it decodes
	}
	op.outcome.Inline = inline // the request's memory may go before these do
	for i := range inline {
		c := l.inline[inline[i].Address]
		if c == nil {
			c = &inlineChunk{data: inline[i].Data, uses: map[ids.Slice]int{}}
			l.inline[inline[i].Address] = c
		}
		c.uses[id]++
	}
}

// dropInline forgets them: the packs have them now, or never will.
func (l *Loop) dropInline(id ids.Slice, op *Operation) {
	for i := range op.outcome.Inline {
		a := op.outcome.Inline[i].Address
		if c := l.inline[a]; c != nil {
			if c.uses[id]--; c.uses[id] == 0 {
				delete(c.uses, id)
			}
			if len(c.uses) == 0 {
				delete(l.inline, a)
			}
		}
	}
}

// Node reads a manifest node for an evaluation; it makes Loop a chunk.Reader.
func (l *Loop) Node(a chunk.Address) ([]byte, error) {
	if c := l.inline[a]; c != nil {
		return c.data, nil
	}
	return l.o.Chunks.Node(a)
}

// has reports whether an entry that is proposed to a slice may name a chunk: it is
// in the packs, or comes with an entry that is before it in the same log. One
// that comes with an entry of another slice may be refused with it.
func (l *Loop) has(id ids.Slice, a chunk.Address) bool {
	c := l.inline[a]
	return c != nil && c.uses[id] > 0 || l.o.Chunks.Has(a)
}
