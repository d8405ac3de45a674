package reliability

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"cartwheel.dev/geo-config/fault"
)

// near reports whether two figures are equal but for a share.
func near(a, b, share float64) bool { return math.Abs(a-b) <= share*math.Abs(b) }

func TestChain_OfTwoStates(t *testing.T) {
	c := Group(1, 0.01, 0.5)
	if s := c.Shares(); !near(s[1], 0.5/0.51, 1e-12) || !near(s[0], 0.01/0.51, 1e-12) {
		t.Errorf("got the shares %v, want MTTF and MTTR over their sum", s)
	}
	if got := c.TimeToZero(); !near(got, 100, 1e-12) {
		t.Errorf("it fails after %g s, want 100", got)
	}
}

func TestChain_OfAMirroredPair(t *testing.T) {
	const l, m = 1e-6, 0.1
	if got, want := Group(2, l, m).TimeToZero(), (3*l+m)/(2*l*l); !near(got, want, 1e-12) {
		t.Errorf("the pair is gone after %g s, want %g", got, want)
	}
}

func TestChain_IsCFSsFormula(t *testing.T) {
	for _, c := range [][2]float64{{0.001, 0.9}, {0.5, 0.1}, {1e-9, 1}} {
		l, m := c[0], c[1]
		if got, want := Group(3, l, m).TimeToZero(), (m*m+4*l*m+11*l*l)/(6*l*l*l); !near(got, want, 1e-12) {
			t.Errorf("l %g, m %g: got %g, want %g", l, m, got, want)
		}
	}
	// The paper: 135,601 times one server at l 0.001, m 0.9.
	if got := math.Floor(Group(3, 0.001, 0.9).TimeToZero() * 0.001); got != 135_601 {
		t.Errorf("got %g times one server, want 135601", got)
	}
}

func TestChain_KeepsRareStates(t *testing.T) {
	const l, m = 1e-9, 1.0
	// Six servers with one repair: the share of none is 6! (l/m)^6 of that of all.
	s := Group(6, l, m).Shares()
	if want := 720 * math.Pow(l/m, 6); !near(s[0], want, 1e-6) {
		t.Errorf("none works for %g of the time, want %g", s[0], want)
	}
}

// harsh is BeanFS's harshest set-up, with recoveries that differ.
func harsh() Volume {
	return Volume{Transient: Failures{19e-8, 900}, Permanent: Failures{1.5e-8, 2400}}
}

func TestVolume_PaperAndOverlapDifferByTheRecoveries(t *testing.T) {
	v := harsh()
	p, l := v.Permanent.Rate, v.Transient.Rate
	less := 3 * p * l * (p + l) * square(v.Permanent.Recovery-v.Transient.Recovery)
	if got := v.Paper().Sum() - v.Overlap().Sum(); !near(got, less, 1e-9) {
		t.Errorf("they differ by %g, want %g", got, less)
	}
	v.Permanent.Recovery = v.Transient.Recovery
	if v.Paper() != v.Overlap() && !near(v.Paper().Sum(), v.Overlap().Sum(), 1e-12) {
		t.Errorf("with equal recoveries: %v and %v", v.Paper(), v.Overlap())
	}
}

func TestVolume_OverlapIsThatOfIndependentReplicas(t *testing.T) {
	v := harsh()
	all, gone := v.Transient.Rate+v.Permanent.Rate, v.Transient.Rate*v.Transient.Recovery+v.Permanent.Rate*v.Permanent.Recovery
	if got, want := v.Overlap().Sum(), 3*all*gone*gone; !near(got, want, 1e-12) {
		t.Errorf("got %g, want 3 l U^2 = %g", got, want)
	}
}

func TestVolume_FindsTheRecoveryOfAShare(t *testing.T) {
	v := harsh()
	q, ok := v.TransientFor(2e-6, 2*Year)
	if v.Transient.Recovery = q; !ok || !near(Dead(v.Paper().Sum(), 2*Year), 2e-6, 1e-9) {
		t.Errorf("with %g s (%v), %g of the volumes die, want 2e-6", q, ok, Dead(v.Paper().Sum(), 2*Year))
	}
	v.Permanent.Recovery = 1e6
	if _, ok := v.TransientFor(2e-6, 2*Year); ok {
		t.Error("a recovery is found, though the permanent failures kill more")
	}
}

// TestFleet_AgreesWithTheModel plays BeanFS's set-up at its harshest rates: 200
// servers over two years, 2,000 times.
func TestFleet_AgreesWithTheModel(t *testing.T) {
	f := Fleet{Servers: 200, Volumes: 9e6, Replicas: 3, Length: 2 * Year, Volume: harsh()}
	var groups, dead [4][]float64
	var all []float64
	for seed := range uint64(2000) {
		d, err := f.Run(t.Context(), seed)
		if err != nil {
			t.Fatal(err)
		}
		for k := range groups {
			groups[k], dead[k] = append(groups[k], float64(d.Groups[k])), append(dead[k], float64(d.Volumes[k]))
		}
		all = append(all, float64(d.Dead()))
	}
	number := 200.0 * 199 * 198 / 6
	for k, rate := range f.Overlap() {
		if i := Counts(groups[k], 0.999); !i.Has(number * rate * f.Length) {
			t.Errorf("%d permanent failures: groups are gone %+v times a run, want %g", k, i, number*rate*f.Length)
		}
		if i := Mean(dead[k], 0.999); !i.Has(float64(f.Volumes) * rate * f.Length) {
			t.Errorf("%d permanent failures: %+v volumes die in a run, want %g", k, i, float64(f.Volumes)*rate*f.Length)
		}
	}
	if i := Mean(all, 0.999); i.Has(float64(f.Volumes)*f.Paper().Sum()*f.Length*1.5) || i.High-i.Low > i.Mean/4 {
		t.Errorf("the interval %+v is so wide that it shows nothing", i)
	}
}

