package command

import (
	"fmt"
	"io"
	gslices "slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/rebuild"
	"cartwheel.dev/node/protocol/status"
)

// cutText prints a time as a path below .Snapshot= takes it, in UTC, to the millisecond
// before it: what was changed later in that millisecond is not in the cut.
func cutText(at time.Time) string {
	return at.UTC().Truncate(time.Millisecond).Format("2006-01-02T15:04:05.000Z07:00")
}

// writeCut says at which time the whole tree is consistent though a slice lost changes;
// nothing where that is not known.
func writeCut(w io.Writer, cut time.Time) {
	if cut.IsZero() {
		return
	}
	fmt.Fprintf(w, "The whole tree as it was then is below .Snapshot=%s, for as long as old versions are kept; `cartwheel snapshot restore` copies from there.\n", cutText(cut))
}

// cutOf returns the time up to which every slice that goes on with a loss has all of its
// changes, from what the nodes tell of their copies. Zero: no slice lost anything, or
// nobody tells.
func cutOf(list []rebuild.Slice, answers []asked[[]status.Slice]) time.Time {
	var cut time.Time
	for i := range list {
		if list[i].Verdict != rebuild.Lossy {
			continue
		}
		told := false
		for _, a := range answers {
			m, _ := list[i].Row.Member(a.id)
			at := gslices.IndexFunc(a.value, func(s status.Slice) bool { return s.ID == list[i].Row.ID && s.Whole && !s.LastTime.IsZero() })
			if m.State != geoconfig.Normal || at < 0 {
				continue // it does not go on from this copy
			}
			told = true
			if until := a.value[at].LastTime; cut.IsZero() || until.Before(cut) {
				cut = until
			}
		}
		if !told {
			return time.Time{}
		}
	}
	return cut
}
