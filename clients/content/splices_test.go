package content

import (
	"testing"
	"time"
)

// TestSplices_OfAnAppendCountFromTheirOwnEnd checks the commits into which a
// large append layer is split. Each goes to the end that the one before made.
func TestSplices_OfAnAppendCountFromTheirOwnEnd(t *testing.T) {
	for _, appends := range []bool{true, false} {
		l := newLayer(time.Unix(1, 0))
		l.appends, l.extend = appends, 30000
		pieces := make([]piece, 2500)
		for i := range pieces {
			pieces[i] = piece{off: uint64(i * 10), n: 10, body: [][]byte{make([]byte, 10)}}
		}
		commits := l.splices(1, pieces)
		if len(commits) != 3 {
			t.Fatalf("%d commits, want 3", len(commits))
		}
		at := uint64(0)
		for i, c := range commits {
			if appends {
				at = 0
			}
			for j, x := range c.Splice.Extents {
				if x.Offset != at || x.GetBodyOffset() != uint64(j*10) || len(c.Body) != len(c.Splice.Extents) {
					t.Fatalf("commit %d, extent %d: got %v, want offset %d", i, j, x, at)
				}
				at += 10
			}
			if (c.Splice.Extend != nil) != (i == 2) || c.Splice.Append != appends {
				t.Errorf("commit %d: %v", i, c.Splice.Extend)
			}
		}
	}
}
