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
	for len(j.live) < 4 {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Trim(last); err != nil {
		t.Fatal(err)
	}
	if len(j.free) < 3 {
		t.Fatalf("%d segments are free, want 3", len(j.free))
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

func TestJournal_ReusesWhatMayBeLost(t *testing.T) {
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
	} {
		var j Journal
		for _, n := range c.free {
			j.free = append(j.free, &segment{sequence: n})
		}
		if got := j.reused(c.sequence); got != c.want {
			t.Errorf("of %v for %d: got %d, want %d", c.free, c.sequence, got, c.want)
		}
	}
}
