package content_test

import (
	"context"
	"testing"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/content/contenttest"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
)

// void is a Remote that takes everything and keeps nothing, so that benchmarks
// measure the engine alone. Reads give one large file of equal chunks.
type void struct {
	data []byte
}

const voidChunk = 64 << 10

func (v *void) Commit(_ context.Context, c content.Commit) (*pb.Result, error) {
	return &pb.Result{Attr: &pb.Attr{Object: uint64(c.Object), Version: 1, Content: &pb.Content{}}}, nil
}

func (v *void) HaveChunks(_ context.Context, _ ids.Object, a []chunk.Address, _ []uint32, _ [][]byte) ([]bool, error) {
	missing := make([]bool, len(a))
	for i := range missing {
		missing[i] = true
	}
	return missing, nil
}

func (v *void) PutChunks(context.Context, ids.Object, []chunk.Address, []uint32, [][]byte) error {
	return nil
}

func (v *void) GetChunks(_ context.Context, _ ids.Object, parts []content.Part, _ int) ([]byte, error) {
	n := 0
	for _, p := range parts {
		n += int(p.Length)
	}
	return v.data[:n], nil
}

func (v *void) Range(_ context.Context, _ ids.Object, q content.Query) (content.Answer, error) {
	a := content.Answer{}
	if q.Data {
		a.Data = v.data[:q.Length]
	}
	if q.Extents {
		var extents []chunk.Extent
		for off := q.Offset; off < q.Offset+q.Length; off += voidChunk {
			var address chunk.Address
			address[0], address[1], address[2] = 1, byte(off/voidChunk), byte(off/voidChunk>>8)
			extents = append(extents, chunk.Whole(off, address, voidChunk))
		}
		a.Extents = chunk.AppendExtents(nil, extents)
	}
	return a, nil
}

func (v *void) Version(_ context.Context, o ids.Object) (*pb.Attr, error) {
	return &pb.Attr{Object: uint64(o), Version: 1, Content: &pb.Content{}}, nil
}

func benchmark(b *testing.B, r content.Remote, o content.Options) (*content.Engine, context.Context) {
	e := content.New(r, o)
	ctx := context.Background()
	b.Cleanup(func() { _ = e.Close(ctx) }) // nothing is dirty
	b.ReportAllocs()
	return e, ctx
}

// BenchmarkSmallFile is open, write, close of 16 KiB.
func BenchmarkSmallFile(b *testing.B) {
	e, ctx := benchmark(b, &void{}, content.Options{})
	data := make([]byte, 16<<10)
	i := ids.Object(1)
	for b.Loop() {
		i++
		h := e.Open(i, &pb.Attr{Object: uint64(i)}, content.Open{})
		if err := h.WriteAt(ctx, data, 0); err != nil {
			b.Fatal(err)
		}
		if err := h.Flush(ctx); err != nil {
			b.Fatal(err)
		}
		h.Close()
	}
}

// BenchmarkStream is a sequential write: one operation is 1 MiB.
func BenchmarkStream(b *testing.B) {
	e, ctx := benchmark(b, &void{}, content.Options{})
	data := random(1, 64<<20)
	h := e.Open(1, &pb.Attr{Object: 1}, content.Open{})
	b.SetBytes(1 << 20)
	off := 0
	for b.Loop() {
		if err := h.WriteAt(ctx, data[off%len(data):][:1<<20], uint64(off)); err != nil {
			b.Fatal(err)
		}
		off += 1 << 20
	}
	if err := h.Flush(ctx); err != nil {
		b.Fatal(err)
	}
	h.Close()
}

// BenchmarkOverwrite is a random overwrite of 4 KiB.
func BenchmarkOverwrite(b *testing.B) {
	e, ctx := benchmark(b, &void{}, content.Options{})
	data := make([]byte, 4096)
	h := e.Open(1, &pb.Attr{Object: 1}, content.Open{})
	i := uint64(0)
	for b.Loop() {
		i++
		if err := h.WriteAt(ctx, data, i*7919%65536*4096); err != nil {
			b.Fatal(err)
		}
	}
	if err := h.Flush(ctx); err != nil {
		b.Fatal(err)
	}
	h.Close()
}

func large(size uint64) *pb.Attr {
	root := chunk.Sum([]byte("root"))
	return &pb.Attr{Object: 1, Version: 1, Size: size, Content: &pb.Content{Size: size, Root: root[:], Height: 2, Stored: size}}
}

// BenchmarkReadSequential reads a cold file in order: one operation is 128 KiB.
func BenchmarkReadSequential(b *testing.B) {
	e, ctx := benchmark(b, &void{data: make([]byte, 4<<20)}, content.Options{})
	const size = 2 << 30
	h := e.Open(1, large(size), content.Open{})
	buf := make([]byte, 128<<10)
	b.SetBytes(int64(len(buf)))
	off := uint64(0)
	for b.Loop() {
		if _, err := h.ReadAt(ctx, buf, off); err != nil {
			b.Fatal(err)
		}
		off = (off + uint64(len(buf))) % size
	}
	h.Close()
}

// BenchmarkReadRandom reads 4 KiB that are in no cache.
// BenchmarkReadCold reads a stream whose chunks come from the nodes each time, and
// are checked.
func BenchmarkReadCold(b *testing.B) {
	cluster := contenttest.New()
	data := random(1, 32<<20)
	cluster.Write(object, 0, data)
	e := content.New(cluster, content.Options{CacheBytes: 6 << 20})
	ctx := context.Background()
	defer e.Close(ctx)
	h := e.Open(object, cluster.Attr(object), content.Open{})
	defer h.Close()
	buf := make([]byte, 128<<10)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		for off := 0; off < len(data); off += len(buf) {
			if _, err := h.ReadAt(ctx, buf, uint64(off)); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkReadRandom(b *testing.B) {
	e, ctx := benchmark(b, &void{data: make([]byte, 4<<20)}, content.Options{})
	h := e.Open(1, large(1<<30), content.Open{})
	buf := make([]byte, 4096)
	i := uint64(0)
	for b.Loop() {
		i++
		if _, err := h.ReadAt(ctx, buf, i*7919%262144*4096); err != nil {
			b.Fatal(err)
		}
	}
	h.Close()
}

// BenchmarkReadSmall reads a cached file of 16 KiB.
func BenchmarkReadSmall(b *testing.B) {
	cluster := contenttest.New()
	attr := cluster.Write(1, 0, make([]byte, 16<<10))
	e, ctx := benchmark(b, cluster, content.Options{})
	buf := make([]byte, 16<<10)
	for b.Loop() {
		h := e.Open(1, attr, content.Open{})
		if _, err := h.ReadAt(ctx, buf, 0); err != nil {
			b.Fatal(err)
		}
		h.Close()
	}
}
