package meta

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

func opened(t *testing.T, fs vfs.FS) *DB {
	t.Helper()
	db, err := Open("meta", Options{FS: fs, MemtableBytes: 256 << 10})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// twin is the naive model: for each slice and key all versions by time.
type twin map[ids.Slice]map[string][]version

type version struct {
	ts    uint64
	value string
	gone  bool
}

func (w twin) at(s ids.Slice, key string, ts uint64) (string, bool) {
	best := version{gone: true}
	for _, v := range w[s][key] {
		if v.ts <= ts {
			best = v
		}
	}
	return best.value, !best.gone
}

func (w twin) scan(s ids.Slice, from, to string, ts uint64) (out []string) {
	for _, k := range slices.Sorted(slices.Values(keys)) {
		if v, ok := w.at(s, k, ts); ok && k >= from && (to == "" || k < to) {
			out = append(out, k+"="+v)
		}
	}
	return out
}

// keys holds prefixes of each other and zero bytes on purpose.
var keys = []string{"", "a", "a\x00", "a\x00\x01", "a\x00\xff", "ab", "b", "b\x00\x00", "\x00", "\xff", "\xff\xff", "long key with words"}

// TestVersions_EqualTheModel plays random batches and compares reads of now, of
// any time, and scans with the model.
func TestVersions_EqualTheModel(t *testing.T) {
	for seed := range seeds(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { playVersions(t, seed) })
	}
}

func playVersions(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	db := opened(t, vfs.NewMem())
	defer db.Close()
	w := twin{1: {}, 2: {}, ids.MaxSlice: {}}
	list := []ids.Slice{1, 2, ids.MaxSlice}
	ts := uint64(10)
	for range 50 {
		b := db.NewBatch()
		for range 1 + rng.IntN(6) {
			s, k := list[rng.IntN(3)], keys[rng.IntN(len(keys))]
			ts += uint64(rng.IntN(3))
			alter(t, b, w, s, k, ts, rng)
		}
		must(t, b.Commit())
		if rng.IntN(20) == 0 {
			must(t, db.Flush(context.Background()))
		}
		for range 3 {
			at := ts - uint64(rng.IntN(int(min(ts, 60))))
			if rng.IntN(3) == 0 {
				at = Newest
			}
			compare(t, db, w, list[rng.IntN(3)], at, rng)
		}
	}
}

func alter(t *testing.T, b *Batch, w twin, s ids.Slice, k string, ts uint64, rng *rand.Rand) {
	t.Helper()
	if rng.IntN(3) == 0 {
		must(t, b.Delete(s, []byte(k), ts))
		w[s][k] = append(w[s][k], version{ts: ts, gone: true})
		return
	}
	v := fmt.Sprint("v", rng.IntN(1000))
	must(t, b.Put(s, []byte(k), []byte(v), ts))
	w[s][k] = append(w[s][k], version{ts: ts, value: v})
}

func compare(t *testing.T, db *DB, w twin, s ids.Slice, at uint64, rng *rand.Rand) {
	t.Helper()
	view := db.SliceAt(s, at)
	for _, k := range keys {
		got, ok, err := view.Get([]byte(k))
		must(t, err)
		if want, have := w.at(s, k, at); ok != have || string(got) != want {
			t.Fatalf("slice %d key %q at %d: got %q %v, want %q %v", s, k, at, got, ok, want, have)
		}
	}
	from, to := keys[rng.IntN(len(keys))], keys[rng.IntN(len(keys))]
	if from >= to {
		to = ""
	}
	var limit []byte
	if to != "" {
		limit = []byte(to)
	}
	var got []string
	must(t, view.Scan([]byte(from), limit, func(k, v []byte) bool {
		got = append(got, string(k)+"="+string(v))
		return true
	}))
	if want := w.scan(s, from, to, at); !slices.Equal(got, want) {
		t.Fatalf("slice %d from %q to %q at %d: got %q, want %q", s, from, to, at, got, want)
	}
}

// TestBatch_CrashLosesOnlyTheLastOnes cuts the power at many moments. Exactly
// the batches up to the applied serial are left.
func TestBatch_CrashLosesOnlyTheLastOnes(t *testing.T) {
	for seed := range seeds(8) {
		rng := rand.New(rand.NewPCG(seed, 2))
		fs := vfs.NewCrashableMem()
		db := opened(t, fs)
		flushed := ids.Serial(0)
		n := ids.Serial(100 + rng.IntN(200))
		for i := ids.Serial(1); i <= n; i++ {
			b := db.NewBatch()
			must(t, b.Put(1, fmt.Appendf(nil, "key %d", i), make([]byte, 2000), uint64(i)))
			must(t, b.Put(2, []byte("counter"), binary.LittleEndian.AppendUint64(nil, uint64(i)), uint64(i)))
			must(t, b.SetApplied(1, i))
			must(t, b.SetApplied(2, i))
			must(t, b.Commit())
			if rng.IntN(60) == 0 {
				must(t, db.Flush(context.Background()))
				flushed = i
			}
		}
		after := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rng})
		must(t, db.Close())
		left := opened(t, after)
		one, err := left.Applied(1)
		must(t, err)
		two, err := left.Applied(2)
		must(t, err)
		if one != two || one < flushed || one > n {
			t.Fatalf("seed %d: applied %d and %d, flushed %d of %d", seed, one, two, flushed, n)
		}
		for i := ids.Serial(1); i <= n; i++ {
			if _, ok, err := left.Slice(1).Get(fmt.Appendf(nil, "key %d", i)); err != nil || ok != (i <= one) {
				t.Fatalf("seed %d: applied %d, key %d there: %v %v", seed, one, i, ok, err)
			}
		}
		must(t, left.Close())
	}
}