func TestFleet_ASeedRepeats(t *testing.T) {
	f := Fleet{Servers: 50, Volumes: 1e6, Replicas: 3, Length: Year, Volume: harsh()}
	f.Transient.Rate *= 20
	first, err := f.Run(t.Context(), 7)
	if err != nil || first.Hits() == 0 {
		t.Fatalf("got %+v, %v", first, err)
	}
	again, err := f.Run(t.Context(), 7)
	if other, _ := f.Run(t.Context(), 8); err != nil || again != first || other == first {
		t.Errorf("got %+v and %+v, and %+v of another seed: %v", first, again, other, err)
	}
}

// TestFleet_FewGroupsAreHitRarelyAndHard shows what copysets are for.
func TestFleet_FewGroupsAreHitRarelyAndHard(t *testing.T) {
	run := func(scatter int) (hit, dead float64) {
		f := Fleet{Servers: 100, Volumes: 1e6, Replicas: 3, Length: Year, Volume: harsh(), Scatter: scatter}
		f.Transient.Rate *= 10
		const runs = 300
		for seed := range uint64(runs) {
			d, err := f.Run(t.Context(), seed)
			if err != nil {
				t.Fatal(err)
			}
			if dead += float64(d.Dead()) / runs; d.Dead() > 0 {
				hit += 1.0 / runs
			}
		}
		return hit, dead
	}
	all, _ := run(0)
	few, dead := run(2)
	if all < 0.9 || few > all/4 || dead == 0 {
		t.Errorf("any servers lose volumes in %g of the runs, and 34 groups in %g", all, few)
	}
	if n := len(copysets(Fleet{Servers: 100, Replicas: 3, Scatter: 16}, rand.New(rand.NewPCG(1, 1)))); n < 250 || n > 8*34 {
		t.Errorf("a scatter width of 16 makes %d groups, want about 8 x 34", n)
	}
}

func TestFleet_RefusesNonsense(t *testing.T) {
	for say, change := range map[string]func(*Fleet){
		"replicas": func(f *Fleet) { f.Replicas = 1 }, "servers": func(f *Fleet) { f.Servers = 2 }, "volumes": func(f *Fleet) { f.Volumes = 0 },
		"scatter": func(f *Fleet) { f.Scatter = 200 }, "not negative": func(f *Fleet) { f.Transient.Rate = -1 },
		"at most": func(f *Fleet) { f.Length = 1e13 }, "a group alone": func(f *Fleet) { f.Scatter = 1 },
	} {
		f := Fleet{Servers: 200, Volumes: 9e6, Replicas: 3, Length: Year, Volume: harsh()}
		change(&f)
		if _, err := f.Run(t.Context(), 1); !fault.Is(err, fault.Usage) || !strings.Contains(err.Error(), say) {
			t.Errorf("got %v, want an error that says %q", err, say)
		}
	}
	f := Fleet{Servers: 200, Volumes: 1, Replicas: 3, Length: Year, Volume: Volume{Transient: Failures{1e-4, 1e5}}}
	if _, err := f.Run(t.Context(), 1); !fault.Is(err, fault.Invalid) {
		t.Errorf("got %v, want an error of too many servers that are gone", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Fleet{Servers: 200, Volumes: 1, Replicas: 3, Length: Year, Volume: harsh()}).Run(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
}

func TestMean_SaysHowSureItIs(t *testing.T) {
	i := Mean([]float64{1, 2, 3, 4, 5}, 0.95)
	// 3 +- 2.776 * 1.5811 / sqrt(5)
	if !near(i.Low, 3-1.9632, 1e-3) || !near(i.High, 3+1.9632, 1e-3) || !i.Has(3) || i.Has(5.1) {
		t.Errorf("got %+v", i)
	}
	// Poisson's exact ends for 0 and for 4 events.
	if i := Counts(make([]float64, 100), 0.95); i.Low != 0 || !near(i.High, 0.03689, 1e-3) {
		t.Errorf("of nothing in 100 runs: %+v", i)
	}
	if i := Counts([]float64{1, 1, 1, 1}, 0.95); !near(i.Low, 1.0899/4, 1e-3) || !near(i.High, 10.2416/4, 1e-3) {
		t.Errorf("of four events in four runs: %+v", i)
	}
	if few, many := Counts([]float64{0, 0, 0, 40}, 0.95), Mean([]float64{0, 0, 0, 40}, 0.95); few.High < many.High {
		t.Errorf("of events that come together: %+v, and %+v by their spread", few, many)
	}
	if i := Mean([]float64{1}, 0.95); !i.Has(1e9) {
		t.Errorf("of one run: %+v", i)
	}
}

func TestGroups_AGroupKeepsItsVolumes(t *testing.T) {
	g := newGroups(Fleet{Servers: 10, Volumes: 120_000, Replicas: 3}, rand.New(rand.NewPCG(1, 1)))
	x := grouped([]int{7, 2, 5})
	first, ok := g.of(x)
	if again, _ := g.of(grouped([]int{2, 5, 7})); !ok || again != first || !near(float64(first), 1000, 0.2) {
		t.Errorf("it has %d volumes and then %d, want about 1000 both times", first, again)
	}
}
