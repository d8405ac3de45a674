package scrub

import (
	"context"
	"encoding/binary"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/server/replog"
	"cartwheel.dev/node/store/disk"
	"cartwheel.dev/node/store/meta"
	"cartwheel.dev/node/store/pack"
	"cartwheel.dev/node/tree"
)

// world is a node with one slice, as a test sets it.
type world struct {
	t      *testing.T
	clock  time.Duration
	wall   time.Time
	files  *vfs.MemFS
	disk   *disk.Memory
	db     *meta.DB
	packs  *pack.Packs
	s      *Scrubber
	period time.Duration
	others map[chunk.Address][]byte // what the other members have
	silent bool                     // they do not answer
	asked  int

	rows     []geoconfig.SliceRow
	states   map[ids.Node]string // of members, of slice 1
	busy     int                 // how often no serial is met
	refused  bool                // the copy cannot be made anew
	madeAnew int
}

func newWorld(t *testing.T, period time.Duration) *world {
	t.Helper()
	w := &world{t: t, clock: time.Hour, wall: time.Unix(1_000_000_000, 0), files: vfs.NewMem(), disk: disk.NewMemory(), period: period, others: map[chunk.Address][]byte{}}
	var err error
	if w.db, err = meta.Open("meta", meta.Options{FS: w.files}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.db.Close() })
	w.packs, err = pack.Open(w.disk, pack.Options{PackBytes: 4 << 20, ReserveBytes: -1, Clock: func() time.Duration { return w.clock }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.packs.Close() })
	w.live()
	return w
}

