package pack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/store/disk"
)

// keeper is a node in small: it knows which chunks are needed, and has packs whose pins
// end when its clock is turned.
type keeper struct {
	t      *testing.T
	d      *disk.Memory
	p      *Packs
	clock  *manual
	needed map[int]bool
	by     map[chunk.Address]int
}

func newKeeper(t *testing.T, d *disk.Memory) *keeper {
	t.Helper()
	k := &keeper{t: t, clock: &manual{}, needed: map[int]bool{}, by: map[chunk.Address]int{}}
	if err := k.open(d); err != nil {
		t.Fatal(err)
	}
	return k
}

func (k *keeper) options() Options {
	o := small()
	o.Clock, o.Pin = k.clock.now, time.Minute
	return o
}

func (k *keeper) open(d *disk.Memory) (err error) {
	k.d = d
	if k.p, err = Open(d, k.options()); err == nil {
		k.t.Cleanup(func() { k.p.Close() })
	}
	return err
}

// put stores chunks, which are needed from then on.
func (k *keeper) put(from, n int) error {
	as, bs := bodies(from, n)
	for i, a := range as {
		k.by[a] = from + i
	}
	err := k.p.Put(context.Background(), as, bs)
	for i := range as {
		k.needed[from+i] = k.needed[from+i] || err == nil
	}
	return err
}

// drop says that a chunk is needed no more.
func (k *keeper) drop(i int) {
	delete(k.needed, i)
	a, _ := body(i)
	k.p.Doubt(a)
}

func (k *keeper) judge(_ context.Context, list []chunk.Address) ([]bool, error) {
	out := make([]bool, len(list))
	for i, a := range list {
		out[i] = k.needed[k.by[a]]
	}
	return out, nil
}

func atOnce(context.Context, int) error { return nil }

// rules are those of a share, for who needs no more of them.
func (k *keeper) rules(share float64) Rules {
	return Rules{Share: share, Needed: k.judge, Settle: func(context.Context) error { return nil }, Pace: atOnce}
}

// judgedBy are the rules of a share with another judge.
func (k *keeper) judgedBy(share float64, judge func(context.Context, []chunk.Address) ([]bool, error)) Rules {
	r := k.rules(share)
	r.Needed = judge
	return r
}

// collect reclaims packs until none is worth it.
func (k *keeper) collect(share float64) (freed int64, err error) {
	for {
		k.p.sealer.Wait()
		id, ok := k.p.Next(share, time.Hour, time.Hour)
		if !ok {
			return freed, nil
		}
		r, err := k.p.Reclaim(context.Background(), id, k.rules(share))
		if freed += r.Freed; err != nil {
			return freed, err
		}
		if r.Freed == 0 {
			return freed, nil
		}
	}
}

// unpin lets all pins end.
func (k *keeper) unpin() {
	k.clock.add(k.options().Pin)
	k.p.pins.has(&chunk.Address{})
	k.clock.add(k.options().Pin + 2*time.Second)
}

// useless puts some chunks that are needed and behind them some that are not, in packs that
// are full, and lets all pins end.
func (k *keeper) useless(needed, others int) {
	k.t.Helper()
	if err := k.put(0, needed+others); err != nil {
		k.t.Fatal(err)
	}
	for i := range others {
		k.drop(needed + i)
	}
	k.unpin()
	k.p.Next(0, -1, -1) // closes the pack that chunks go to
	k.p.sealer.Wait()
}

// holds checks that every needed chunk is here.
func (k *keeper) holds() error {
	for _, i := range slices.Sorted(maps.Keys(k.needed)) {
		if err := check(k.p, i, 1); k.needed[i] && err != nil {
			return fmt.Errorf("chunk %d: %w", i, err)
		}
	}
	return nil
}

