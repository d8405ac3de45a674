package desktops

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// scrambled does random things to few files on small disks, so that there is hardly
// ever room. It calls look after each.
func scrambled(t *testing.T, seed uint64, p Policy, copies int, look func(world, Event, outcome)) {
	t.Helper()
	o := small()
	o.Seed, o.Desktops, o.Full, o.Copies, o.Fill = seed, 6, 1, copies, 0.25
	o.DiskBytes, o.Coherence = 4000, 50*time.Second
	w, err := newWorld(o, p)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(seed, 7))
	there := map[File]bool{}
	for f := range File(12) {
		w.put(Held{File: f, User: r.IntN(o.Desktops), Bytes: 1 + r.Int64N(200), Old: f%4 == 0})
		there[f] = true
	}
	w.begin()
	kinds := []Kind{Create, Create, Replace, Append, Append, Overwrite, Delete, Read}
	for i := range 400 {
		e := Event{At: time.Duration(i*7) * time.Second, Kind: kinds[r.IntN(len(kinds))], User: r.IntN(o.Desktops), Machine: r.IntN(o.Desktops), File: File(r.IntN(40)), Bytes: 1 + r.Int64N(500)}
		if e.Kind == Create && there[e.File] {
			e.Kind = Replace
		}
		got, err := w.do(e)
		if err == nil {
			err = w.check()
		}
		if err != nil {
			t.Fatalf("seed %d, %s, %d copies: %+v: %v", seed, p, copies, e, err)
		}
		there[e.File] = e.Kind != Delete && (there[e.File] || e.Kind == Create && got == done)
		look(w, e, got)
	}
}

func TestWorlds_KeepTheirInvariants(t *testing.T) {
	came := map[string]int{}
	for _, p := range Policies() {
		for seed := range uint64(10) {
			for copies := 1; copies <= maxCopies; copies++ {
				scrambled(t, seed, p, copies, func(w world, _ Event, got outcome) {
					came[fmt.Sprint(got)]++
					if c := w.counts(); c.Moved > 0 && c.Evicted > 0 {
						came["moved and evicted"]++
					}
				})
			}
		}
	}
	for _, what := range []any{done, refused, missing, primary, secondary, remote, "moved and evicted"} {
		if came[fmt.Sprint(what)] == 0 {
			t.Errorf("%v never came of all that: %v", what, came)
		}
	}
}

// TestBeeFS_NeverRefuseWhereAFileFits holds a refused creation against all disks.
func TestBeeFS_NeverRefuseWhereAFileFits(t *testing.T) {
	for _, p := range []Policy{BeeRandom, BeeLRU, Random} {
		for seed := range uint64(30) {
			scrambled(t, seed, p, 2, func(w world, e Event, got outcome) {
				if got != refused || e.Kind != Create {
					return
				}
				for m, d := range w.(*beeFS).disks {
					if d.free() >= e.Bytes {
						t.Fatalf("seed %d, %s: %+v was refused, and disk %d has %d bytes free", seed, p, e, m, d.free())
					}
				}
			})
		}
	}
}

// TestBeeFS_TheOldestLeaves holds the ordered lists against a look at every file.
func TestBeeFS_TheOldestLeaves(t *testing.T) {
	asked := 0
	for seed := range uint64(30) {
		scrambled(t, seed, BeeLRU, 2, func(w world, e Event, _ outcome) {
			b := w.(*beeFS)
			got, ok := b.leaves(e.Machine, e.File)
			best, found := File(0), false
			for _, f := range b.primaries[e.Machine] {
				x := &b.files[f]
				if f != e.File && x.backup() > 0 && (!found || x.used < b.files[best].used || x.used == b.files[best].used && f < best) {
					best, found = f, true
				}
			}
			if ok != found || ok && got != best {
				t.Fatalf("seed %d, after %+v: file %d leaves (%v), want %d (%v)", seed, e, got, ok, best, found)
			}
			if ok {
				asked++
			}
			b.order[e.Machine] = nil // the answer did not leave
		})
	}
	if asked < 1000 {
		t.Errorf("only %d times a file could leave", asked)
	}
}

func TestCheck_FindsWhatIsBroken(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(*beeFS)
	}{
		{"a byte too many", func(b *beeFS) { b.disks[0].used++ }},
		{"a disk over its size", func(b *beeFS) { b.disks[0].size = 9 }},
		{"two copies on one machine", func(b *beeFS) { b.files[0].copies[1].machine = 0 }},
		{"a primary that is not current", func(b *beeFS) { b.files[0].copies[0].current = false }},
		{"a current copy of another size", func(b *beeFS) {
			b.files[0].copies[1].bytes--
			b.disks[1].used--
		}},
		{"a file that its disk does not list", func(b *beeFS) { b.primaries[0] = nil }},
	} {
		b := newBed(t, BeeLRU, 2, 100, 100)
		b.at(0, 0, Create, 0, 10, done)
		b.at(60, 1, Read, 0, 0, secondary)
		if c.damage(b.beeFS); b.check() == nil {
			t.Errorf("%s was not found", c.name)
		}
	}
	for _, c := range []struct {
		name   string
		damage func(*cartwheel)
	}{
		{"a byte too many on a disk", func(w *cartwheel) { w.disks[0].used++ }},
		{"a byte too many in a slice", func(w *cartwheel) { w.slices[0].bytes++ }},
		{"two copies on one machine", func(w *cartwheel) { w.slices[0].members[1] = w.slices[0].members[0] }},
		{"a slice that a node would close", func(w *cartwheel) {
			s := w.home[1]
			w.grow(s, maxSliceBytes, 0)
			w.files = append(w.files, sliceFile{s, maxSliceBytes})
		}},
		{"a slice that a node would move", func(w *cartwheel) { w.configured.rows[0].Members = w.configured.rows[0].Members[:1] }},
	} {
		w, err := newCartwheel(small(), CartwheelSites)
		if err != nil || w.check() != nil {
			t.Fatal(err, w.check())
		}
		if c.damage(w); w.check() == nil {
			t.Errorf("%s was not found", c.name)
		}
	}
}
