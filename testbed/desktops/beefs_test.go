package desktops

import (
	"testing"
	"time"
)

// bed is a small world of BeeFS, with disks of some bytes each.
type bed struct {
	*beeFS
	t *testing.T
}

func newBed(t *testing.T, p Policy, copies int, disks ...int64) bed {
	o := Options{Seed: 1, Desktops: len(disks), DiskBytes: 1, Copies: copies, Coherence: time.Minute}
	b := newBeeFS(o, p)
	for i, size := range disks {
		b.disks[i] = disk{size: size}
	}
	return bed{b, t}
}

// at does something at a second and a machine, and checks every byte after it.
func (b bed) at(second, machine int, k Kind, f File, bytes int64, want outcome) {
	b.t.Helper()
	got, err := b.do(Event{At: time.Duration(second) * time.Second, Kind: k, Machine: machine, File: f, Bytes: bytes})
	if err == nil {
		err = b.check()
	}
	if err != nil || got != want {
		b.t.Errorf("second %d, %s of file %d at machine %d: got %d, %v; want %d", second, k, f, machine, got, err, want)
	}
}

// lies checks where the copies of a file are, the primary first.
func (b bed) lies(f File, want ...int) {
	b.t.Helper()
	x := b.files[f]
	var got []int
	for i := range int(x.n) {
		got = append(got, int(x.copies[i].machine))
	}
	if len(got) != len(want) {
		b.t.Errorf("file %d lies at %v, want %v", f, got, want)
		return
	}
	for i := range got {
		if got[i] != want[i] {
			b.t.Errorf("file %d lies at %v, want %v", f, got, want)
			return
		}
	}
}

func TestBeeFS_WriteLocalAndCopyLater(t *testing.T) {
	b := newBed(t, BeeLRU, 3, 100, 1000, 500, 800)
	b.at(0, 0, Create, 0, 10, done)
	b.lies(0, 0)
	b.at(59, 0, Read, 0, 0, primary)
	b.lies(0, 0) // the time to coherence has not passed
	b.at(60, 1, Read, 0, 0, secondary)
	b.lies(0, 0, 1, 3) // where most is free
	b.at(61, 2, Read, 0, 0, remote)
}

func TestBeeFS_StaleSecondariesServeNobody(t *testing.T) {
	b := newBed(t, BeeLRU, 2, 100, 1000)
	b.at(0, 0, Create, 0, 10, done)
	b.at(60, 1, Read, 0, 0, secondary)
	b.at(100, 0, Overwrite, 0, 0, done)
	b.at(101, 1, Read, 0, 0, remote)
	b.at(160, 1, Read, 0, 0, secondary)
	b.at(200, 1, Append, 0, 5, done)
	b.at(201, 1, Read, 0, 0, remote)
	if b.disks[0].used != 15 || b.disks[1].used != 10 {
		t.Errorf("the disks hold %d and %d bytes, want 15 and 10", b.disks[0].used, b.disks[1].used)
	}
	b.at(260, 1, Read, 0, 0, secondary)
	if b.disks[1].used != 15 {
		t.Errorf("the secondary has %d bytes, want 15", b.disks[1].used)
	}
}

func TestBeeFS_SecondariesLeaveAFullDiskFirst(t *testing.T) {
	b := newBed(t, BeeLRU, 2, 100, 100, 40)
	b.at(0, 1, Create, 0, 60, done) // its secondary goes to 0
	b.at(1, 0, Create, 1, 30, done) // its secondary goes to 2
	b.at(70, 0, Read, 1, 0, primary)
	b.lies(0, 1, 0)
	b.lies(1, 0, 1)
	b.at(71, 0, Create, 2, 40, done)
	b.lies(0, 1)
	b.lies(1, 0, 1)
	b.lies(2, 0)
	b.disks[2].size = 300
	b.at(131, 1, Read, 0, 0, primary)
	b.lies(0, 1, 2) // it came again elsewhere
	if c := b.counts(); c.Evicted != 1 || c.Moved != 0 || c.Elsewhere != 0 {
		t.Errorf("got %+v, want one secondary evicted", c)
	}
}

// crowded has a full disk 0 with two primaries, of which file 0 was used last.
func crowded(t *testing.T, p Policy) bed {
	b := newBed(t, p, 2, 100, 1000, 1000)
	b.at(0, 0, Create, 0, 50, done)
	b.at(1, 0, Create, 1, 50, done)
	b.at(100, 0, Read, 0, 0, primary)
	b.lies(0, 0, 1)
	b.lies(1, 0, 2)
	return b
}