func TestReclaim_GivesBackWhatNobodyNeeds(t *testing.T) {
	k := newKeeper(t, disk.NewMemory())
	const n = 400
	for i := 0; i < n; i += 10 {
		if err := k.put(i, 10); err != nil {
			t.Fatal(err)
		}
	}
	before := k.p.Space()
	for i := range n {
		if i%8 != 0 {
			k.drop(i)
		}
	}
	if freed, err := k.collect(0.25); err != nil || freed != 0 {
		t.Fatalf("while all is pinned: %d bytes went, %v", freed, err)
	}
	k.unpin()
	freed, err := k.collect(0.25)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.holds(); err != nil {
		t.Fatal(err)
	}
	after := k.p.Space()
	if most := before.Files/8 + 2*k.options().PackBytes; after.Files > most || freed < before.Files*3/4 {
		t.Errorf("the packs take %d bytes of %d, want %d at most; %d are said to be freed", after.Files, before.Files, most, freed)
	}
	names, _ := k.d.List(folder)
	bytes := int64(0)
	for _, name := range names {
		f, err := k.d.Open(disk.PackOpen, folder+"/"+name, disk.ReadOnly)
		if err != nil {
			t.Fatal(err)
		}
		size, _ := f.Size()
		if strings.HasSuffix(name, ".pack") {
			bytes += size
		}
	}
	if bytes != after.Files {
		t.Errorf("the disk has packs of %d bytes, %d are said to be there", bytes, after.Files)
	}
	if err := k.p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := k.open(k.d); err != nil {
		t.Fatal(err)
	}
	if err := k.holds(); err != nil {
		t.Fatalf("after a start: %v", err)
	}
	if k.p.Count() > n/8+n/20 {
		t.Errorf("after a start there are %d chunks of %d", k.p.Count(), n/8)
	}
}

// TestReclaim_KeepsWhatWasAnsweredToBePresent asks for chunks that nobody needs at every
// moment of a collection, and commits a reference later.
func TestReclaim_KeepsWhatWasAnsweredToBePresent(t *testing.T) {
	for _, when := range []string{"before it", "while it judges first", "while it judges again", "after a chunk was taken out"} {
		t.Run(when, func(t *testing.T) {
			k := newKeeper(t, disk.NewMemory())
			if err := k.put(0, 60); err != nil {
				t.Fatal(err)
			}
			for i := range 60 {
				k.drop(i)
			}
			k.unpin()
			a, _ := body(5)
			told := false
			ask := func(now string) {
				if now == when {
					told = k.p.Has([]chunk.Address{a})[0]
				}
			}
			ask("before it")
			judged := 0
			judge := func(ctx context.Context, list []chunk.Address) ([]bool, error) {
				judged++
				needed, err := k.judge(ctx, list)
				ask(map[int]string{1: "while it judges first", 2: "while it judges again"}[judged])
				return needed, err
			}
			k.p.sealer.Wait()
			id, ok := k.p.Next(0.25, time.Hour, time.Hour)
			for ; !ok; id, ok = k.p.Next(0.25, time.Hour, time.Hour) {
				k.p.sealer.Wait()
			}
			_, err := k.p.Reclaim(context.Background(), id, k.judgedBy(0.25, judge))
			if err != nil {
				t.Fatal(err)
			}
			ask("after a chunk was taken out")
			switch here := check(k.p, 5, 1) == nil; {
			case when == "after a chunk was taken out" && (told || here):
				t.Errorf("the chunk is told to be here: %v, and is: %v; want neither", told, here)
			case when != "after a chunk was taken out" && (!told || !here):
				t.Errorf("the chunk was told to be here: %v, and is: %v; want both", told, here)
			}
		})
	}
}

