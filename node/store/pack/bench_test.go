package pack

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/store/disk"
)

func benchPacks(b *testing.B) *Packs {
	b.Helper()
	d, err := disk.OpenReal(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	p, err := Open(d, Options{Clock: func() time.Duration { return time.Since(start) }})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { p.Close(); d.Close() })
	return p
}

func numbered(i int) (a chunk.Address) {
	binary.LittleEndian.PutUint64(a[:], uint64(i)*0x9e3779b97f4a7c15)
	return a
}

// BenchmarkPut writes batches of 64 KiB chunks, each durable on return.
func BenchmarkPut(b *testing.B) {
	for _, chunks := range []int{1, 16, 64} {
		for _, writers := range []int{1, 4} {
			b.Run(fmt.Sprintf("chunks=%d/writers=%d", chunks, writers), func(b *testing.B) {
				p := benchPacks(b)
				body := make([]byte, 64<<10)
				b.SetBytes(int64(chunks * len(body)))
				var wg sync.WaitGroup
				b.ResetTimer()
				for w := range writers {
					wg.Go(func() {
						as, bs := make([]chunk.Address, chunks), make([][]byte, chunks)
						for i := w; i < b.N; i += writers {
							for k := range as {
								as[k], bs[k] = numbered(i*chunks+k+1), body
							}
							if err := p.Put(context.Background(), as, bs); err != nil {
								b.Error(err)
							}
						}
					})
				}
				wg.Wait()
			})
		}
	}
}

// BenchmarkPutLazy stages 16 KiB chunks as small files bring them.
func BenchmarkPutLazy(b *testing.B) {
	p := benchPacks(b)
	as, bs := make([]chunk.Address, 1), [][]byte{make([]byte, 16<<10)}
	b.SetBytes(16 << 10)
	for i := range b.N {
		as[0] = numbered(i + 1)
		if err := p.PutLazy(as, bs); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRead reads whole chunks in order and 4 KiB pieces at random.
func BenchmarkRead(b *testing.B) {
	const chunks = 16384 // 1 GiB
	p := benchPacks(b)
	body := make([]byte, 64<<10)
	for i := 0; i < chunks; i += 64 {
		as, bs := make([]chunk.Address, 64), make([][]byte, 64)
		for k := range as {
			as[k], bs[k] = numbered(i+k+1), body
		}
		if err := p.Put(context.Background(), as, bs); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("sequential", func(b *testing.B) {
		ranges := make([]Range, 16)
		for i := range ranges {
			ranges[i].Into = make([]byte, len(body))
		}
		b.SetBytes(int64(len(ranges) * len(body)))
		for n := range b.N {
			for i := range ranges {
				ranges[i].Address = numbered((n*16+i)%chunks + 1)
			}
			if err := p.Read(context.Background(), ranges); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, readers := range []int{1, 8} {
		b.Run(fmt.Sprintf("random4k/readers=%d", readers), func(b *testing.B) {
			var wg sync.WaitGroup
			for w := range readers {
				wg.Go(func() {
					rng := rand.New(rand.NewPCG(uint64(w), 1))
					r := []Range{{Into: make([]byte, 4096)}}
					for i := w; i < b.N; i += readers {
						r[0].Address, r[0].Offset = numbered(rng.IntN(chunks)+1), rng.IntN(15)*4096
						if err := p.Read(context.Background(), r); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "reads/s")
		})
	}
}
