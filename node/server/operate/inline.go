package operate

import (
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/tree"
)

// inlineChunk is content of a proposed entry that is not applied yet.
type inlineChunk struct {
	data []byte
	uses int // entries that carry it
}

// keepInline lets later evaluations read the chunks of a proposed entry. Its
// data holds them as long as it is not applied.
func (l *Loop) keepInline(op *Operation, data []byte) {
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
			c = &inlineChunk{data: inline[i].Data}
			l.inline[inline[i].Address] = c
		}
		c.uses++
	}
}

// dropInline forgets them: the packs have them now, or never will.
func (l *Loop) dropInline(op *Operation) {
	for i := range op.outcome.Inline {
		a := op.outcome.Inline[i].Address
		if c := l.inline[a]; c != nil {
			if c.uses--; c.uses == 0 {
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

func (l *Loop) has(a chunk.Address) bool { return l.inline[a] != nil || l.o.Chunks.Has(a) }