// TestReclaim_SeesAPinOfEveryMoment asks for a chunk whenever a collection looks at the
// clock, which it does before each look at the pins. What is told to be here stays.
func TestReclaim_SeesAPinOfEveryMoment(t *testing.T) {
	stayed, went := 0, 0
	for moment := range 60 {
		d, clock := disk.NewMemory(), &manual{}
		k := &keeper{t: t, d: d, clock: clock, needed: map[int]bool{}, by: map[chunk.Address]int{}}
		o := k.options()
		var ask func()
		o.Clock = func() time.Duration {
			if ask != nil {
				ask()
			}
			return clock.now()
		}
		var err error
		if k.p, err = Open(d, o); err != nil {
			t.Fatal(err)
		}
		k.useless(0, 8)
		a, _ := body(5)
		told, calls := false, 0
		ask = func() {
			if calls++; calls == moment {
				f := ask
				ask = nil // Has looks at the clock too
				told = k.p.Has([]chunk.Address{a})[0]
				ask = f
			}
		}
		if _, err := k.p.Reclaim(context.Background(), 1, k.rules(0.25)); err != nil {
			t.Fatal(err)
		}
		ask = nil
		here := check(k.p, 5, 1) == nil
		if told && !here {
			t.Errorf("at moment %d the chunk was told to be here, and it went", moment)
		}
		if told {
			stayed++
		} else if !here {
			went++
		}
		k.p.Close()
	}
	if stayed < 5 || went < 5 {
		t.Errorf("the chunk stayed %d times and went %d times", stayed, went)
	}
}

// TestReclaim_JudgesAnewWhatItJudgedLongAgo lets the whole time of a pin go by between a
// judgement and the removal: a pin of in between may have ended.
func TestReclaim_JudgesAnewWhatItJudgedLongAgo(t *testing.T) {
	k := newKeeper(t, disk.NewMemory())
	if err := k.put(0, 60); err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		k.drop(i)
	}
	k.unpin()
	for id, ok := k.p.Next(0.25, time.Hour, time.Hour); ; id, ok = k.p.Next(0.25, time.Hour, time.Hour) {
		k.p.sealer.Wait()
		if !ok {
			continue
		}
		slow := func(ctx context.Context, list []chunk.Address) ([]bool, error) {
			out, err := k.judge(ctx, list)
			k.clock.add(k.options().Pin)
			return out, err
		}
		if _, err := k.p.Reclaim(context.Background(), id, k.judgedBy(0.25, slow)); err != nil {
			t.Fatal(err)
		}
		break
	}
	if k.p.Count() != 60 {
		t.Errorf("%d chunks of 60 are left", k.p.Count())
	}
}

// TestReclaim_KeepsWhatIsNeededByTheSecondJudgement has a reference committed between the
// two judgements of a chunk.
func TestReclaim_KeepsWhatIsNeededByTheSecondJudgement(t *testing.T) {
	k := newKeeper(t, disk.NewMemory())
	k.useless(0, 12)
	judged := 0
	judge := func(ctx context.Context, list []chunk.Address) ([]bool, error) {
		if judged++; judged == 2 {
			k.needed[5] = true
		}
		return k.judge(ctx, list)
	}
	r, err := k.p.Reclaim(context.Background(), 1, k.judgedBy(0.25, judge))
	if err != nil || r.Freed == 0 || judged != 2 {
		t.Fatalf("%+v after %d judgements: %v", r, judged, err)
	}
	if err := k.holds(); err != nil || k.p.Count() != 1 {
		t.Errorf("%d chunks are left, want 1: %v", k.p.Count(), err)
	}
}