func TestBatch_SetsUnsetsAndDropsRows(t *testing.T) {
	db := opened(t, vfs.NewMem())
	defer db.Close()
	b := db.NewBatch()
	for _, s := range []ids.Slice{0, 1, 2} {
		must(t, b.Set(s, []byte("row"), []byte{byte(s)}))
		must(t, b.Set(s, []byte("row2"), []byte{byte(s)}))
		must(t, b.Put(s, []byte("k"), []byte("v"), 5))
		must(t, b.SetApplied(s, 9))
	}
	must(t, b.Unset(2, []byte("row2")))
	must(t, b.Commit())
	if _, ok, _ := db.Slice(1).Get([]byte("k")); !ok {
		t.Fatal("not there before")
	}
	b = db.NewBatch()
	must(t, b.DropSlice(1))
	must(t, b.Commit())
	if _, ok, _ := db.Slice(1).Get([]byte("k")); ok {
		t.Error("a dropped slice still has a key")
	}
	if _, ok, _ := db.Plain(1, []byte("row")); ok {
		t.Error("a dropped slice still has a row")
	}
	var got []string
	must(t, db.ScanPlain(2, nil, nil, func(k, v []byte) bool { got = append(got, string(k)); return true }))
	if !slices.Equal(got, []string{"row"}) {
		t.Errorf("got %q", got)
	}
	if s, err := db.Slices(); err != nil || !slices.Equal(s, []ids.Slice{0, 2}) {
		t.Errorf("got %v %v", s, err)
	}
}

// TestCache_IsBoundedAndNeverStale overwrites while reading.
func TestCache_IsBoundedAndNeverStale(t *testing.T) {
	db, err := Open("meta", Options{FS: vfs.NewMem(), ValueCacheBytes: 64 << 10})
	must(t, err)
	defer db.Close()
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, _, err := db.Slice(1).Get(fmt.Appendf(nil, "k%d", i%500)); err != nil {
				t.Error(err)
			}
		}
	}()
	for i := range 5000 {
		key, want := fmt.Appendf(nil, "k%d", i%500), fmt.Appendf(nil, "%d", i)
		b := db.NewBatch()
		must(t, b.Put(1, key, want, uint64(i)))
		must(t, b.Commit())
		if got, _, err := db.Slice(1).Get(key); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("got %q %v, want %q", got, err, want)
		}
	}
	close(stop)
	<-done
	for i := range db.cache.shards {
		if s := &db.cache.shards[i]; s.bytes > s.limit {
			t.Errorf("shard %d holds %d bytes, limit %d", i, s.bytes, s.limit)
		}
	}
}

// TestMemtables_LeaveRoomForBlocks fills memtables to their size and asks twice
// for the same absent keys: the second time Pebble has their blocks.
func TestMemtables_LeaveRoomForBlocks(t *testing.T) {
	var reads atomic.Int64
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileReadAt {
			reads.Add(1)
		}
		return nil
	}))
	db, err := Open("meta", Options{FS: fs, MemtableBytes: 1 << 20, BlockCacheBytes: 1 << 20, ValueCacheBytes: -1})
	must(t, err)
	defer db.Close()
	for i := range 300 {
		b := db.NewBatch()
		must(t, b.Set(1, fmt.Appendf(nil, "k%d", i), make([]byte, 16<<10)))
		must(t, b.Commit())
	}
	must(t, db.Flush(t.Context()))
	must(t, db.p.Compact(t.Context(), []byte{0}, []byte{0xff}, false)) // nothing reads behind the test's back
	ask := func() int64 {
		before := reads.Load()
		for i := range 20 {
			if _, ok, err := db.Plain(1, fmt.Appendf(nil, "k%d-", i)); ok || err != nil {
				t.Fatalf("an absent key: got %v %v", ok, err)
			}
		}
		return reads.Load() - before
	}
	first := ask()
	if again := ask(); again != 0 {
		t.Errorf("asking again read %d blocks from the disk (%d at first), want none", again, first)
	}
}

func TestFlush_FailsOnAFullDiskAndHeals(t *testing.T) {
	full := errorfs.Toggle{Injector: errorfs.ErrInjected}
	fs := errorfs.Wrap(vfs.NewMem(), &full)
	db := opened(t, fs)
	b := db.NewBatch()
	must(t, b.Put(1, []byte("k"), []byte("v"), 1))
	must(t, b.Commit())
	full.On()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := db.Flush(ctx); err == nil || ctx.Err() != nil {
		t.Fatalf("got %v, want the injected error in time", err)
	}
	if v, ok, err := db.Slice(1).Get([]byte("k")); err != nil || !ok || string(v) != "v" {
		t.Errorf("reading goes on: got %q %v %v", v, ok, err)
	}
	full.Off()
	err := db.Flush(ctx) // may still hear of tries that began while the disk was full
	for err != nil && ctx.Err() == nil {
		err = db.Flush(ctx)
	}
	must(t, err)
	must(t, db.Close())
}

func TestLogger_FatalfDoesNotReturn(t *testing.T) {
	var heard error
	l := newLogger(nil, func(err error) { heard = err }, func() bool { return false })
	defer func() {
		if recover() == nil || !fault.Is(heard, fault.IO) {
			t.Errorf("Fatalf returned, or told nobody: %v", heard)
		}
	}()
	l.Fatalf("commit failed: %d", 7)
}

// seeds returns how many seeds to try.
func seeds(n uint64) uint64 {
	if raced {
		return max(2, n/4)
	}
	return n
}
