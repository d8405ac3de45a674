package experiments

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestSliceState_IsWholeWithAllMembersNormal(t *testing.T) {
	yes, no := true, false
	normal := []sliceMember{{Site: "a", State: "N"}, {Site: "b", State: "N"}}
	for name, c := range map[string]struct {
		s    sliceState
		want bool
	}{
		"whole":             {sliceState{Serving: &yes, Members: normal}, true},
		"nobody answers":    {sliceState{Members: normal}, false},
		"it does not serve": {sliceState{Serving: &no, Members: normal}, false},
		"one failed":        {sliceState{Serving: &yes, Members: []sliceMember{{Site: "a", State: "N"}, {Site: "b", State: "F"}}}, false},
		"one is missing":    {sliceState{Serving: &yes, Members: normal[:1]}, false},
	} {
		if got := c.s.isWhole(2); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// says is a place where `cartwheel slice ls` says one thing after the other, each time
// after some time; the last again and again. An empty one is an error.
func says(took time.Duration, all ...string) place {
	n := 0
	return place{run: func(ctx context.Context, _ ...string) ([]byte, error) {
		text := all[min(n, len(all)-1)]
		n++
		if err := sleep(ctx, took); err != nil || text == "" {
			return nil, errors.Join(err, errors.New("no node answers"))
		}
		return []byte(text), nil
	}}
}

const (
	wholeSlice  = `[{"id":1,"serving":false},{"id":2,"serving":true,"members":[{"state":"N"}]}]`
	brokenSlice = `[{"id":2,"serving":true,"members":[{"state":"R"}]}]`
)

func TestAwait_TellsWhenItBeganToHold(t *testing.T) {
	const took, long = 400 * time.Millisecond, 2 * time.Second
	isWhole := func(s sliceState) bool { return s.isWhole(1) }
	for name, c := range map[string]struct {
		at   place
		want time.Duration // from the start
		ok   bool
	}{
		"at once":             {says(took, wholeSlice), took, true},
		"later":               {says(took, "", brokenSlice, wholeSlice), 3*took + 2*slicePoll, true},
		"not for good before": {says(took, wholeSlice, brokenSlice, wholeSlice), 3*took + 2*slicePoll, true},
		"never":               {says(took, brokenSlice), 0, false},
		"another slice":       {says(took, `[{"id":1,"serving":true,"members":[{"state":"N"}]}]`), 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				since, ok, err := c.at.await(t.Context(), 2, long, 10*time.Second, isWhole)
				if err != nil || ok != c.ok || ok && since.Sub(start) != c.want {
					t.Errorf("got %v after the start, %v, %v; want %v, %v", since.Sub(start), ok, err, c.want, c.ok)
				}
				if passed := time.Since(start); ok && passed < c.want+long || !ok && passed < 10*time.Second {
					t.Errorf("it was told after %v: too early", passed)
				}
			})
		})
	}
}

func TestAwait_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, ok, err := says(0, brokenSlice).await(ctx, 2, 0, time.Hour, func(s sliceState) bool { return s.isWhole(1) }); ok || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, %v; want the end of the context", ok, err)
		}
	})
}

func TestOutcome_JoinsItsParts(t *testing.T) {
	var o outcome
	o.add("one", outcome{})
	o.add("two", outcome{void: "late", earlier: []string{"lost"}})
	o.add("three", outcome{void: "later"})
	if o.void != "two: late; three: later" || len(o.earlier) != 1 || o.earlier[0] != "two: lost" {
		t.Errorf("got %+v", o)
	}
}