// TestReclaim_WorksBesideReadsAndWrites moves chunks under readers and writers.
func TestReclaim_WorksBesideReadsAndWrites(t *testing.T) {
	k := newKeeper(t, disk.NewMemory())
	const n = 200
	if err := k.put(0, n); err != nil {
		t.Fatal(err)
	}
	var over atomic.Bool
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 8))
			for i := 0; !over.Load(); i++ {
				if err := check(k.p, rng.IntN(n-20), 1+rng.IntN(20)); err != nil {
					t.Errorf("reader %d: %v", w, err)
					return
				}
				if as, bs := bodies(1000+w*1000+i%100, 1); i%4 == 0 && k.p.Put(context.Background(), as, bs) != nil {
					t.Errorf("writer %d failed", w)
					return
				}
			}
		})
	}
	all := func(_ context.Context, list []chunk.Address) ([]bool, error) {
		return slices.Repeat([]bool{true}, len(list)), nil
	}
	moved := int64(0)
	for rounds := 0; moved < 8<<20 && rounds < 1_000_000 && !t.Failed(); rounds++ {
		if id, ok := k.p.Next(0, -1, -1); ok {
			r, err := k.p.Reclaim(context.Background(), id, k.judgedBy(-1, all))
			if err != nil {
				t.Error(err)
			}
			moved += r.Moved
		}
		runtime.Gosched() // the sealer is to come in
	}
	over.Store(true)
	wg.Wait()
	if err := check(k.p, 0, n); err != nil || moved == 0 {
		t.Errorf("%d bytes moved: %v", moved, err)
	}
}

// TestReclaim_SurvivesACrashAtEverySite collects between writes and drops, stops the
// disk at each site, and looks for every chunk that is needed. After the start all that
// is not needed goes in the end.
func TestReclaim_SurvivesACrashAtEverySite(t *testing.T) {
	sites := []disk.Site{disk.PackOpen, disk.PackAllocate, disk.PackHeader, disk.PackWrite, disk.PackSync, disk.PackSyncDir, disk.PackRemove,
		disk.IndexOpen, disk.IndexWrite, disk.IndexSync, disk.IndexRename, disk.IndexRemove}
	for _, site := range sites {
		t.Run(string(site), func(t *testing.T) {
			stopped := 0
			for seed := range seeds(16) {
				if collectOnce(t, site, seed) {
					stopped++
				}
			}
			if stopped == 0 {
				t.Errorf("the disk was never stopped at %s", site)
			}
		})
	}
}

func collectOnce(t *testing.T, site disk.Site, seed uint64) bool {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 4))
	d := disk.NewMemory()
	k := newKeeper(t, d)
	d.Fail(disk.Rule{Site: site, Skip: rng.IntN(1 + 3*int(seed)), Kind: fault.IO, Keep: rng.IntN(40) * 512, Crash: true})
	next := 0
	for range 40 {
		if k.put(next, 1+rng.IntN(8)) != nil {
			break
		}
		next += 8
		for range rng.IntN(8) {
			k.drop(rng.IntN(next))
		}
		if rng.IntN(3) == 0 {
			k.unpin()
			if _, err := k.collect(0.1 + 0.5*rng.Float64()); err != nil {
				break
			}
		}
	}
	crashed := d.Crashed()
	after := d.CrashClone(rng)
	k.p.Close()
	for life := range 2 {
		if err := k.open(after); err != nil {
			t.Fatalf("seed %d at %s: start %d: %v", seed, site, life, err)
		}
		if err := k.holds(); err != nil {
			t.Fatalf("seed %d at %s: start %d: %v", seed, site, life, err)
		}
		if err := k.put(1000+10*life, 10); err != nil {
			t.Fatal(err)
		}
		k.unpin()
		if _, err := k.everything(); err != nil {
			t.Fatalf("seed %d at %s: start %d: %v", seed, site, life, err)
		}
		if err := k.holds(); err != nil {
			t.Fatalf("seed %d at %s: collected after start %d: %v", seed, site, life, err)
		}
		k.onlyNeeded()
		next := after.CrashClone(rng)
		k.p.Close()
		after = next
	}
	return crashed
}

// everything looks at every pack, so that nothing is left that is not needed.
func (k *keeper) everything() (freed int64, err error) {
	k.p.Next(0, -1, -1) // closes the pack that chunks go to
	k.p.sealer.Wait()
	ids := slices.Sorted(maps.Keys(*k.p.files.Load()))
	for _, id := range ids {
		r, err := k.p.Reclaim(context.Background(), id, k.rules(-1))
		if err != nil && !fault.Is(err, fault.NotFound) {
			return freed, err
		}
		freed += r.Freed
	}
	return freed, nil
}

