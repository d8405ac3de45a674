package availability

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// near reports whether two figures are equal but for rounding.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(math.Abs(a), math.Abs(b)) }

const hour = 3600.0

func TestGroup_OneCopyIsATwoStateChain(t *testing.T) {
	g := Group{Layout: []int{1}, Node: Process{Rate: 1 / (1000 * hour), Out: 2 * hour, Replaced: math.Inf(1)}}
	if got, want := g.Waiting(), 2.0/1002; !near(got, want) {
		t.Errorf("it waits %g of the time, want MTTR / (MTTF + MTTR) = %g", got, want)
	}
	if g.Lost() != 0 || g.Outdated() != 0 {
		t.Errorf("it loses %g and %g a second, and nothing goes for good", g.Lost(), g.Outdated())
	}
}

func TestGroup_MirroredPairLosesAsMTTDLSays(t *testing.T) {
	const rate, repair = 1 / (100_000 * hour), 10 * hour
	g := Group{Layout: []int{2}, NodeLoss: Process{Rate: rate, Replaced: repair}}
	// The chain of two disks with one repair: (3 l + m) / (2 l^2).
	mttdl := (3*rate + 1/repair) / (2 * rate * rate)
	if got := 1 / g.Lost(); math.Abs(got/mttdl-1) > 3*rate*repair {
		t.Errorf("data is lost every %g s, want %g", got, mttdl)
	}
}

func TestGroup_ThreeCopiesWaitForTheSecond(t *testing.T) {
	const rate, out, behind = 1 / (500 * hour), hour, 60.0
	g := Group{Layout: []int{1, 1, 1}, Node: Process{Rate: rate, Out: out, Replaced: math.Inf(1), Behind: behind}}
	u := rate * (out + behind)
	// One of three is missing, one of the other two goes, and the first of two comes back.
	if got, want := g.Waiting(), 3*u/power(1+u, 3)*2*rate*out/2; !near(got, want) {
		t.Errorf("it waits %g of the time, want %g", got, want)
	}
	pair := g
	pair.Layout = []int{1, 1}
	if got, want := pair.Waiting(), 2*u/power(1+u, 2)*rate*out; !near(got, want) {
		t.Errorf("two copies wait %g of the time, want %g", got, want)
	}
}

func TestGroup_OneSiteGoesWithAllItsCopies(t *testing.T) {
	const rate, out = 1 / (1000 * hour), 3 * hour
	site := Process{Rate: rate, Out: out, Replaced: math.Inf(1)}
	loss := Process{Rate: rate / 100, Replaced: 50 * hour}
	g := Group{Layout: []int{3}, Site: site, SiteLoss: loss, Operator: hour}
	up := 1 / (1 + rate*out + loss.Rate*loss.Replaced)
	if got, want := g.Waiting(), up*(rate*out+loss.Rate*hour); !near(got, want) {
		t.Errorf("it waits %g of the time, want %g", got, want)
	}
	if got := g.Lost(); math.Abs(got/loss.Rate-1) > 0.01 {
		t.Errorf("it is lost %g times a second, want %g", got, loss.Rate)
	}
	g.Layout = []int{2, 1}
	if got := g.Lost(); got > loss.Rate/10 {
		t.Errorf("at two sites it is lost %g times a second, and one site goes %g times", got, loss.Rate)
	}
}

func TestGroup_AnOlderCopyIsLeft(t *testing.T) {
	out, loss := Process{Rate: 1 / (100 * hour), Out: hour, Replaced: math.Inf(1)}, Process{Rate: 1 / (10_000 * hour), Replaced: hour}
	g := Group{Layout: []int{1, 1}, Node: out, NodeLoss: loss}
	all := 1 + out.Rate*out.Out + loss.Rate*loss.Replaced
	if got, want := g.Outdated(), 2*out.Rate*out.Out/all*loss.Rate/all; !near(got, want) {
		t.Errorf("two copies are outdated %g times a second, want %g", got, want)
	}
	g.Layout = []int{1, 1, 1}
	missing := 3 * out.Rate * out.Out / all / all / all
	if got, want := g.Outdated(), missing*2*loss.Rate*loss.Rate*out.Out; !near(got, want) {
		t.Errorf("three copies are outdated %g times a second, want %g", got, want)
	}
}

