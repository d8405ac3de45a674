package tree

import (
	"slices"
	"testing"

	"cartwheel.dev/node/hlc"
)

// TestKeepable_WantsAWholeSlice offers times of which a slice has all versions, and times of
// which it has not: a snapshot that came too late must not be shown wrongly.
func TestKeepable_WantsAWholeSlice(t *testing.T) {
	m := newMemory()
	kept := Mutation{Key: []byte{keyKept}, Value: appendTimes([]byte{keptVersion}, []hlc.Time{40})}
	if err := m.apply([]Mutation{wholeSince(100), kept}, 1); err != nil {
		t.Fatal(err)
	}
	got, err := Keepable(m, 120, []hlc.Time{40, 50, 99, 100, 119, 120, 130})
	if want := []hlc.Time{40, 100, 119}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if got, err := Keepable(m, 30, []hlc.Time{40, 50}); err != nil || !slices.Equal(got, []hlc.Time{40}) {
		t.Errorf("with an earlier horizon: got %v, %v, want what was kept", got, err)
	}
}

func TestKeep_IsOfAHalfOpenSpan(t *testing.T) {
	for _, x := range []struct {
		since, until hlc.Time
		want         bool
	}{{5, 10, false}, {10, 11, true}, {5, 11, true}, {11, 20, false}, {11, 21, true}, {21, 30, false}, {20, 20, false}} {
		if got := Keep([]hlc.Time{10, 20}, x.since, x.until); got != x.want {
			t.Errorf("[%d, %d): got %v", x.since, x.until, got)
		}
	}
}
