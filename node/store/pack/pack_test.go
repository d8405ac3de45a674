package pack

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/store/disk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// manual is a clock that a test turns.
type manual struct {
	mu sync.Mutex
	t  time.Duration
}

func (m *manual) now() time.Duration { m.mu.Lock(); defer m.mu.Unlock(); return m.t }
func (m *manual) add(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.t += d
}

func small() Options {
	return Options{PackBytes: 256 << 10, StageBytes: 32 << 10, ReserveBytes: -1, Clock: (&manual{}).now}
}

func opened(t *testing.T, d disk.Disk, o Options) *Packs {
	t.Helper()
	p, err := Open(d, o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// body makes the i-th chunk.
func body(i int) (chunk.Address, []byte) {
	rng := rand.NewChaCha8([32]byte{byte(i), byte(i >> 8), 9})
	b := make([]byte, 1+rng.Uint64()%20000)
	rng.Read(b)
	return chunk.Sum(b), b
}

func bodies(from, n int) (as []chunk.Address, bs [][]byte) {
	for i := from; i < from+n; i++ {
		a, b := body(i)
		as, bs = append(as, a), append(bs, b)
	}
	return as, bs
}

// check reads the chunks from..from+n whole and says which are wrong.
func check(p *Packs, from, n int) error {
	as, bs := bodies(from, n)
	ranges := make([]Range, n)
	for i := range ranges {
		ranges[i] = Range{Address: as[i], Into: make([]byte, len(bs[i]))}
	}
	if err := p.Read(context.Background(), ranges); err != nil {
		return err
	}
	for i := range ranges {
		if !bytes.Equal(ranges[i].Into, bs[i]) {
			return fmt.Errorf("chunk %d differs", from+i)
		}
	}
	return nil
}

func put(t *testing.T, p *Packs, from, n int) {
	t.Helper()
	as, bs := bodies(from, n)
	if err := p.Put(context.Background(), as, bs); err != nil {
		t.Fatal(err)
	}
}

func TestPut_IsReadBackWholeAndInPieces(t *testing.T) {
	d := disk.NewMemory()
	p := opened(t, d, small())
	for i := range 12 {
		put(t, p, i*10, 10)
	}
	if err := check(p, 0, 120); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		a, b := body(rng.IntN(120))
		from := rng.IntN(len(b))
		r := []Range{{Address: a, Offset: from, Into: make([]byte, rng.IntN(len(b)-from+1))}}
		if err := p.Read(context.Background(), r); err != nil || !bytes.Equal(r[0].Into, b[from:from+len(r[0].Into)]) {
			t.Fatalf("bytes %d to %d: %v", from, from+len(r[0].Into), err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p = opened(t, d, small())
	if err := check(p, 0, 120); err != nil {
		t.Fatalf("after a restart: %v", err)
	}
	if got := p.Count(); got != 120 {
		t.Errorf("got %d chunks, want 120", got)
	}
}

func TestRead_ReportsMissingChunks(t *testing.T) {
	p := opened(t, disk.NewMemory(), small())
	put(t, p, 0, 1)
	a, b := body(0)
	missing, _ := body(1)
	ranges := []Range{{Address: missing, Into: make([]byte, 1)}, {Address: a, Into: make([]byte, len(b))},
		{Address: a, Offset: 1, Into: make([]byte, len(b))}}
	if err := p.Read(context.Background(), ranges); !fault.Is(err, fault.Missing) {
		t.Errorf("got %v, want Missing", err)
	}
	if ranges[1].Err != nil || !bytes.Equal(ranges[1].Into, b) {
		t.Errorf("the range that is there: %v", ranges[1].Err)
	}
	if !fault.Is(ranges[2].Err, fault.Invalid) {
		t.Errorf("beyond the end: got %v, want Invalid", ranges[2].Err)
	}
}

func TestPutLazy_ReadableAtOnceAndDurableAfterSync(t *testing.T) {
	d := disk.NewMemory()
	p := opened(t, d, small())
	as, bs := bodies(0, 30)
	for i := range as {
		if err := p.PutLazy(as[i:i+1], bs[i:i+1]); err != nil {
			t.Fatal(err)
		}
		if err := check(p, 0, i+1); err != nil {
			t.Fatalf("after %d: %v", i+1, err)
		}
	}
	if err := p.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := check(opened(t, d.CrashClone(nil), small()), 0, 30); err != nil {
		t.Fatalf("after Sync and power loss: %v", err)
	}
}

func TestPut_WorksBesideReads(t *testing.T) {
	d := disk.NewMemory()
	p := opened(t, d, small())
	var wg sync.WaitGroup
	for w := range 6 {
		wg.Go(func() {
			for i := range 8 {
				from := w*5 + i*30
				as, bs := bodies(from, 5)
				err := p.Put(context.Background(), as, bs)
				if i%2 == 1 {
					err = p.PutLazy(as, bs)
				}
				if err == nil {
					err = check(p, from, 5)
				}
				if err != nil {
					t.Errorf("writer %d batch %d: %v", w, i, err)
				}
			}
		})
	}
	wg.Wait()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := check(opened(t, d, small()), 0, 240); err != nil {
		t.Fatal(err)
	}
}

// TestPacks_SurviveACrashAtEverySite stops the disk at each site and looks for
// every chunk whose Put had returned, and for every lazy one that a Sync had
// covered.
func TestPacks_SurviveACrashAtEverySite(t *testing.T) {
	sites := []disk.Site{disk.PackDir, disk.PackOpen, disk.PackAllocate, disk.PackHeader, disk.PackWrite, disk.PackSync,
		disk.PackSyncDir, disk.IndexOpen, disk.IndexWrite, disk.IndexSync, disk.IndexRename}
	for _, site := range sites {
		t.Run(string(site), func(t *testing.T) {
			stopped := 0
			for seed := range seeds(12) {
				if crashOnce(t, site, seed) {
					stopped++
				}
			}
			if stopped == 0 {
				t.Errorf("the disk was never stopped at %s", site)
			}
		})
	}
}

func crashOnce(t *testing.T, site disk.Site, seed uint64) bool {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 3))
	d := disk.NewMemory()
	d.Fail(disk.Rule{Site: site, Skip: rng.IntN(1 + 3*int(seed)), Kind: fault.IO, Keep: rng.IntN(40) * 512, Crash: true})
	var safe, lazy [][2]int // ranges of chunks that must survive
	if p, err := Open(d, small()); err == nil {
		for i := range 20 {
			as, bs := bodies(i*4, 4)
			switch {
			case i%3 == 1:
				if p.PutLazy(as, bs) == nil {
					lazy = append(lazy, [2]int{i * 4, 4})
				}
			case p.Put(context.Background(), as, bs) == nil:
				safe = append(safe, [2]int{i * 4, 4})
			}
			if i%7 == 6 && p.Sync() == nil {
				safe, lazy = append(safe, lazy...), nil
			}
		}
		p.Close()
	}
	after := d.CrashClone(rng)
	for life := range 2 {
		p, err := Open(after, small())
		if err != nil {
			t.Fatalf("seed %d at %s: open in life %d: %v", seed, site, life, err)
		}
		for _, s := range safe {
			if err := check(p, s[0], s[1]); err != nil {
				t.Fatalf("seed %d at %s: chunks from %d: %v", seed, site, s[0], err)
			}
		}
		as, bs := bodies(1000+life*10, 10)
		if err := p.Put(context.Background(), as, bs); err != nil {
			t.Fatalf("seed %d at %s: put in life %d: %v", seed, site, life, err)
		}
		safe = append(safe, [2]int{1000 + life*10, 10})
		if life == 0 { // the second life begins with another power loss
			after2 := after.CrashClone(rng)
			p.Close()
			after = after2
			continue
		}
		p.Close()
	}
	return d.Crashed()
}

func TestSync_FailureIsFinal(t *testing.T) {
	for _, site := range []disk.Site{disk.PackSync, disk.PackWrite} {
		t.Run(string(site), func(t *testing.T) {
			d := disk.NewMemory()
			var heard error
			o := small()
			o.Fatal = func(err error) { heard = err }
			p := opened(t, d, o)
			put(t, p, 0, 2)
			d.Fail(disk.Rule{Site: site, Times: 1, Kind: fault.IO})
			as, bs := bodies(2, 2)
			if err := p.Put(context.Background(), as, bs); !fault.Is(err, fault.IO) {
				t.Fatalf("got %v, want IO", err)
			}
			as, bs = bodies(4, 2)
			if err := p.Put(context.Background(), as, bs); !fault.Is(err, fault.IO) || heard == nil {
				t.Fatalf("after a failed sync got %v, Fatal heard %v", err, heard)
			}
			if err := check(p, 0, 2); err != nil {
				t.Errorf("reading goes on: %v", err)
			}
		})
	}
}

func TestPut_FullDiskIsNotFinal(t *testing.T) {
	d := disk.NewMemory()
	d.SetCapacity(600 << 10)
	p := opened(t, d, small())
	var err error
	n := 0
	for ; n < 100 && err == nil; n++ {
		as, bs := bodies(n*5, 5)
		err = p.Put(context.Background(), as, bs)
	}
	if !fault.Is(err, fault.NoSpace) {
		t.Fatalf("got %v, want NoSpace", err)
	}
	if err := check(p, 0, (n-1)*5); err != nil {
		t.Errorf("reading goes on: %v", err)
	}
	d.SetCapacity(10 << 20)
	put(t, p, n*5, 5)
}

func TestPut_LeavesTheReserveFree(t *testing.T) {
	d := disk.NewMemory()
	d.SetCapacity(1 << 20)
	o := small()
	o.ReserveBytes = 900 << 10
	p := opened(t, d, o)
	var err error
	n := 0
	for ; n < 100 && err == nil; n++ {
		as, bs := bodies(n, 1)
		err = p.Put(context.Background(), as, bs)
	}
	if !fault.Is(err, fault.NoSpace) {
		t.Fatalf("got %v, want NoSpace", err)
	}
	// The index of a full pack is written behind Put, of what was to stay free.
	least := o.ReserveBytes - int64(p.last)*indexHeader - int64(n)*entrySize
	if u, _ := d.Usage(); u.Free < least {
		t.Errorf("%d bytes are free, %d were to stay", u.Free, least)
	}
}

// TestPutLazy_TakesChunksOnAFullDisk puts chunks of committed entries, which are
// taken whatever the disk says: first into the reserve, and then in memory,
// until there is room.
func TestPutLazy_TakesChunksOnAFullDisk(t *testing.T) {
	d := disk.NewMemory()
	d.SetCapacity(400 << 10)
	o := small()
	o.ReserveBytes = 300 << 10
	p := opened(t, d, o)
	const n = 200 // megabytes more than the disk has
	for i := range n {
		as, bs := bodies(i, 1)
		if err := p.PutLazy(as, bs); err != nil {
			t.Fatalf("chunk %d: %v", i, err)
		}
	}
	if err := p.Sync(); !fault.Is(err, fault.NoSpace) {
		t.Fatalf("got %v, want NoSpace: the disk did not get full", err)
	}
	if u, _ := d.Usage(); u.Free > 200<<10 {
		t.Errorf("%d bytes are free: the reserve was not used", u.Free)
	}
	if err := check(p, 0, n); err != nil {
		t.Errorf("reading goes on: %v", err)
	}
	d.SetCapacity(64 << 20)
	if err := p.Sync(); err != nil {
		t.Fatalf("with room again: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p = opened(t, d, o)
	if err := check(p, 0, n); err != nil {
		t.Errorf("after a start: %v", err)
	}
}

// TestRead_FindsEveryFlippedBit damages sectors of a pack: no wrong byte is
// read.
func TestRead_FindsEveryFlippedBit(t *testing.T) {
	d := disk.NewMemory()
	p := opened(t, d, small())
	put(t, p, 0, 15)
	rng := rand.New(rand.NewPCG(7, 7))
	found := 0
	for range 60 {
		damaged := d.Clone()
		damaged.Damage("packs/000001.pack", rng.Int64N(100<<10)*8+rng.Int64N(8))
		q, err := Open(damaged, small())
		if err != nil {
			t.Fatal(err)
		}
		for i := range 15 {
			switch err := check(q, i, 1); {
			case err == nil:
			case fault.Is(err, fault.Corrupt) || fault.Is(err, fault.Missing):
				found++
			default:
				t.Fatalf("chunk %d: %v", i, err)
			}
		}
		q.Close()
	}
	if found == 0 {
		t.Error("no damage was met")
	}
}

func TestForget_LetsAChunkBeWrittenAnew(t *testing.T) {
	d := disk.NewMemory()
	p := opened(t, d, small())
	put(t, p, 0, 3)
	a, _ := body(1)
	at, _ := p.index.get(&a)
	d.Damage("packs/000001.pack", (at.offset()/sectorData*sectorSize+100)*8)
	if err := check(p, 1, 1); !fault.Is(err, fault.Corrupt) {
		t.Fatalf("got %v, want Corrupt", err)
	}
	p.Forget(a)
	put(t, p, 1, 1)
	if err := check(p, 0, 3); err == nil {
		t.Log("the neighbours were not in the damaged sector")
	}
	if err := check(p, 1, 1); err != nil {
		t.Fatalf("after repair: %v", err)
	}
	p.Close()
	if err := check(opened(t, d, small()), 1, 1); err != nil {
		t.Fatalf("after a restart: %v", err)
	}
}

func TestPins_LastTheirLimitAndOverARestart(t *testing.T) {
	d := disk.NewMemory()
	clock := &manual{}
	o := small()
	o.Clock, o.Pin = clock.now, time.Minute
	p := opened(t, d, o)
	put(t, p, 0, 2)
	a, _ := body(0)
	clock.add(2*time.Minute + 2*time.Second)
	if p.Pinned(a) {
		t.Error("pinned beyond twice the limit")
	}
	if !p.Has([]chunk.Address{a})[0] {
		t.Fatal("not there")
	}
	clock.add(59 * time.Second)
	if !p.Pinned(a) {
		t.Error("an answer 'present' does not pin")
	}
	p.Close()
	q := opened(t, d, o)
	clock.add(59 * time.Second)
	if !q.Pinned(a) {
		t.Error("the pin did not outlive the restart")
	}
}

func TestOpen_RefusesARenamedPack(t *testing.T) {
	d := disk.NewMemory()
	p := opened(t, d, small())
	put(t, p, 0, 3)
	p.Close()
	if err := d.Rename(disk.PackOpen, packName(1), packName(5)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(d, small()); !fault.Is(err, fault.Corrupt) {
		t.Fatalf("got %v, want Corrupt", err)
	}
}

// seeds returns how many seeds to try.
func seeds(n uint64) uint64 {
	if raced {
		return max(2, n/4)
	}
	return n
}
