package relief

import (
	"log/slog"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/placement"
)

// site is one site with nodes of 1,000 bytes and slices of two copies, of which node a1
// has one and is the giver. Tests change its fields between steps.
type site struct {
	t      *testing.T
	rows   map[ids.Slice]geoconfig.SliceRow
	nodes  map[ids.Node]geoconfig.Node
	bytes  map[ids.Slice]int64
	marks  *geoconfig.Balance
	away   time.Time
	used   int64
	full   bool
	now    time.Duration
	giver  *Giver
	reads  int // how often the size of a slice was read
	settle time.Duration
}

func newSite(t *testing.T, used int64) *site {
	s := &site{t: t, rows: map[ids.Slice]geoconfig.SliceRow{}, nodes: map[ids.Node]geoconfig.Node{}, bytes: map[ids.Slice]int64{}, used: used, settle: time.Hour}
	for _, id := range []ids.Node{"a1", "a2", "a3", "a4"} {
		s.nodes[id] = geoconfig.Node{ID: id, Site: "a", CapacityBytes: 1000}
	}
	for id, bytes := range map[ids.Slice]int64{1: 100, 2: 60, 3: 40} {
		s.put(id, "a1", "a4")
		s.bytes[id] = bytes
	}
	s.fill("a1", used)
	s.giver = New(Options{Self: "a1", Site: "a", Roster: s, Candidates: s.candidates,
		Disk:   func() Disk { return Disk{Used: s.used, Capacity: 1000, Full: s.full} },
		Stored: func(id ids.Slice) (int64, bool) { s.reads++; return s.bytes[id], true }, Idle: func(ids.Slice) time.Duration { return 0 },
		Settle: s.settle, Clock: func() time.Duration { return s.now }, Logger: slog.New(slog.DiscardHandler)})
	return s
}

// put gives a slice these members, the active first.
func (s *site) put(id ids.Slice, members ...ids.Node) {
	row := geoconfig.SliceRow{ID: id, Active: members[0], Policy: geoconfig.Policy{Home: "a", Level: 2, Sites: 1}}
	for _, m := range members {
		row.Members = append(row.Members, geoconfig.Member{Node: m, State: geoconfig.Normal})
	}
	s.rows[id] = row
}

func (s *site) fill(id ids.Node, used int64) {
	n := s.nodes[id]
	n.UsedBytes, n.Fill = used, s.Sites()[0].Marks().FillOf(used, 1000)
	s.nodes[id] = n
}

func (s *site) candidates() []placement.Candidate {
	return placement.Candidates(s.Nodes(), s.Slices(), func(geoconfig.Node) bool { return false })
}

func (s *site) Node(id ids.Node) (geoconfig.Node, bool) { n, ok := s.nodes[id]; return n, ok }

func (s *site) Nodes() (out []geoconfig.Node) {
	for _, id := range []ids.Node{"a1", "a2", "a3", "a4"} {
		out = append(out, s.nodes[id])
	}
	return out
}

func (s *site) Sites() []geoconfig.Site { return []geoconfig.Site{{Name: "a", Balance: s.marks}} }

func (s *site) Slice(id ids.Slice) (geoconfig.SliceRow, bool) { r, ok := s.rows[id]; return r, ok }

func (s *site) Slices() (out []geoconfig.SliceRow) {
	for _, id := range []ids.Slice{1, 2, 3} {
		out = append(out, s.rows[id])
	}
	return out
}

func (s *site) Away() time.Time { return s.away }

// step looks once after a time, and fails unless the row then says this.
func (s *site) step(after time.Duration, want geoconfig.Giving, changed bool) {
	s.t.Helper()
	s.now += after
	got := s.giver.Step()
	var row geoconfig.Node
	s.giver.FillRow(&row)
	if row.Giving == nil {
		row.Giving = &geoconfig.Giving{}
	}
	if *row.Giving != want || got != changed {
		s.t.Fatalf("after %v: gives %+v, changed %v; want %+v, %v", s.now, *row.Giving, got, want, changed)
	}
	n := s.nodes["a1"]
	n.Giving = nil
	if want.Slice != 0 {
		n.Giving = row.Giving
	}
	s.nodes["a1"] = n
}

var nothing geoconfig.Giving

// TestStep_GivesOneAfterTheOtherDownToTheLowMark starts at 900 of 1,000 bytes.
func TestStep_GivesOneAfterTheOtherDownToTheLowMark(t *testing.T) {
	s := newSite(t, 900)
	first := geoconfig.Giving{Slice: 1, To: "a2"}
	s.step(0, first, true)
	s.step(time.Second, first, false)
	row := s.rows[1]
	row.Members = append(row.Members, geoconfig.Member{Node: "a2", State: geoconfig.Migrating})
	s.rows[1] = row
	s.step(24*time.Hour, first, false) // a copy takes as long as it takes
	s.put(1, "a2", "a4")
	s.step(time.Second, nothing, true)
	s.step(rest-1, nothing, false)
	// What has left counts as gone, although the disk has not given it back.
	second := geoconfig.Giving{Slice: 3, To: "a3"}
	s.fill("a2", 100)
	s.step(1, second, true)
	s.put(3, "a3", "a4")
	s.step(time.Second, nothing, true)
	s.step(rest, geoconfig.Giving{Slice: 2, To: "a3"}, true) // 760: more than the low mark
	s.put(2, "a3", "a4")
	s.step(time.Second, nothing, true)
	s.step(rest, nothing, false)
	if got := s.giver.Report(); got.Fill != "roomy" || got.Remedy != "" {
		t.Errorf("got %+v at 700 of 1,000 bytes", got)
	}
}

