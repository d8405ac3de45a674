package command

import (
	"strings"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/rebuild"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/status"
)

func TestCut_IsTheEarliestOfTheLossy(t *testing.T) {
	at := func(s int) time.Time { return time.Date(2026, 11, 22, 10, 0, s, 0, time.UTC) }
	slice := func(id ids.Slice, v rebuild.Verdict, normal ...ids.Node) rebuild.Slice {
		row := geoconfig.SliceRow{ID: id}
		for _, n := range normal {
			row.Members = append(row.Members, geoconfig.Member{Node: n, State: geoconfig.Normal})
		}
		return rebuild.Slice{Row: row, Was: row, Verdict: v}
	}
	answer := func(id ids.Node, copies ...status.Slice) asked[[]status.Slice] {
		return asked[[]status.Slice]{id: id, value: copies}
	}
	held := func(id ids.Slice, whole bool, at time.Time) status.Slice {
		return status.Slice{SliceRow: geoconfig.SliceRow{ID: id}, Whole: whole, LastTime: at}
	}
	answers := []asked[[]status.Slice]{
		answer("a", held(1, true, at(1)), held(2, true, at(20)), held(3, true, at(30))),
		answer("b", held(2, true, at(15)), held(3, false, at(3))),
		answer("c", held(2, true, at(5))),
	}
	for name, c := range map[string]struct {
		slices []rebuild.Slice
		want   time.Time
	}{
		"nothing is lost":           {[]rebuild.Slice{slice(1, rebuild.Kept, "a"), slice(2, rebuild.Reduced, "a")}, time.Time{}},
		"one slice":                 {[]rebuild.Slice{slice(1, rebuild.Kept, "a"), slice(3, rebuild.Lossy, "a", "b")}, at(30)},
		"a copy that does not stay": {[]rebuild.Slice{slice(2, rebuild.Lossy, "a", "b")}, at(15)},
		"the earliest of two":       {[]rebuild.Slice{slice(3, rebuild.Lossy, "a"), slice(2, rebuild.Lossy, "b")}, at(15)},
		"nobody tells of one":       {[]rebuild.Slice{slice(3, rebuild.Lossy, "a"), slice(4, rebuild.Lossy, "a")}, time.Time{}},
	} {
		if got := cutOf(c.slices, answers); !got.Equal(c.want) {
			t.Errorf("%s: the cut is %v, want %v", name, got, c.want)
		}
	}
}

// TestCut_IsACue follows what the text says: the time is one that a path takes, and not a
// moment later than the cut.
func TestCut_IsACue(t *testing.T) {
	cut := time.Date(2026, 11, 22, 10, 0, 0, 123_999_999, time.FixedZone("east", 3600))
	var out strings.Builder
	writeCut(&out, cut)
	_, rest, _ := strings.Cut(out.String(), ".Snapshot=")
	word, _, found := strings.Cut(rest, ",")
	c, ok, err := cue.Parse(".Snapshot=" + word)
	if at, _ := c.Moment(time.UTC); !found || !ok || err != nil || at.After(cut) || cut.Sub(at) >= time.Millisecond {
		t.Errorf("%q names %v, %v %v; want %v less than a millisecond before", out.String(), at, ok, err, cut)
	}
	out.Reset()
	if writeCut(&out, time.Time{}); out.Len() != 0 {
		t.Errorf("without a cut it says %q", out.String())
	}
}
