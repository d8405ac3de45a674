package reliability

import (
	"context"
	"errors"
	"math"
	"testing"

	"cartwheel.dev/node/availability"
)

const hour = 3600.0

// TestSlice_AgreesWithTheFormulas compares the rules, played, with the formulas of
// node/availability. The formulas hold to the first order of the shares of time that
// something is away, which are up to 0.3 % here: 2 % are left for that.
func TestSlice_AgreesWithTheFormulas(t *testing.T) {
	const length, runs, order = 800 * Year, 20, 0.02
	for _, layout := range [][]int{{1}, {2}, {1, 1}, {3}, {2, 1}, {1, 1, 1}} {
		g := Frail(layout...)
		var waits, lost, outdated []float64
		for seed := range uint64(runs) {
			s, err := Play(t.Context(), g, length, seed)
			if err != nil {
				t.Fatal(err)
			}
			waits, lost, outdated = append(waits, s.Waiting), append(lost, float64(s.Lost)), append(outdated, float64(s.Outdated))
		}
		for _, x := range []struct {
			name    string
			of      func([]float64, float64) Interval
			runs    []float64
			formula float64
		}{{"seconds that it waits", Mean, waits, g.Waiting()}, {"losses", Counts, lost, g.Lost()}, {"older copies left", Counts, outdated, g.Outdated()}} {
			i, want := x.of(x.runs, 0.999), x.formula*length
			t.Logf("%v, %s: %.4g (%.4g to %.4g), by the formulas %.4g", layout, x.name, i.Mean, i.Low, i.High, want)
			if !i.Has(want) && !i.Has(want*(1+order)) && !i.Has(want*(1-order)) {
				t.Errorf("%v, %s: the formulas say %.4g, and the interval is %.4g to %.4g", layout, x.name, want, i.Low, i.High)
			}
		}
	}
}

// TestSlice_APersonHasItGoOn loses nodes only, so that two of three are gone for good
// now and then: the slice waits for a person, and new copies come later.
func TestSlice_APersonHasItGoOn(t *testing.T) {
	g := availability.Group{Layout: []int{1, 1, 1}, Operator: hour, NodeLoss: availability.Process{Rate: 1 / (1000 * hour), Replaced: 20 * hour}}
	const length = 100_000 * Year
	s, err := Play(t.Context(), g, length, 1)
	// Both are of thousands of events, and the share of time is 2 %.
	if got, want := s.Waiting, g.Waiting()*length; err != nil || math.Abs(got/want-1) > 0.1 {
		t.Errorf("it waits %.3g s, want about %.3g: %v", got, want, err)
	}
	if got, want := float64(s.Lost), g.Lost()*length; want < 500 || math.Abs(got/want-1) > 0.1 {
		t.Errorf("it is lost %g times, want about %.4g", got, want)
	}
}

func TestSlice_OneSiteMoreTurnsLossesIntoWaits(t *testing.T) {
	near, err := Play(t.Context(), Frail(3), 200*Year, 1)
	if err != nil {
		t.Fatal(err)
	}
	far, err := Play(t.Context(), Frail(1, 1, 1), 200*Year, 1)
	if err != nil || near.Lost < 50 || far.Lost > 1 || far.Stops == 0 || far.Waiting > near.Waiting/4 {
		t.Errorf("at one site: %+v, at three: %+v, %v", near, far, err)
	}
}

func TestSlice_ASeedRepeats(t *testing.T) {
	first, err := Play(t.Context(), Frail(2, 1), 50*Year, 3)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Play(t.Context(), Frail(2, 1), 50*Year, 3)
	if other, _ := Play(t.Context(), Frail(2, 1), 50*Year, 4); err != nil || again != first || other == first {
		t.Errorf("got %+v and %+v, and %+v of another seed: %v", first, again, other, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Play(ctx, Frail(3), Year, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
}