func TestStep_AFullDiskDoesNotRest(t *testing.T) {
	s := newSite(t, 990)
	s.full = true
	s.step(0, geoconfig.Giving{Slice: 1, To: "a2"}, true)
	s.put(1, "a2", "a4")
	s.step(time.Second, geoconfig.Giving{Slice: 2, To: "a3"}, true) // a2 has just taken one
	if got := s.giver.Report(); got.Fill != "full" || got.Giving != 2 || got.To != "a3" {
		t.Errorf("got %+v", got)
	}
	var row geoconfig.Node
	if s.giver.FillRow(&row); row.Fill != geoconfig.Full {
		t.Errorf("got %v in the row", row.Fill)
	}
}

func TestStep_WithdrawsWhatNobodyTakes(t *testing.T) {
	s := newSite(t, 900)
	s.step(0, geoconfig.Giving{Slice: 1, To: "a2"}, true)
	s.step(joinWithin, geoconfig.Giving{Slice: 1, To: "a2"}, false)
	s.step(1, geoconfig.Giving{Slice: 2, To: "a2"}, true) // the first one is put aside
	row := s.rows[2]
	row.Members = append(row.Members, geoconfig.Member{Node: "a2", State: geoconfig.Migrating})
	s.rows[2] = row
	s.step(1, geoconfig.Giving{Slice: 2, To: "a2"}, false)
	s.put(2, "a1", "a4") // the other one failed meanwhile, and left
	s.step(1, geoconfig.Giving{Slice: 3, To: "a2"}, true)
	s.put(3, "a2", "a4")
	s.step(asideFor, nothing, true)
	s.step(rest, geoconfig.Giving{Slice: 1, To: "a3"}, true)
}

func TestStep_EndsWhereItIsNotNeededAnyMore(t *testing.T) {
	s := newSite(t, 900)
	s.step(0, geoconfig.Giving{Slice: 1, To: "a2"}, true)
	s.used = 700 // somebody deleted files
	s.step(time.Second, nothing, true)
	s.used = 900
	s.marks = &geoconfig.Balance{Off: true, High: 85, Low: 75}
	s.step(asideFor, nothing, false)
	if got := s.giver.Report(); !got.Off || got.Remedy == "" {
		t.Errorf("got %+v where it is switched off, want how to switch it on", got)
	}
	s.marks = nil
	s.step(0, geoconfig.Giving{Slice: 1, To: "a2"}, true)
	s.marks = &geoconfig.Balance{High: 95, Low: 92}
	s.step(0, nothing, true)
}

func TestStep_SaysWhyNothingMoves(t *testing.T) {
	s := newSite(t, 900)
	s.fill("a2", 800)
	s.fill("a3", 740)
	s.bytes = map[ids.Slice]int64{1: 100, 2: 90, 3: 80}
	s.step(0, nothing, false)
	if got := s.giver.Report(); got.Remedy == "" || got.Fill != "high" {
		t.Errorf("got %+v, want what would help", got)
	}
	s.fill("a3", 700)
	s.step(again-1, nothing, false)
	s.step(1, geoconfig.Giving{Slice: 1, To: "a3"}, true)
	if got := s.giver.Report(); got.Remedy != "" {
		t.Errorf("got %+v while a slice moves", got)
	}
}

func TestStep_LooksAtNoSliceWithoutNeed(t *testing.T) {
	s := newSite(t, 800)
	s.step(0, nothing, false)
	s.away, s.used = time.Unix(1, 0), 900
	s.step(0, nothing, false)
	if s.reads != 0 {
		t.Errorf("read the sizes of %d slices below the high mark, or without geo-config", s.reads)
	}
	s.away = time.Time{}
	s.step(0, geoconfig.Giving{Slice: 1, To: "a2"}, true)
}

func TestNew_GoesOnAfterARestart(t *testing.T) {
	s := newSite(t, 800) // between the marks: only who began goes on
	n := s.nodes["a1"]
	n.Giving = &geoconfig.Giving{Slice: 2, To: "a3"}
	s.nodes["a1"] = n
	s.giver = New(s.giver.o)
	s.step(0, geoconfig.Giving{Slice: 2, To: "a3"}, false)
	s.put(2, "a3", "a4")
	s.step(1, nothing, true)
}

// TestStep_TwoNodesDoNotGiveToAndFro has the slice that left come back to nobody: the
// node that took it is below the middle between its marks.
func TestStep_TwoNodesDoNotGiveToAndFro(t *testing.T) {
	s := newSite(t, 860)
	s.bytes[1] = 110
	s.step(0, geoconfig.Giving{Slice: 1, To: "a2"}, true)
	s.put(1, "a2", "a4")
	s.fill("a2", 750)
	taker := New(Options{Self: "a2", Site: "a", Roster: s, Candidates: s.candidates, Disk: func() Disk { return Disk{Used: 800, Capacity: 1000} },
		Stored: s.giver.o.Stored, Idle: s.giver.o.Idle, Settle: time.Hour, Clock: s.giver.o.Clock, Logger: s.giver.o.Logger})
	s.step(time.Second, nothing, true)
	s.used = 750 // the space comes back
	for range 100 {
		s.step(time.Minute, nothing, false)
		if taker.Step() {
			t.Fatal("the node that took the slice gives one away")
		}
	}
}
