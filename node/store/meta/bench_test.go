package meta

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"cartwheel.dev/geo-config/ids"
)

func objectKey(i int) []byte {
	return binary.BigEndian.AppendUint64([]byte("o"), uint64(i))
}

func benchDB(b *testing.B, cache int64) *DB {
	b.Helper()
	db, err := Open(b.TempDir(), Options{ValueCacheBytes: cache})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	return db
}

// BenchmarkApply applies creates as a server does: per entry a new name, a new
// object, the directory changed, and a result; 50 entries to a batch.
func BenchmarkApply(b *testing.B) {
	db := benchDB(b, 0)
	value := make([]byte, 160)
	for i := 0; i < b.N; {
		batch := db.NewBatch()
		for range 50 {
			i++
			ts := uint64(i)
			for _, k := range [][]byte{fmt.Appendf(nil, "e%d", i), objectKey(i), objectKey(i % 20)} {
				if err := batch.Put(1, k, value, ts); err != nil {
					b.Fatal(err)
				}
			}
			if err := batch.Set(1, []byte("result"), value[:40]); err != nil {
				b.Fatal(err)
			}
		}
		if err := batch.SetApplied(1, ids.Serial(i)); err != nil {
			b.Fatal(err)
		}
		if err := batch.Commit(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "entries/s")
}

// BenchmarkGet reads among 200,000 keys, with and without the value cache.
func BenchmarkGet(b *testing.B) {
	for _, cache := range []int64{-1, 0} {
		for _, hot := range []int{2000, 200000} {
			b.Run(fmt.Sprintf("cache=%v/keys=%d", cache == 0, hot), func(b *testing.B) { benchGet(b, cache, hot) })
		}
	}
}

func benchGet(b *testing.B, cache int64, hot int) {
	db := benchDB(b, cache)
	for i := 0; i < 200000; {
		batch := db.NewBatch()
		for range 1000 {
			if err := batch.Put(1, objectKey(i), make([]byte, 160), 1); err != nil {
				b.Fatal(err)
			}
			i++
		}
		if err := batch.Commit(); err != nil {
			b.Fatal(err)
		}
	}
	if err := db.Flush(context.Background()); err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	view := db.Slice(1)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if _, ok, err := view.Get(objectKey(rng.IntN(hot))); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}

// BenchmarkUnlink applies removals of files as a server does: per entry a name
// and an object gone, the directory and the slice's state changed, and a row for
// the collector; 3 entries to a batch.
func BenchmarkUnlink(b *testing.B) {
	db := benchDB(b, 0)
	value := make([]byte, 120)
	name := func(i int) []byte { return fmt.Appendf(nil, "e%08d/f%06d", i%8, i/8) }
	for i := 0; i < b.N; {
		batch := db.NewBatch()
		for n := 0; n < 100 && i < b.N; n, i = n+1, i+1 {
			for _, k := range [][]byte{name(i), objectKey(i)} {
				if err := batch.Put(1, k, value, uint64(i)); err != nil {
					b.Fatal(err)
				}
			}
		}
		if err := batch.Commit(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; {
		batch := db.NewBatch()
		for n := 0; n < 3 && i < b.N; n, i = n+1, i+1 {
			unlink(b, batch, name(i), i, uint64(b.N+i), value)
		}
		if err := batch.SetApplied(1, ids.Serial(i)); err != nil {
			b.Fatal(err)
		}
		if err := batch.Commit(); err != nil {
			b.Fatal(err)
		}
	}
}

func unlink(b *testing.B, batch *Batch, name []byte, i int, ts uint64, value []byte) {
	b.Helper()
	dead := binary.BigEndian.AppendUint64([]byte("d"), ts)
	for _, err := range []error{
		batch.Delete(1, name, ts), batch.Delete(1, objectKey(i), ts), batch.Put(1, objectKey(-1-i%8), value, ts),
		batch.Set(1, []byte("s"), value[:12]), batch.Set(1, dead, value[:33]),
	} {
		if err != nil {
			b.Fatal(err)
		}
	}
}