// live begins another life of the scrubber.
func (w *world) live() {
	w.t.Helper()
	var err error
	w.s, err = Open(Options{
		Self: "a", Period: w.period, Dir: "scrub", FS: w.files, Packs: w.packs, Meta: w.db,
		Row: func(ids.Slice) (geoconfig.SliceRow, bool) {
			return geoconfig.SliceRow{ID: 1, Active: "b", Members: []geoconfig.Member{{Node: "a"}, {Node: "b"}}}, true
		},
		Whole:     func(context.Context, ids.Slice) bool { return true },
		Committed: func(id ids.Slice) tree.View { return operate.Committed(w.db, id) },
		Fetch:     w.fetch, Comparing: Comparing{Rows: func() []geoconfig.SliceRow { return w.rows }, Compare: w.compare, Distrust: w.distrust}, Clock: func() time.Duration { return w.clock }, Wall: func() time.Time { return w.wall }, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(w.s.closeCheck)
}

// fetch gives what the other members have.
func (w *world) fetch(ctx context.Context, _ ids.Slice, list []chunk.Address) (left []chunk.Address, answered bool) {
	w.asked++
	for _, a := range list {
		if body := w.others[a]; body == nil || w.silent {
			left = append(left, a)
		} else if err := w.packs.Put(ctx, []chunk.Address{a}, [][]byte{body}); err != nil {
			w.t.Fatal(err)
		}
	}
	return left, !w.silent
}

// compare compares the states of members, of slice 1.
func (w *world) compare(_ context.Context, _ ids.Slice, with ids.Node, _ func(context.Context, int) error) (ids.Serial, bool, error) {
	if w.busy > 0 {
		w.busy--
		return 0, false, fault.E(fault.Again, "", "", "")
	}
	return 7, w.states["a"] == w.states[with], nil
}

// distrust has the state of this node be that of the active.
func (w *world) distrust(context.Context, ids.Slice) bool {
	if w.refused {
		return false
	}
	w.madeAnew++
	w.states["a"] = w.states["b"]
	return true
}

// put stores so many chunks of 64 KiB, which others have too, and returns their addresses.
func (w *world) put(n int) (out []chunk.Address) {
	w.t.Helper()
	rng := rand.NewChaCha8([32]byte{1})
	for range n {
		body := make([]byte, 64<<10)
		_, _ = rng.Read(body) // never fails
		a := chunk.Sum(body)
		w.others[a] = body
		if err := w.packs.Put(w.t.Context(), []chunk.Address{a}, [][]byte{body}); err != nil {
			w.t.Fatal(err)
		}
		out = append(out, a)
	}
	return out
}

// name keeps a record that names a chunk.
func (w *world) name(a chunk.Address, count byte) {
	w.t.Helper()
	b := w.db.NewBatch()
	err := b.Set(1, tree.RefsKey(a), binary.BigEndian.AppendUint64([]byte{count}, 5))
	if err == nil {
		err = b.SetApplied(1, 1)
	}
	if err == nil {
		err = b.Commit()
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// pass lets a step's rest go by.
func (w *world) pass(d time.Duration) {
	w.clock += d
	w.wall = w.wall.Add(d)
}

// until does steps until done, and returns how much time went by.
func (w *world) until(what string, done func() bool) time.Duration {
	w.t.Helper()
	began := w.clock
	for range 100_000 {
		if done() {
			return w.clock - began
		}
		w.pass(w.s.step(w.t.Context()))
	}
	w.t.Fatalf("there is no end of waiting for %s", what)
	return 0
}

func (w *world) awaitEnd(round uint64) time.Duration {
	w.t.Helper()
	return w.until("the end of a round", func() bool { return w.s.Report(0).EndedRound >= round })
}

// TestPace_SpreadsARoundOverThePeriod measures rounds by the clock, with and without a
// standstill, and with little to read.
func TestPace_SpreadsARoundOverThePeriod(t *testing.T) {
	w := newWorld(t, 4*time.Minute)
	w.put(256) // 16 MiB
	first := w.awaitEnd(1)
	if first < 2*time.Minute || first > 3*time.Minute+20*time.Second {
		t.Errorf("a round took %v of a period of 4m", first)
	}
	half := w.until("a half of the second round", func() bool { r := w.s.Report(0); return r.Round == 2 && r.DoneShare > 0.5 })
	if whole := first + half; whole < 4*time.Minute || whole > 6*time.Minute+10*time.Second {
		t.Errorf("the half of the second round was done %v after the first began", whole)
	}
	w.pass(2 * time.Minute)
	if rest := w.awaitEnd(2); rest > 15*time.Second {
		t.Errorf("a round that is late takes %v more", rest)
	}
	w.s.o.Period = 1000 * time.Hour
	w.s.Start(8 << 20)
	if got := w.awaitEnd(3); got < time.Second || got > 10*time.Second {
		t.Errorf("at 8 MiB a second 16 MiB took %v", got)
	}
	w.pass(1000 * time.Hour)
	if got := w.awaitEnd(4); got > 5*time.Minute {
		t.Errorf("little to read took %v of a period of weeks", got)
	}
}

func TestDue_BeginsNothingWithoutAPeriod(t *testing.T) {
	w := newWorld(t, 0)
	w.put(4)
	for range 10 {
		w.pass(w.s.step(t.Context()))
		w.pass(1000 * time.Hour)
	}
	if got := w.s.Report(0); got.Round != 0 {
		t.Errorf("nobody ordered it: %+v", got)
	}
	w.s.Start(0)
	w.awaitEnd(1)
}

// TestRun_GoesOnInAnotherLife ends lives in the middle of a round, at once after a save and
// some while behind one.
func TestRun_GoesOnInAnotherLife(t *testing.T) {
	w := newWorld(t, 20*time.Minute)
	const n = 256
	for _, a := range w.put(n) {
		w.name(a, 1)
	}
	for lives := 0; w.s.Report(0).EndedRound == 0; lives++ {
		if lives > 100 {
			t.Fatal("it does not end")
		}
		for range 3 {
			w.pass(w.s.step(t.Context()))
		}
		w.live()
	}
	got := w.s.Report(0)
	if got.Round != 1 || got.Last.Chunks < n || got.Last.Chunks > n+n/2 || got.Last.Records < n {
		t.Errorf("%d chunks in packs, and the rounds read %+v", n, got)
	}
}

// TestRepair_LeavesWhatNothingNames damages chunks that records name, with a current version
// or only an old one, and one that none names.
func TestRepair_LeavesWhatNothingNames(t *testing.T) {
	w := newWorld(t, 0)
	list := w.put(40)
	w.name(list[0], 1)
	w.name(list[39], 0)
	const each = 17 * disk.Block // of a batch with one chunk
	for _, i := range []int64{0, 20, 39} {
		w.disk.Damage("packs/000001.pack", 8*(disk.Block+i*each+30_000))
	}
	w.s.Start(0)
	w.awaitEnd(1)
	got := w.s.Report(0)
	if got.Now.Damaged != 3 || got.Now.Repaired != 2 || got.Now.Unneeded != 1 || got.LostChunks > 0 {
		t.Errorf("%+v", got)
	}
	if !w.s.isHere(list[0]) || !w.s.isHere(list[39]) {
		t.Error("what is named is not here")
	}
}

// TestCertain_KnowsWhatIsNotMissing has records of chunks that are on their way, and that are
// collected while they are looked at. A chunk that only older versions use is missing, too.
func TestCertain_KnowsWhatIsNotMissing(t *testing.T) {
	w := newWorld(t, 0)
	coming, missing, old, gone := chunk.Sum([]byte("coming")), chunk.Sum([]byte("missing")), chunk.Sum([]byte("old")), chunk.Sum([]byte("gone"))
	w.name(coming, 1)
	w.name(missing, 1)
	w.name(old, 0)
	b := w.db.NewBatch()
	err := replog.SaveUnheld(b, &replica.Entry{Slice: 1, Serial: 3, Epoch: 1, Chunks: coming[:]})
	if err == nil {
		err = b.Commit()
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := w.s.certain(1, []chunk.Address{coming, missing, old, gone})
	if err != nil || !slices.Equal(got, []chunk.Address{missing, old}) {
		t.Errorf("got %v, %v", got, err)
	}
	w.s.o.Whole = func(context.Context, ids.Slice) bool { return false }
	w.s.Start(0)
	w.awaitEnd(1)
	if got := w.s.Report(0); got.Now.Missing > 0 {
		t.Errorf("of a copy that is being made: %+v", got)
	}
	w.s.o.Whole = func(context.Context, ids.Slice) bool { return true }
	w.s.Start(0)
	w.awaitEnd(2)
	if got := w.s.Report(9); got.Now.Missing != 2 || len(got.Lost) != 2 {
		t.Errorf("of a whole one: %+v", got)
	}
}

// TestLost_StaysUntilItIsGone has a chunk that no member gives: while they are silent, while
// they lack it, and until one has it again or nothing names it.
func TestLost_StaysUntilItIsGone(t *testing.T) {
	w := newWorld(t, 0)
	list := w.put(2)
	back, dropped := list[0], list[1]
	body := w.others[back]
	for _, a := range list {
		w.name(a, 1)
		w.packs.Forget(a)
	}
	w.silent = true
	w.s.Start(0)
	w.awaitEnd(1)
	if got := w.s.Report(1); got.LostChunks != 2 || len(got.Lost) != 1 || !got.Lost[0].Unasked || got.Now.Missing != 2 {
		t.Fatalf("while nobody answers: %+v", got)
	}
	w.silent, w.others = false, map[chunk.Address][]byte{}
	w.live() // it is not forgotten
	w.until("another try", func() bool { return !w.s.Report(9).Lost[0].Unasked })
	asked := w.asked
	w.until("some more tries", func() bool { return w.asked >= asked+3 })
	if got := w.s.Report(9); got.LostChunks != 2 {
		t.Fatalf("while nobody has it: %+v", got)
	}
	w.others[back] = body
	b := w.db.NewBatch()
	err := b.Unset(1, tree.RefsKey(dropped))
	if err == nil {
		err = b.Commit()
	}
	if err != nil {
		t.Fatal(err)
	}
	w.until("the end of the alarm", func() bool { return w.s.Report(9).LostChunks == 0 })
	if got := w.s.Report(9); !w.s.isHere(back) || got.Total.Repaired != 1 {
		t.Errorf("%+v", got)
	}
	w.live()
	if got := w.s.Report(9); got.LostChunks != 0 {
		t.Errorf("in another life: %+v", got)
	}
}

func TestOpen_ThrowsAwayWhatItCannotRead(t *testing.T) {
	w := newWorld(t, 0)
	for _, text := range []string{"", "{", `{"Version":99,"Round":7}`} {
		if err := write(w.files, "scrub", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if w.live(); w.s.Report(0).Round != 0 {
			t.Errorf("%q: %+v", text, w.s.Report(0))
		}
	}
}

// newStates is a node that is a standby of slice 1, beside an active and maybe a third member.
func newStates(t *testing.T, states map[ids.Node]string) *world {
	t.Helper()
	w := newWorld(t, 0)
	w.states = states
	row := geoconfig.SliceRow{ID: 1, Active: "b"}
	for id := range states {
		row.Members = append(row.Members, geoconfig.Member{Node: id, State: geoconfig.Normal})
	}
	w.rows = []geoconfig.SliceRow{row}
	w.s.o.Row = func(ids.Slice) (geoconfig.SliceRow, bool) { return w.rows[0], true }
	return w
}

// TestStates_TheOddOneIsMadeAnew has each of three members be the odd one, and two members
// that differ.
func TestStates_TheOddOneIsMadeAnew(t *testing.T) {
	for name, x := range map[string]struct {
		states map[ids.Node]string
		anew   int
		odd    bool // the active
		alarm  int
	}{
		"all are equal":         {map[ids.Node]string{"a": "x", "b": "x", "c": "x"}, 0, false, 0},
		"this one is odd":       {map[ids.Node]string{"a": "y", "b": "x", "c": "x"}, 1, false, 1},
		"another one is":        {map[ids.Node]string{"a": "x", "b": "x", "c": "y"}, 0, false, 0},
		"the active is":         {map[ids.Node]string{"a": "x", "b": "y", "c": "x"}, 0, true, 1},
		"all differ":            {map[ids.Node]string{"a": "x", "b": "y", "c": "z"}, 1, false, 1},
		"two that differ":       {map[ids.Node]string{"a": "x", "b": "y"}, 1, false, 1},
		"this one acts for it":  {map[ids.Node]string{"a": "x", "b": "y"}, 0, false, 0},
		"this one is a junior":  {map[ids.Node]string{"a": "x", "b": "y"}, 0, false, 0},
		"others have the slice": {map[ids.Node]string{"c": "x", "b": "y"}, 0, false, 0},
	} {
		w := newStates(t, x.states)
		w.busy = 3
		switch name {
		case "this one acts for it":
			w.rows[0].Active = "a"
		case "this one is a junior":
			for i := range w.rows[0].Members {
				if m := &w.rows[0].Members[i]; m.Node == "a" {
					m.State = geoconfig.Recovering
				}
			}
		}
		w.s.Start(0)
		w.awaitEnd(1)
		got := w.s.Report(0)
		if w.madeAnew != x.anew || len(got.Different) != x.alarm || x.alarm > 0 && got.Different[0].ActiveDiffers != x.odd || int(got.Now.Different) != x.alarm {
			t.Errorf("%s: made anew %d times, %+v", name, w.madeAnew, got)
		}
	}
}

// TestStates_AlarmStaysUntilTheyAreEqual has a state that cannot be made anew at first, and
// one that differs again and again.
func TestStates_AlarmStaysUntilTheyAreEqual(t *testing.T) {
	w := newStates(t, map[ids.Node]string{"a": "x", "b": "y"})
	w.refused = true
	w.s.Start(0)
	w.awaitEnd(1)
	for range 5 {
		w.pass(w.s.step(t.Context()))
	}
	w.live()
	w.s.o.Row = func(ids.Slice) (geoconfig.SliceRow, bool) { return w.rows[0], true }
	if got := w.s.Report(0); len(got.Different) != 1 || w.madeAnew != 0 {
		t.Fatalf("%+v", got)
	}
	w.refused = false
	w.until("the end of the alarm", func() bool { return len(w.s.Report(0).Different) == 0 })
	if w.madeAnew != 1 {
		t.Errorf("it was made anew %d times", w.madeAnew)
	}
	w.s.o.Distrust = func(context.Context, ids.Slice) bool { w.madeAnew++; return true }
	w.states["a"] = "z"
	w.s.Start(0)
	w.awaitEnd(2)
	for range 20 {
		w.pass(w.s.step(t.Context()))
	}
	if w.madeAnew != 1+anewMost || len(w.s.Report(0).Different) != 1 {
		t.Errorf("made anew %d times, %+v", w.madeAnew, w.s.Report(0))
	}
}
