package journal

import (
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/store/disk"
)

// TestJournal_ATornHeaderLeavesNoHole trims several segments at once and tears the
// header with which one of them is begun anew. No place on the disk but that
// header says yet that they are trimmed: what is left must still be one chain.
func TestJournal_ATornHeaderLeavesNoHole(t *testing.T) {
	d := disk.NewMemory()
	j, _ := opened(t, d, small())
	last := Position(0)
	i := 0
	write := func() error {
		p, err := add(t, j, payload(i))
		if err == nil {
			last = p
		}
		i++
		return err
	}
	segments := func() (live, free int) { // beside the goroutine that prepares spare ones
		j.mu.Lock()
		defer j.mu.Unlock()
		return len(j.live), len(j.free)
	}
	for live, _ := segments(); live < 4; live, _ = segments() {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Trim(last); err != nil {
		t.Fatal(err)
	}
	if _, free := segments(); free < 3 {
		t.Fatalf("%d segments are free, want 3", free)
	}
	d.Fail(disk.Rule{Site: disk.JournalHeader, Times: 1, Kind: fault.IO, Keep: 30})
	kept := last
	for write() == nil {
		kept = last
	}
	j.Close()
	j, got := opened(t, d.Clone(), small())
	if len(got) == 0 || j.End() <= kept {
		t.Errorf("%d records and an end at %d are left, want those up to %d at least", len(got), j.End(), kept)
	}
}

// TestJournal_ClaimsItsFirstStretchOnce stops a process behind the header of its
// first segment, with a spare one beside it. Were the next process to begin with
// the spare one, two would claim the stretch, and a later start would take the
// empty one.
func TestJournal_ClaimsItsFirstStretchOnce(t *testing.T) {
	d := disk.NewMemory()
	j, _ := opened(t, d, small())
	spare, err := j.create()
	if err != nil {
		t.Fatal(err)
	}
	spare.f.Close()
	d.Fail(disk.Rule{Site: disk.JournalAppend, Times: 1, Kind: fault.IO})
	if _, err := add(t, j, payload(0)); err == nil {
		t.Fatal("nothing failed")
	}
	j.Close()
	j, _ = opened(t, d.Clone(), small())
	for i := range 10 {
		if _, err := add(t, j, payload(i)); err != nil {
			t.Fatal(err)
		}
	}
	after := j.d.(*disk.Memory).Clone()
	j.Close()
	if _, got := opened(t, after, small()); len(got) != 10 {
		t.Errorf("%d records are there, want 10", len(got))
	}
}

func TestJournal_ReusesWhatMayBeLost(t *testing.T) {
	const fresh = ^uint64(0) // without a header
	for _, c := range []struct {
		free     []uint64
		sequence uint64
		want     int
	}{
		{nil, 5, -1},
		{[]uint64{3, 2, 4}, 8, 1},
		{[]uint64{3, 0, 4}, 8, 1},
		{[]uint64{3, 8, 2, 9}, 8, 1},
		{[]uint64{3, 9, 2}, 8, 1},
		{[]uint64{9, 2}, 8, 0},
		{[]uint64{0}, 0, 0},
		{[]uint64{fresh, 0}, 0, 1},
		{[]uint64{0, fresh}, 0, 0},
		{[]uint64{fresh}, 0, 0},
		{[]uint64{fresh, 9}, 8, 1},
		{[]uint64{2, fresh}, 8, 1},
	} {
		var j Journal
		for _, n := range c.free {
			s := &segment{claims: n != fresh, sequence: n}
			if !s.claims {
				s.sequence = 0
			}
			j.free = append(j.free, s)
		}
		if got := j.reusedLocked(c.sequence); got != c.want {
			t.Errorf("of %v for %d: got %d, want %d", c.free, c.sequence, got, c.want)
		}
	}
}
