package desktops

import (
	"slices"
	"testing"
	"time"
)

// TestWorlds_BeginWithFullDisks looks at what each policy makes of the start: the
// full disks have no byte left and no secondaries, and nothing has happened yet.
func TestWorlds_BeginWithFullDisks(t *testing.T) {
	o := small()
	full := fullDesktops(o)
	if len(full) != o.Full {
		t.Fatalf("%d disks are full, want %d", len(full), o.Full)
	}
	trace := NewTrace(o)
	worlds, err := begin(o, trace, Policies())
	if err != nil {
		t.Fatal(err)
	}
	if err := checkAll(t.Context(), worlds); err != nil {
		t.Error(err)
	}
	held := NewTrace(o).held // begin gave the other's away
	for _, w := range worlds {
		if c := w.counts(); c.Moved+c.Evicted+c.Elsewhere+c.Short != 0 {
			t.Errorf("%s: got %+v before anything happened", w.outcome.Policy, c)
		}
		disks := disksOf(w.world)
		for i := range disks {
			if free := disks[i].free(); full[i] != (free == 0) {
				t.Errorf("%s: disk %d is full: %v, and it has %d bytes free", w.outcome.Policy, i, full[i], free)
			}
		}
		b, ok := w.world.(*beeFS)
		if !ok {
			continue
		}
		for _, h := range held {
			x := b.files[h.File]
			if at := int(x.copies[0].machine); at != h.User && (h.Old || w.outcome.Policy != Random) {
				t.Fatalf("%s: file %d of user %d is at %d", w.outcome.Policy, h.File, h.User, at)
			}
			for _, c := range x.copies[1:x.n] {
				if full[int(c.machine)] {
					t.Fatalf("%s: the full disk %d has a secondary of file %d", w.outcome.Policy, c.machine, h.File)
				}
			}
			if int(x.n) != o.Copies {
				t.Fatalf("%s: file %d has %d copies", w.outcome.Policy, h.File, x.n)
			}
		}
	}
}

func disksOf(w world) []disk {
	if b, ok := w.(*beeFS); ok {
		return b.disks
	}
	return w.(*cartwheel).disks
}

// TestTrace_FillsFullDisksWithOldFiles looks at how many bytes users have.
func TestTrace_FillsFullDisksWithOldFiles(t *testing.T) {
	o := small()
	full, bytes, old := fullDesktops(o), map[int]int64{}, map[int]bool{}
	for _, h := range NewTrace(o).held {
		bytes[h.User] += h.Bytes
		old[h.User] = old[h.User] || h.Old
	}
	room := int64(float64(o.DiskBytes) * (1 - o.Fill))
	for u := range o.Desktops {
		if filled := bytes[u] > room*9/10 && bytes[u] <= room; filled != full[u] || old[u] != full[u] {
			t.Errorf("user %d has %d bytes of %d, old ones: %v; want a full disk: %v", u, bytes[u], room, old[u], full[u])
		}
	}
}

func TestObserver_TellsWhatWasWrittenSinceTheLogin(t *testing.T) {
	w := newObserver(Options{Desktops: 2})
	for i, e := range []Event{
		{Kind: Login, User: 0, Machine: 0},
		{Kind: Login, User: 1, Machine: 0},
		{Kind: Stat, Calls: 3},
		{Kind: Create, File: 7, Bytes: 10, Open: time.Second},
		{Kind: Read, File: 7}, // written since
		{Kind: Read, File: 8}, // never
		{Kind: Stat, Calls: 1},
		{Kind: Login, User: 0, Machine: 1},
		{Kind: Read, File: 7}, // before the last login
		{Kind: Append, File: 7, Bytes: 5},
		{Kind: Read, File: 7}, // since
		{Kind: Overwrite, File: 8},
		{Kind: Read, File: 8}, // since
	} {
		e.At = time.Duration(i+1) * time.Hour
		w.see(e)
	}
	f := w.done()
	if f.Own != 0.6 || f.Followed != 0.5 || f.Away != 2.0/3 || f.Opens != 8 || f.Written != 15 || f.Brief != 7.0/8 || f.MedianSize != 10 || f.ByKind["stat"] != 4 || f.Events != 13 {
		t.Errorf("got %+v", f)
	}
}

func TestBeeFS_TheCopyOnTheFullDiskLeaves(t *testing.T) {
	b := newBed(t, BeeLRU, 3, 1000, 110, 100, 50)
	b.at(0, 0, Create, 0, 60, done)
	b.at(60, 0, Read, 0, 0, primary)
	b.lies(0, 0, 1, 2)
	b.at(61, 1, Create, 1, 60, done)
	b.lies(0, 0, 2)
	b.lies(1, 1)
}

func TestBeeFS_NothingLeavesForWhatNeverFits(t *testing.T) {
	b := newBed(t, BeeLRU, 2, 100, 1000)
	b.disks[0].other = 40
	b.at(0, 1, Create, 0, 30, done)
	b.at(60, 0, Read, 0, 0, secondary)
	b.at(61, 0, Create, 1, 70, done)
	b.lies(0, 1, 0)
	b.lies(1, 1)
	if c := b.counts(); c.Evicted != 0 || c.Elsewhere != 1 || !slices.Equal(b.secondaries[0], []File{0}) {
		t.Errorf("got %+v, want nothing evicted", c)
	}
}
