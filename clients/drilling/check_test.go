package drilling

import (
	"strings"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/drill"
	"cartwheel.dev/node/protocol/status"
)

// wholeCluster is three nodes at three sites, which are all members of slice 1.
func wholeCluster() Seen {
	var s Seen
	row := status.Slice{SliceRow: geoconfig.SliceRow{ID: 1, Active: "n1", Policy: geoconfig.Policy{Home: "a", Level: 3}}, Role: "active", Serving: true}
	for _, x := range [][2]string{{"n1", "a"}, {"n2", "b"}, {"n3", "c"}} {
		n := SeenNode{Node: geoconfig.Node{ID: ids.Node(x[0]), Site: ids.Site(x[1]), Incarnation: 1}}
		n.Status.GeoConfig.Reachable = true
		s.Nodes = append(s.Nodes, n)
		row.SliceRow.Members = append(row.SliceRow.Members, geoconfig.Member{Node: ids.Node(x[0]), State: geoconfig.Normal})
	}
	s.Slices = []status.Slice{row}
	return s
}

func TestObstacles_OfAClusterThatIsNotWhole(t *testing.T) {
	kill := drill.Plan{ID: "x", Kind: drill.KillActive, Node: "n1", For: time.Second}
	cut := drill.Plan{ID: "x", Kind: drill.Cut, Site: "a", For: time.Second}
	for name, x := range map[string]struct {
		plan   drill.Plan
		accept bool
		change func(*Seen)
		want   string // a part of the only obstacle; empty: there is none
	}{
		"whole":                        {kill, false, func(*Seen) {}, ""},
		"whole, and a cut":             {cut, false, func(*Seen) {}, ""},
		"a node is away":               {kill, true, func(s *Seen) { s.Nodes[1].Err = fault.E(fault.Unreachable, "", "", "") }, "does not answer"},
		"another drill":                {kill, true, func(s *Seen) { s.Nodes[1].Refuses = fault.E(fault.Busy, "", "", "") }, "another drill"},
		"a node's program is older":    {kill, true, func(s *Seen) { s.Nodes[1].Refuses = fault.E(fault.NotSupported, "", "", "") }, "would not take part"},
		"a drain":                      {kill, true, func(s *Seen) { s.Nodes[2].Draining = true }, "being drained"},
		"geo-config is away":           {kill, true, func(s *Seen) { s.Nodes[0].Status.GeoConfig.Reachable = false }, "does not reach geo-config"},
		"a lost chunk":                 {kill, true, func(s *Seen) { s.Nodes[0].Status.Scrub = &status.Scrub{LostChunks: 1} }, "damage to repair"},
		"an odd state":                 {kill, true, func(s *Seen) { s.Nodes[0].Status.Scrub = &status.Scrub{Different: make([]status.DifferentState, 1)} }, "damage to repair"},
		"an ordered scrub":             {kill, true, func(s *Seen) { s.Nodes[0].Status.Scrub = &status.Scrub{Running: true, Ordered: true} }, "damage to repair"},
		"a scrub by itself":            {kill, true, func(s *Seen) { s.Nodes[0].Status.Scrub = &status.Scrub{Running: true} }, ""},
		"a junior":                     {kill, true, func(s *Seen) { s.Slices[0].SliceRow.Members[2].State = geoconfig.Recovering }, "has 2 of 3 copies"},
		"a slice that does not serve":  {kill, true, func(s *Seen) { s.Slices[0].Serving, s.Slices[0].Why = false, "no lease" }, "no lease"},
		"no slices":                    {kill, true, func(s *Seen) { s.Slices = nil }, "any slice"},
		"one copy":                     {kill, false, oneCopy, "slices 1 would stop"},
		"one copy, cut off":            {cut, false, oneCopy, "slices 1 would stop"},
		"one copy, which is accepted":  {kill, true, oneCopy, ""},
		"one copy, without geo-config": {drill.Plan{ID: "x", Kind: drill.GeoConfig, For: time.Second}, false, oneCopy, ""},
	} {
		s := wholeCluster()
		x.change(&s)
		got := s.Obstacles(x.plan, x.accept)
		if x.want == "" && len(got) > 0 || x.want != "" && (len(got) != 1 || !strings.Contains(got[0], x.want)) {
			t.Errorf("%s: got %q, want %q", name, got, x.want)
		}
	}
}

// oneCopy has one member alone keep the slice, as its policy says.
func oneCopy(s *Seen) {
	s.Slices[0].SliceRow.Members, s.Slices[0].Policy.Level = s.Slices[0].SliceRow.Members[:1], 1
}

func TestTrouble_IsASilentNodeOrAnEmptySlice(t *testing.T) {
	silent := map[ids.Node]int{}
	s := wholeCluster()
	s.Nodes[1].Err = fault.E(fault.TimedOut, "", "", "")
	if got, is := findTrouble(&s, silent); is {
		t.Errorf("a node that was silent once: got %+v", got)
	}
	if got, is := findTrouble(&s, silent); !is || got.stop != drill.Failing {
		t.Errorf("a node that was silent twice: got %+v", got)
	}
	s.Nodes[1].Err = nil
	if got, is := findTrouble(&s, silent); is {
		t.Errorf("a node that answers again: got %+v", got)
	}
	for i := range s.Slices[0].SliceRow.Members {
		s.Slices[0].SliceRow.Members[i].State = geoconfig.Failed
	}
	if got, is := findTrouble(&s, silent); !is || got.stop != drill.Members {
		t.Errorf("a slice without normal members: got %+v", got)
	}
}