func TestGroup_AllSharesOfTimeAddUpToOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGroup(t)
		sum := 0.0
		all := []state{{share: 1}}
		for _, n := range g.Layout {
			all = combine(all, g.siteStates(n))
		}
		for _, s := range all {
			sum += s.share
		}
		if !near(sum, 1) {
			t.Errorf("the states take %g of the time", sum)
		}
	})
}

// drawGroup is a group whose failures are rare.
func drawGroup(t *rapid.T) Group {
	process := func(name string, isLoss bool) Process {
		p := Process{Replaced: rapid.Float64Range(60, 100*hour).Draw(t, name+" replaced"), Behind: rapid.Float64Range(0, 600).Draw(t, name+" behind")}
		p.Out = rapid.Float64Range(1, 100*hour).Draw(t, name+" out")
		longest := p.Out + p.Behind
		if isLoss {
			p.Out, p.Behind, longest = 0, 0, p.Replaced
		} else if rapid.Bool().Draw(t, name+" never replaced") {
			p.Replaced = math.Inf(1)
		}
		p.Rate = rapid.Float64Range(0, 0.001).Draw(t, name+" share") / longest
		return p
	}
	g := Group{Operator: rapid.Float64Range(0, 10*hour).Draw(t, "operator")}
	g.Node, g.NodeLoss, g.Site, g.SiteLoss = process("node", false), process("node loss", true), process("site", false), process("site loss", true)
	for range rapid.IntRange(1, 4).Draw(t, "sites") {
		g.Layout = append(g.Layout, rapid.IntRange(1, 2).Draw(t, "copies"))
	}
	return g
}

func TestGroup_MoreCopiesAreNeverWorse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGroup(t)
		more := g
		more.Layout = append([]int(nil), g.Layout...)
		if rapid.Bool().Draw(t, "at a new site") {
			more.Layout = append(more.Layout, 1)
		} else {
			more.Layout[rapid.IntRange(0, len(more.Layout)-1).Draw(t, "at site")]++
		}
		if a, b := g.Lost(), more.Lost(); b > a*(1+slack(more)) {
			t.Errorf("%v is lost %g times a second, and %v %g times", g.Layout, a, more.Layout, b)
		}
		if Needs(g.Level()) != Needs(more.Level()) {
			return // a third copy makes the group wait for two, which is another rule
		}
		// Where a person is faster than machines, a copy that comes back is waited for longer.
		g.Operator = max(g.Node.Out, g.Site.Out)
		more.Operator = g.Operator
		if a, b := g.Waiting(), more.Waiting(); b > a*(1+slack(more)) {
			t.Errorf("%v waits %g of the time, and %v %g", g.Layout, a, more.Layout, b)
		}
	})
}

// slack is how much more often something may happen because what is away for a
// shorter time can go more often, and for rounding.
func slack(g Group) float64 {
	share := 0.0
	for _, p := range []Process{g.Node, g.NodeLoss, g.Site, g.SiteLoss} {
		share += p.Rate * p.window()
	}
	return float64(g.Level()+len(g.Layout)+1)*share + 1e-9
}

func TestGroup_FasterRepairIsNeverWorse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGroup(t)
		if g.Level() == 1 {
			g.Layout = []int{1, 1}
		}
		fast := g
		factor := rapid.Float64Range(0.01, 1).Draw(t, "factor")
		for _, p := range []*Process{&fast.Node, &fast.NodeLoss, &fast.Site, &fast.SiteLoss} {
			p.Out, p.Replaced, p.Behind = p.Out*factor, p.Replaced*factor, p.Behind*factor
		}
		fast.Operator *= factor
		for _, x := range []struct {
			name string
			of   func(Group) float64
		}{{"waits", Group.Waiting}, {"is lost", Group.Lost}, {"is outdated", Group.Outdated}} {
			if a, b := x.of(g), x.of(fast); b > a*(1+slack(g)) {
				t.Errorf("it %s %g, and %g where all repair takes %g of the time", x.name, a, b, factor)
			}
		}
	})
}

func TestProcess_ACopyIsMissingUntilItIsReplaced(t *testing.T) {
	p := Process{Rate: 1, Out: 100, Replaced: 100, Behind: 5}
	if got, want := p.window(), 100*(1-math.Exp(-1))+5; !near(got, want) {
		t.Errorf("it is missing for %g s, want the mean of the shorter time, %g", got, want)
	}
	p.Out = 1e9
	if got := p.window(); math.Abs(got-105) > 1e-3 {
		t.Errorf("it is missing for %g s, want 105", got)
	}
}