// onlyNeeded checks that nothing is left but what is needed, and no file without use.
func (k *keeper) onlyNeeded() {
	k.t.Helper()
	want := 0
	for _, is := range k.needed {
		if is {
			want++
		}
	}
	if got := k.p.Count(); got != want {
		k.t.Errorf("%d chunks are left, %d are needed", got, want)
	}
	k.p.sealer.Wait()
	names, err := k.d.List(folder)
	if err != nil {
		k.t.Fatal(err)
	}
	for _, name := range names {
		base, _, _ := strings.Cut(name, ".")
		if !slices.Contains(names, base+".pack") || strings.HasSuffix(name, ".tmp") {
			k.t.Errorf("%s is left over", name)
		}
	}
}

func TestReclaim_WorksOnAFullDisk(t *testing.T) {
	d := disk.NewMemory()
	d.SetCapacity(1200 << 10)
	k := newKeeper(t, d)
	n := 0
	for ; k.put(n, 5) == nil; n += 5 {
	}
	for i := range n {
		if i%5 != 0 {
			k.drop(i)
		}
	}
	k.unpin()
	freed := int64(0)
	for range 20 {
		f, err := k.collect(0.1)
		freed += f
		if err != nil && !fault.Is(err, fault.NoSpace) {
			t.Fatal(err)
		}
		k.clock.add(time.Minute)
	}
	if freed < 256<<10 {
		t.Errorf("%d bytes came back", freed)
	}
	if err := k.holds(); err != nil {
		t.Fatal(err)
	}
	if err := k.put(5000, 5); err != nil {
		t.Errorf("there is no room again: %v", err)
	}
}

// TestReclaim_LosesNothingByAJudgeThatFails ends a collection by errors of what it asks.
func TestReclaim_LosesNothingByAJudgeThatFails(t *testing.T) {
	k := newKeeper(t, disk.NewMemory())
	k.useless(10, 90)
	bad := errors.New("not now")
	for fails := range 4 {
		judged := 0
		judge := func(ctx context.Context, list []chunk.Address) ([]bool, error) {
			if judged++; judged > fails {
				return nil, bad
			}
			return k.judge(ctx, list)
		}
		for id := range *k.p.files.Load() {
			rules := k.judgedBy(0.1, judge)
			if fails%2 == 0 {
				rules.Settle = func(context.Context) error { return bad }
			}
			rules.Pace = func(context.Context, int) error { return bad }
			_, err := k.p.Reclaim(context.Background(), id, rules)
			if err != nil && !errors.Is(err, bad) && !fault.Is(err, fault.NotFound) {
				t.Fatal(err)
			}
		}
		if err := k.holds(); err != nil {
			t.Fatalf("after %d judgements: %v", fails, err)
		}
	}
}

// TestReclaim_KeepsAPackWithADamagedChunk damages a chunk that is needed.
func TestReclaim_KeepsAPackWithADamagedChunk(t *testing.T) {
	k := newKeeper(t, disk.NewMemory())
	k.useless(1, 39)
	a, _ := body(0)
	at, _ := k.p.index.get(&a)
	k.d.Damage(packName(at.pack()), (at.offset()/sectorData*sectorSize+100)*8)
	_, err := k.p.Reclaim(context.Background(), at.pack(), k.rules(0.1))
	if !fault.Is(err, fault.Corrupt) {
		t.Fatalf("got %v, want Corrupt", err)
	}
	if _, ok := k.p.Length(a); !ok {
		t.Error("the damaged chunk is gone: no other copy would be asked for")
	}
	if _, ok := (*k.p.files.Load())[at.pack()]; !ok {
		t.Error("the pack is gone")
	}
}
