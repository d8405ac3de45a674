package tree

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
)

// TestWrite_KeepsManifestsOfSeveralLevels splices a file of several manifest
// levels at random, and compares content and references all the way.
func TestWrite_KeepsManifestsOfSeveralLevels(t *testing.T) {
	p := newPair(t, 3, 1)
	n, _, _ := p.twin.create(Principal{}, p.twin.root, "big", TypeRegular|0o644, 0, "", true, false)
	r, _ := p.run(p.twin.root.id, Principal{}, 0, &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{
		Dir: uint64(p.twin.root.id), Name: []byte("big"), Mode: n.mode, Exclusive: true}}}, nil)
	p.named(n, r.Attr.Object)
	for i := range 60 {
		switch i % 10 {
		case 9:
			size := uint64(p.rng.IntN(len(n.data) + 1))
			p.both("truncate", func() fault.Kind { return p.twin.truncate(Principal{}, n, int(size)) },
				Principal{}, 0, n.id, setAttr(n, &pb.SetAttr{Size: &size}), nil)
		default:
			p.spliceMany(n, 1+p.rng.IntN(700))
		}
		if i%20 == 19 {
			p.compare()
		}
		if a, err := GetAttr(p.places[1].over, n.id, true, false); err != nil || !bytes.Equal(p.content(a), n.data) {
			t.Fatalf("step %d: content differs: %v", i, err)
		}
	}
	p.compare()
}

// spliceMany commits many small pieces of stored chunks.
func (p *pair) spliceMany(n *thing, count int) {
	p.t.Helper()
	c := &pb.Commit{Object: uint64(n.id)}
	at := p.rng.IntN(len(n.data) + 1)
	from := at
	var data []byte
	for range count {
		piece := make([]byte, 1+p.rng.IntN(40))
		fill(p.rng, piece)
		a := chunk.Sum(piece)
		p.chunks[a] = piece
		c.Extents = append(c.Extents, &pb.Extent{Offset: uint64(at), Length: uint64(len(piece)),
			Source: &pb.Extent_Chunk{Chunk: a[:]}, ChunkSize: uint32(len(piece))})
		data = append(data, piece...)
		at += len(piece)
	}
	p.both("write", func() fault.Kind { return p.twin.write(Principal{}, n, from, data) },
		Principal{}, 0, n.id, &pb.Operation{Op: &pb.Operation_Commit{Commit: c}}, nil)
}

// TestWrite_CrossesTheInlineLimit takes a file over the limit of what lies
// beside its record and back, and checks what an entry would carry.
func TestWrite_CrossesTheInlineLimit(t *testing.T) {
	w := newWorld(t, 1, 1)
	p := w.places[1]
	r, _ := w.run(rootID, Principal{}, 0, createOp(rootID, "f", TypeRegular|0o644), nil)
	id := r.Attr.Object
	rng := rand.New(rand.NewPCG(1, 1))
	body := make([]byte, 300_000)
	fill(rng, body)
	write := func(offset uint64, b []byte) Outcome {
		c := w.context(p, Principal{})
		o := Evaluate(p.over, w, c, commitOp(id, offset, len(b)), b)
		if !o.Done() {
			t.Fatalf("not done: %+v", o)
		}
		w.commit(p, c, o)
		return o
	}
	if o := write(0, body[:MaxInline]); len(o.Inline) != 0 || len(o.Needs) != 0 || o.Result.Attr.Content.Root != nil {
		t.Errorf("a file of %d bytes does not lie beside its record", MaxInline)
	}
	o := write(MaxInline, body[MaxInline:MaxInline+1])
	if len(o.Inline) != 3 || o.Result.Attr.Content.Root == nil { // the old bytes, the new byte, the leaf
		t.Errorf("one byte more: %d chunks, want 3", len(o.Inline))
	}
	if got := w.content(o.Result.Attr); !bytes.Equal(got, body[:MaxInline+1]) {
		t.Error("the content changed on its way out of the record")
	}
	o = write(0, body)
	if got := w.content(o.Result.Attr); !bytes.Equal(got, body) {
		t.Error("a body of more than a chunk is not what was written")
	}
	for _, c := range o.Inline {
		if len(c.Data) > chunk.MaxSize {
			t.Errorf("a chunk of %d bytes", len(c.Data))
		}
	}
}
