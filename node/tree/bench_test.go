package tree

import (
	"fmt"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
)

// commitChunk names its chunk: it costs what evaluation costs, but for hashing
// one manifest leaf.
func commitChunk(id uint64, a chunk.Address, size int) *pb.Operation {
	return &pb.Operation{TimeNs: 5, Op: &pb.Operation_Commit{Commit: &pb.Commit{Object: id, Extents: []*pb.Extent{
		{Length: uint64(size), ChunkSize: uint32(size), Source: &pb.Extent_Chunk{Chunk: a[:]}}}}}}
}

func BenchmarkCreate(b *testing.B) {
	w := newWorld(b, 1, 1)
	p := w.places[1]
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		op := createOp(rootID, fmt.Sprintf("file%d", i), TypeRegular|0o644)
		op.TimeNs = 5
		c := w.context(p, Principal{})
		o := Evaluate(p.over, w, c, op, nil)
		if o.Result.Kind != 0 {
			b.Fatal(fault.Kind(o.Result.Kind))
		}
		if p.serial++; p.serial%256 == 0 { // a server's overlay stays about this long
			p.over = NewOverlay(p.state)
		}
		p.over.Add(p.serial, o.Mutations)
		_ = AppendData(make([]byte, 0, DataSize(o.Mutations, o.Inline)), o.Mutations, o.Inline)
	}
}

func BenchmarkCommit16K(b *testing.B) {
	for _, hashed := range []bool{true, false} {
		name := "named chunk"
		if !hashed {
			name = "body"
		}
		b.Run(name, func(b *testing.B) {
			w := newWorld(b, 1, 1)
			p := w.places[1]
			const files = 512
			var ids [files]uint64
			for i := range ids {
				r, _ := w.run(rootID, Principal{}, 0, createOp(rootID, fmt.Sprintf("f%d", i), TypeRegular|0o644), nil)
				ids[i] = r.Attr.Object
			}
			w.flush(p)
			body := make([]byte, 16<<10)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				body[0], body[1], body[2] = byte(i), byte(i>>8), byte(i>>16)
				a := chunk.Address(body[:32])
				a[31] = 1
				i++
				op := commitChunk(ids[i%files], a, len(body))
				if !hashed {
					op = commitOp(ids[i%files], 0, len(body))
				}
				c := w.context(p, Principal{})
				o := Evaluate(p.state, w, c, op, body)
				if o.Result == nil || o.Result.Kind != 0 {
					b.Fatal(o)
				}
				_ = AppendData(make([]byte, 0, DataSize(o.Mutations, o.Inline)), o.Mutations, o.Inline)
			}
		})
	}
}