func TestBeeFS_ThenPrimariesWithABackupLeave(t *testing.T) {
	b := crowded(t, BeeLRU)
	b.at(101, 0, Create, 2, 20, done)
	b.lies(0, 0, 1)
	b.lies(1, 2) // the secondary became the primary
	b.lies(2, 0)
	b.at(161, 0, Read, 1, 0, remote)
	b.lies(1, 2, 1) // and one more is made elsewhere later
	if c := b.counts(); c.Evicted != 0 || c.Moved != 1 {
		t.Errorf("got %+v, want one primary moved", c)
	}
}

func TestBeeFS_RandomPrimariesLeave(t *testing.T) {
	left := map[File]bool{}
	for seed := range uint64(20) {
		b := crowded(t, BeeRandom)
		b.random.Uint64()
		for range seed {
			b.random.Uint64()
		}
		b.at(101, 0, Create, 2, 20, done)
		for f := range File(2) {
			if b.files[f].copies[0].machine != 0 {
				left[f] = true
			}
		}
	}
	if len(left) != 2 {
		t.Errorf("only %v ever left", left)
	}
}

func TestBeeFS_APrimaryWithoutACurrentBackupStays(t *testing.T) {
	b := crowded(t, BeeLRU)
	b.at(101, 0, Overwrite, 1, 0, done) // its secondary is stale now
	b.at(102, 0, Create, 2, 20, done)
	b.lies(1, 0, 2)
	b.lies(0, 1)
	b.at(103, 0, Create, 3, 40, done) // nothing may leave: it goes elsewhere
	b.lies(1, 0, 2)
	b.lies(3, 1)
	if c := b.counts(); c.Elsewhere != 1 {
		t.Errorf("got %+v, want one created elsewhere", c)
	}
}

func TestBeeFS_AppendMakesRoomOrMovesTheFile(t *testing.T) {
	b := crowded(t, BeeLRU)
	b.at(101, 0, Append, 0, 30, done)
	b.lies(0, 0, 1)
	b.lies(1, 2)
	b = newBed(t, BeeLRU, 2, 100, 1000)
	b.at(0, 0, Create, 0, 90, done)
	b.at(60, 0, Read, 0, 0, primary)
	b.at(61, 0, Append, 0, 20, done) // it does not fit its own disk
	b.lies(0, 1)
	b.at(121, 0, Read, 0, 0, remote)
	b.lies(0, 1) // 110 bytes fit nowhere else
	if c := b.counts(); c.Short != 1 || c.Moved != 1 {
		t.Errorf("got %+v, want a file that is short of a copy", c)
	}
	b.disks[0].size = 200
	b.at(121+int(tryAgain/time.Second), 0, Read, 0, 0, secondary)
	if c := b.counts(); c.Short != 0 {
		t.Errorf("got %+v, want no file short of a copy once there is room", c)
	}
}

func TestBeeFS_RefuseWhatFitsNowhere(t *testing.T) {
	b := newBed(t, BeeLRU, 1, 100, 50)
	b.at(0, 0, Create, 0, 90, done)
	b.at(1, 0, Create, 1, 60, refused)
	b.at(2, 0, Read, 1, 0, missing)
	b.at(3, 0, Append, 0, 20, refused)
	b.at(4, 0, Replace, 0, 100, refused)
	b.at(5, 0, Read, 0, 0, primary)
	b.at(6, 0, Delete, 0, 0, done)
	b.at(7, 0, Create, 1, 60, done)
}

func TestBeeFS_AReplacementIsWhereItsWriterIs(t *testing.T) {
	b := newBed(t, BeeLRU, 2, 100, 100, 100)
	b.at(0, 0, Create, 0, 10, done)
	b.at(60, 0, Read, 0, 0, primary)
	b.at(61, 2, Replace, 0, 20, done)
	b.lies(0, 2)
	b.at(121, 0, Read, 0, 0, secondary)
	b.lies(0, 2, 0)
}

func TestBeeFS_ASecondaryLeavesADiskTooSmall(t *testing.T) {
	b := newBed(t, BeeLRU, 2, 300, 100, 90)
	b.at(0, 0, Create, 0, 80, done)
	b.at(60, 0, Read, 0, 0, primary)
	b.lies(0, 0, 1)
	b.at(61, 2, Create, 1, 60, done)
	b.disks[1].other = 20
	b.disks[2].size = 300
	b.at(62, 0, Append, 0, 20, done)
	b.at(200, 0, Read, 0, 0, primary)
	b.lies(0, 0, 2)
}

func TestBeeFS_RandomMachinesSpread(t *testing.T) {
	b := newBed(t, Random, 1, 1e6, 1e6, 1e6, 1e6)
	for f := range File(400) {
		b.at(int(f), 0, Create, f, 1, done)
	}
	for m, l := range b.primaries {
		if len(l) < 70 || len(l) > 130 {
			t.Errorf("machine %d has %d of 400 files", m, len(l))
		}
	}
}
