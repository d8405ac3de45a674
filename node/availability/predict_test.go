package availability

import (
	"math"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
)

func TestPredict_RefusesWhatCannotBe(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Figures, *Policy)
		say    string
	}{
		{"a negative rate", func(f *Figures, _ *Policy) { f.NodeFailures = -1 }, "node_failures"},
		{"a rate that is no number", func(f *Figures, _ *Policy) { f.DiskLosses = math.NaN() }, "disk_losses"},
		{"a negative time", func(f *Figures, _ *Policy) { f.SiteOutage = -time.Second }, "site_outage"},
		{"no nodes", func(f *Figures, _ *Policy) { f.Nodes = 0 }, "nodes"},
		{"more sites than nodes", func(f *Figures, _ *Policy) { f.Sites = 13 }, "sites"},
		{"no rate of copies", func(f *Figures, _ *Policy) { f.CopyRate = 0 }, "copy_bytes_per_s"},
		{"a scatter width of all nodes", func(f *Figures, _ *Policy) { f.Scatter = 12 }, "scatter"},
		{"a level above the nodes", func(f *Figures, p *Policy) { f.Nodes, f.Sites, p.Level = 2, 1, 3 }, "add nodes, or lower the level"},
		{"a level of 0", func(_ *Figures, p *Policy) { p.Level = 0 }, "level"},
		{"a level above all limits", func(_ *Figures, p *Policy) { p.Level = 17 }, "1 to 16"},
		{"more sites than copies", func(_ *Figures, p *Policy) { p.Level, p.Sites = 2, 3 }, "at most one site a copy"},
		{"more sites than there are", func(_ *Figures, p *Policy) { p.Level, p.Sites = 4, 4 }, "add a site"},
		{"more copies than one site has nodes", func(_ *Figures, p *Policy) { p.Level, p.Sites = 5, 1 }, "ask for more sites"},
		{"failures that are not rare", func(f *Figures, _ *Policy) { f.SiteOutages, f.SiteOutage = 100, 24*time.Hour }, "site_outages"},
	} {
		f, p := Defaults(), Policy{Level: 3}
		c.change(&f, &p)
		if _, err := Predict(f, p); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: got %v, want an error that says %q", c.name, err, c.say)
		}
	}
}

func TestPredict_KnowsALargeSite(t *testing.T) {
	f := Defaults()
	f.Nodes, f.Sites = 5, 3
	for _, c := range []struct {
		largest int
		policy  Policy
		fits    bool
	}{{0, Policy{2, 1}, false}, {3, Policy{2, 1}, true}, {3, Policy{4, 1}, false}, {3, Policy{4, 2}, true}, {3, Policy{5, 2}, false}, {3, Policy{5, 3}, true}} {
		f.PerSite = c.largest
		if _, err := Predict(f, c.policy); (err == nil) != c.fits {
			t.Errorf("%v where the largest site has %d of 5 nodes: %v, want that it fits: %v", c.policy, c.largest, err, c.fits)
		}
	}
}

func predict(t *testing.T, f Figures, p Policy) Estimate {
	t.Helper()
	e, err := Predict(f, p)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestPredict_CountsPauses(t *testing.T) {
	f := Defaults()
	f.NodeLosses, f.DiskLosses, f.SiteOutages, f.SiteLosses = 0, 0, 0, 0
	e := predict(t, f, Policy{Level: 3})
	// The active goes six times a year, and so does each of two standbys.
	if want := 6*f.Takeover + 12*f.Lease; (e.Pauses-want).Abs() > time.Millisecond || math.Abs(e.Takeovers-6) > 1e-9 {
		t.Errorf("got pauses of %v for %g takeovers, want %v for 6", e.Pauses, e.Takeovers, want)
	}
	if one := predict(t, f, Policy{Level: 1}); one.Pauses != 0 || one.Takeovers != 0 {
		t.Errorf("one copy pauses for %v, and there is nobody to take over", one.Pauses)
	}
}

func TestPredict_LossesFollowFromTheFigures(t *testing.T) {
	f := Defaults()
	one := predict(t, f, Policy{Level: 1})
	if want := f.NodeLosses + f.DiskLosses + f.SiteLosses; math.Abs(one.Lost/want-1) > 0.01 {
		t.Errorf("one copy is lost %g times a year, want about %g", one.Lost, want)
	}
	if want := one.Lost * float64(f.Slices) * float64(f.SliceBytes); one.LostBytes != want {
		t.Errorf("%g bytes are lost a year, want %g", one.LostBytes, want)
	}
	more := f
	more.Disks = 10
	if a, b := predict(t, f, Policy{Level: 1}).Lost, predict(t, more, Policy{Level: 1}).Lost; math.Abs(b-a-9*f.DiskLosses) > 0.01 {
		t.Errorf("with ten disks %g are lost a year, with one %g", b, a)
	}
	last := math.Inf(1)
	for level := 1; level <= 4; level++ {
		if e := predict(t, f, Policy{Level: level, Sites: 1}); e.Lost > last {
			t.Errorf("%d copies are lost %g times a year, fewer copies %g times", level, e.Lost, last)
		} else {
			last = e.Lost
		}
	}
	if last < f.SiteLosses*0.99 {
		t.Errorf("four copies at one site are lost %g times a year, and the site %g times", last, f.SiteLosses)
	}
}

func TestPredict_HoldsAtTheGreatestLevel(t *testing.T) {
	f := Defaults()
	f.Nodes, f.Sites = 64, 16
	e := predict(t, f, Policy{Level: MaxLevel})
	if e.Lost < 0 || e.Lost > 1e-30 || e.Available < 0.99 || e.Available >= 1 {
		t.Errorf("got %+v", e)
	}
}

func TestCopying_KnowsWhereThereAreNoOthers(t *testing.T) {
	f := Defaults()
	f.Nodes, f.Sites = 3, 3
	d, isMade, err := f.Copying(Policy{Level: 3})
	if err != nil || isMade || d < f.Repair {
		t.Errorf("got %v, %v, %v; want a time above the repair's, and no other nodes", d, isMade, err)
	}
	f.Nodes = 12
	wide, isMade, err := f.Copying(Policy{Level: 3})
	if err != nil || !isMade {
		t.Fatalf("got %v, %v", isMade, err)
	}
	f.Scatter = 4
	narrow, _, err := f.Copying(Policy{Level: 3})
	if err != nil || narrow <= wide {
		t.Errorf("four fellows take %v, and eleven %v: %v", narrow, wide, err)
	}
}
