package command

import (
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/ids"
)

func TestConflictsText_SaysWhatIsWhere(t *testing.T) {
	at := time.Date(2026, 11, 26, 18, 0, 0, 0, time.UTC)
	side := member{Node: "12D3KooWabcdefgh", Site: "tokyo"}
	for _, x := range []struct {
		name string
		list conflictList
		want string
	}{
		{"nothing", conflictList{}, "no conflicts\n"},
		{"one that was kept, and one that stayed", conflictList{Conflicts: []conflict{
			{Merged: at, Path: "/dir/f", Kept: "/dir/f (conflict)", Reason: "a newer version was written elsewhere", Wrote: at.Add(-time.Minute), Side: side, Slice: 1},
			{Merged: at, Path: "/dir/g", Reason: "it stays", Wrote: at, Side: side},
		}}, `2026-11-26 18:00:00  /dir/f
    written at tokyo on 2026-11-26 17:59:00: a newer version was written elsewhere
    kept as /dir/f (conflict)
2026-11-26 18:00:00  /dir/g
    written at tokyo on 2026-11-26 18:00:00: it stays
`},
		{"what waits, and who is away", conflictList{Waiting: []waiting{{side, ids.Slice(7), 3, 61}}, Away: []member{side}}, `no conflicts
WAITS AT  SLICE  OBJECTS  FOR
tokyo     7      3        1m1s
the node at tokyo (…abcdefgh) does not answer: its slices are not in the list
`},
	} {
		var out strings.Builder
		conflictsText(&out, &x.list)
		if out.String() != x.want {
			t.Errorf("%s: got\n%s\nwant\n%s", x.name, out.String(), x.want)
		}
	}
}
