package whatif

import (
	"slices"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// line are sites on a line, by their distance from tokyo in milliseconds.
var line = map[ids.Site]time.Duration{"tokyo": 0, "boston": 150, "paris": 230, "oslo": 260, "lima": 420}

const ms = time.Millisecond

// five is a cluster of five sites with a node each, on a line: tokyo, 150 ms to
// boston, 80 to paris, 30 to oslo, 160 to lima. Slice 1 is of tokyo, 2 of boston,
// 3 of paris; each has its copies where it says.
func five() State {
	var s State
	for _, name := range []ids.Site{"boston", "lima", "oslo", "paris", "tokyo"} {
		s.Nodes = append(s.Nodes, Node{Node: geoconfig.Node{ID: ids.Node(name), Site: name, Incarnation: 1,
			Coordinate: geoconfig.Coordinate{Vector: []float64{float64(line[name]), 0}, Error: 0.1}}})
	}
	s.Slices = []Slice{
		slice(1, 3, 1<<30, "tokyo", "boston", "paris"),
		slice(2, 3, 2<<30, "boston", "paris", "oslo"),
		slice(3, 2, UnknownSize, "paris", "oslo"),
	}
	return s
}

// slice is a slice whose home and active are at the first site.
func slice(id ids.Slice, level int, bytes int64, at ...ids.Node) Slice {
	row := geoconfig.SliceRow{ID: id, Epoch: 1, Active: at[0], Policy: geoconfig.Policy{Home: ids.Site(at[0]), Level: level, Kind: geoconfig.Ordinary}}
	for _, n := range at {
		row.Members = append(row.Members, geoconfig.Member{Node: n, State: geoconfig.Normal, Incarnation: 1})
	}
	return Slice{SliceRow: row, Bytes: bytes}
}

func predict(t *testing.T, s State, changes ...Change) Outcome {
	t.Helper()
	o, err := Predict(s, changes, Assumptions{Rate: 100 << 20, FailedAfter: 30 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func siteOf(t *testing.T, o Outcome, name ids.Site) Site {
	t.Helper()
	for _, s := range o.Sites {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no outcome for %s: %+v", name, o.Sites)
	return Site{}
}

func TestPredict_NothingChangesNothing(t *testing.T) {
	o := predict(t, five())
	want := Summary{Slices: 3, Protected: 3, Critical: []ids.Site{}}
	for _, got := range []Summary{o.Before, o.During, o.After} {
		if got.Slices != want.Slices || got.Protected != want.Protected || len(got.Critical) > 0 {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if len(o.Slices)+len(o.Copies) > 0 {
		t.Errorf("changes %+v and copies %+v", o.Slices, o.Copies)
	}
}

func TestPredict_CountsRoundTrips(t *testing.T) {
	o := predict(t, five())
	// slice 2 is active at boston with standbys at paris (80 ms) and oslo (110 ms)
	if got, want := siteOf(t, o, "boston").OwnBefore.Median, (Latency{Read: 0, Content: 0, Write: 110 * ms}); got != want {
		t.Errorf("boston's own: %+v, want %+v", got, want)
	}
	// from lima: slice 1 is 420 ms away (content 190 at paris), 2 is 270 (160 at
	// oslo), 3 is 190 (160 at oslo); their standbys are 230, 110 and 30 ms farther
	lima := siteOf(t, o, "lima").AllBefore
	if want := (Latency{Read: 270 * ms, Content: 160 * ms, Write: 380 * ms}); lima.Median != want {
		t.Errorf("lima's median: %+v, want %+v", lima.Median, want)
	}
	if want := (Latency{Read: 420 * ms, Content: 190 * ms, Write: 650 * ms}); lima.Worst != want {
		t.Errorf("lima's worst: %+v, want %+v", lima.Worst, want)
	}
}

func TestPredict_PrefersMeasurements(t *testing.T) {
	s := five()
	s.Measured = []Measurement{{From: "boston", To: "oslo", RTT: 200 * ms}}
	o := predict(t, s)
	if got := siteOf(t, o, "boston").OwnBefore.Median.Write; got != 200*ms {
		t.Errorf("a write takes %v, want the measured 200ms", got)
	}
}

func TestPredict_LossOfAnActive(t *testing.T) {
	o := predict(t, five(), Change{Kind: LoseSite, Site: "tokyo"})
	if o.During.Under != 1 || o.During.Waiting != 0 || o.After.Protected != 3 {
		t.Errorf("during %+v, after %+v; want one slice under, then all protected", o.During, o.After)
	}
	if len(o.Slices) != 1 || o.Slices[0].ID != 1 {
		t.Fatalf("changes %+v, want slice 1 alone", o.Slices)
	}
	x := o.Slices[0]
	if x.During.Site != "boston" || x.During.Stands != "under" {
		t.Errorf("during: %+v, want under, led at boston, the first standby", x.During)
	}
	// oslo is the nearest to boston that has no copy
	if !slices.Equal(x.After.Copies, []ids.Site{"boston", "paris", "oslo"}) {
		t.Errorf("copies at %v", x.After.Copies)
	}
	if len(o.Copies) != 1 || o.Copies[0] != (Copies{From: "boston", To: "oslo", Slices: 1, Bytes: 1 << 30}) {
		t.Errorf("copies %+v", o.Copies)
	}
	if want := 1024 * time.Second / 100; o.CopyNS != want {
		t.Errorf("the copies take %v, want %v", o.CopyNS, want)
	}
	if tokyo := siteOf(t, o, "tokyo"); !tokyo.Lost || tokyo.AllAfter.Slices != 0 {
		t.Errorf("tokyo: %+v, want lost, and nothing to predict for it", tokyo)
	}
}

func TestPredict_LossOfMostCopies(t *testing.T) {
	o := predict(t, five(), Change{Kind: LoseSite, Site: "paris"}, Change{Kind: LoseSite, Site: "oslo"})
	// slice 2 has boston alone of three, which may not acknowledge alone; slice 3
	// has nothing
	if o.During.Waiting != 1 || o.During.Lost != 1 || o.During.Under != 1 {
		t.Errorf("during %+v, want 1 waiting, 1 lost, 1 under", o.During)
	}
	if o.After.Waiting != 1 || o.After.Lost != 1 || o.After.Protected != 1 {
		t.Errorf("after %+v: a repair needs an active that serves", o.After)
	}
}

func TestPredict_LossOfOneOfTwo(t *testing.T) {
	o := predict(t, five(), Change{Kind: LoseNode, Node: "paris"})
	if x := o.Slices[len(o.Slices)-1]; x.ID != 3 || x.During.Site != "oslo" || x.During.Stands != "under" {
		t.Errorf("slice 3 with a level of 2: %+v, want it to go on at oslo", x)
	}
	if !slices.ContainsFunc(o.Notes, func(n string) bool { return n == "The size of some slices is not known: their actives did not answer." }) {
		t.Errorf("notes %q do not say that slice 3's size is unknown", o.Notes)
	}
}

func TestPredict_FindsCriticalSites(t *testing.T) {
	s := five()
	s.Slices = append(s.Slices, slice(4, 1, 0, "lima"))
	if got := predict(t, s).Before.Critical; !slices.Equal(got, []ids.Site{"lima"}) {
		t.Errorf("critical %v, want lima, which has the only copy of slice 4", got)
	}
	o := predict(t, s, Change{Kind: SetLevel, Slice: 4, Level: 2})
	if len(o.After.Critical) != 0 || o.After.Protected != 4 || o.During.Under != 1 {
		t.Errorf("with a second copy: during %+v, after %+v", o.During, o.After)
	}
}

func TestPredict_MoveOfAnActive(t *testing.T) {
	o := predict(t, five(), Change{Kind: MoveActive, Slice: 2, Site: "oslo"})
	x := o.Slices[0]
	if len(o.Slices) != 1 || x.ID != 2 || x.After.Site != "oslo" || x.After.Stands != "protected" || len(o.Copies) > 0 {
		t.Errorf("changes %+v, copies %+v", o.Slices, o.Copies)
	}
	// lima to oslo 160, and on to boston 110
	if got := siteOf(t, o, "lima").AllAfter.Median.Write; got != 270*ms {
		t.Errorf("lima's median write takes %v, want 270ms", got)
	}
}

func TestPredict_AddedSite(t *testing.T) {
	s := five()
	s.Slices = append(s.Slices, slice(4, 4, 5<<30, "oslo", "paris", "boston"))
	if o := predict(t, s); o.Copies[0].To != "tokyo" && o.Copies[0].To != "lima" {
		t.Fatalf("without the site the fourth copy goes to %v", o.Copies)
	}
	rtt := map[ids.Site]time.Duration{"oslo": 10 * ms, "paris": 20 * ms, "boston": 100 * ms}
	o := predict(t, s, Change{Kind: AddSite, Site: "malmo", Nodes: 2, RTT: rtt})
	if len(o.Copies) != 1 || o.Copies[0] != (Copies{From: "oslo", To: "malmo", Slices: 1, Bytes: 5 << 30}) {
		t.Errorf("copies %+v, want the fourth one at malmo, which is near", o.Copies)
	}
	// tokyo was not named: the coordinate tells, and it lies near 250
	malmo := siteOf(t, o, "malmo").AllAfter
	if got := malmo.Worst.Read; got < 225*ms || got > 275*ms {
		t.Errorf("malmo to tokyo is predicted as %v, want about 250ms", got)
	}
}

func TestPredict_RefusesWhatCannotBe(t *testing.T) {
	near := map[ids.Site]time.Duration{"oslo": ms}
	for _, c := range []struct {
		name   string
		change Change
		kind   fault.Kind
	}{
		{"unknown kind", Change{Kind: "explode"}, fault.Invalid},
		{"unknown site", Change{Kind: LoseSite, Site: "rome"}, fault.NotFound},
		{"unknown node", Change{Kind: LoseNode, Node: "rome"}, fault.NotFound},
		{"unknown slice", Change{Kind: MoveActive, Slice: 9, Site: "oslo"}, fault.NotFound},
		{"no copy there", Change{Kind: MoveActive, Slice: 1, Site: "lima"}, fault.NotFound},
		{"level 0", Change{Kind: SetLevel, Slice: 1}, fault.Invalid},
		{"home that is nowhere", Change{Kind: SetHome, Slice: 1, Site: "rome"}, fault.NotFound},
		{"draining no node", Change{Kind: DrainNode, Node: "rome"}, fault.NotFound},
		{"draining no site", Change{Kind: DrainSite, Site: "rome"}, fault.NotFound},
		{"site without a name", Change{Kind: AddSite, Nodes: 1, RTT: near}, fault.Invalid},
		{"site that is there", Change{Kind: AddSite, Site: "oslo", Nodes: 1, RTT: near}, fault.Exists},
		{"site without nodes", Change{Kind: AddSite, Site: "rome", RTT: near}, fault.Invalid},
		{"site that is nowhere", Change{Kind: AddSite, Site: "rome", Nodes: 1}, fault.Invalid},
		{"negative round trip", Change{Kind: AddSite, Site: "rome", Nodes: 1, RTT: map[ids.Site]time.Duration{"oslo": -ms}}, fault.Invalid},
	} {
		if _, err := Predict(five(), []Change{c.change}, Assumptions{}); !fault.Is(err, c.kind) {
			t.Errorf("%s: %v, want kind %v", c.name, err, c.kind)
		}
	}
	s := five()
	s.Slices[0].Active = "lima"
	if _, err := Predict(s, nil, Assumptions{}); !fault.Is(err, fault.Invalid) {
		t.Errorf("an active that is no member: %v", err)
	}
}

func TestPredict_LeavesItsInputAlone(t *testing.T) {
	s := five()
	predict(t, s, Change{Kind: LoseSite, Site: "tokyo"}, Change{Kind: SetLevel, Slice: 3, Level: 3})
	for i, row := range five().Slices {
		got := s.Slices[i]
		if got.Policy != row.Policy || got.Active != row.Active || !slices.Equal(got.Members, row.Members) {
			t.Errorf("slice %d became %+v", row.ID, got)
		}
	}
	if slices.ContainsFunc(s.Nodes, func(n Node) bool { return n.Away }) {
		t.Error("a node of the input is away")
	}
}

func TestPredict_SpreadsCopiesOverNodes(t *testing.T) {
	s := five()
	for id := ids.Slice(4); id < 8; id++ {
		s.Slices = append(s.Slices, slice(id, 4, 1, "oslo", "paris", "boston"))
	}
	c := newCluster(&s)
	if err := c.apply(Change{Kind: AddSite, Site: "malmo", Nodes: 2, RTT: map[ids.Site]time.Duration{"oslo": ms}}); err != nil {
		t.Fatal(err)
	}
	at := map[ids.Node]int{}
	for _, x := range c.repair() {
		at[x.to]++
	}
	if at["malmo-1"] != 2 || at["malmo-2"] != 2 {
		t.Errorf("four slices went to %v, want two to each new node", at)
	}
}

func TestPredict_FollowsPoliciesAndDrains(t *testing.T) {
	for _, x := range []struct {
		name   string
		change Change
		active ids.Site
		copies int
	}{
		{"fewer copies", Change{Kind: SetLevel, Slice: 1, Level: 2}, "tokyo", 2},
		{"another home", Change{Kind: SetHome, Slice: 1, Site: "lima"}, "lima", 3},
		{"a drained site", Change{Kind: DrainSite, Site: "paris"}, "tokyo", 3},
		{"a drained home", Change{Kind: DrainSite, Site: "tokyo"}, "", 3},
	} {
		t.Run(x.name, func(t *testing.T) {
			o, err := Predict(five(), []Change{x.change}, Assumptions{})
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(o.Slices, func(s SliceChange) bool { return s.ID == 1 })
			if i < 0 {
				t.Fatalf("slice 1 does not change: %+v", o.Slices)
			}
			after := o.Slices[i].After
			gone := (x.change.Kind == DrainSite) && slices.Contains(after.Copies, x.change.Site)
			if after.Stands != "protected" || len(after.Copies) != x.copies || gone || x.active != "" && after.Site != x.active {
				t.Errorf("got %+v, want %d copies led at %s", after, x.copies, x.active)
			}
		})
	}
}
