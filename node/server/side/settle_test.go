package side

import (
	"testing"
	"testing/synctest"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/tree"
)

// TestSettle_ForgetsWhatAllShow takes a merged record out of a side log that is in use,
// once the other member's copy of the slice has it by way of the active.
func TestSettle_ForgetsWhatAllShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{logs: map[string]*Log{}}
		b, c := w.open(t, "b", 42), w.open(t, "c", 41)
		b.o.Row, c.o.Row = rowOf("b", "c"), rowOf("b", "c")
		file := ids.NewObject(theSlice, 5)
		record := tree.AppendInode(nil, &tree.Inode{Object: file, Mode: tree.TypeRegular | 0o644, Nlink: 1})
		w.does(t, b, change("in use", "1"))
		w.does(t, b, tree.SideChange{Key: tree.RecordKey(file), Value: record, Before: record, Merged: 42})
		has := func(l *Log) bool {
			t.Helper()
			_, is, err := l.View(theSlice).Get(tree.RecordKey(file))
			if err != nil {
				t.Fatal(err)
			}
			return is
		}
		settle := func(want fault.Kind, stays bool) {
			t.Helper()
			time.Sleep(settleEvery)
			if err := b.settle(t.Context(), theSlice, b.known(theSlice)); fault.KindOf(err) != want {
				t.Errorf("got %v, want %v", err, want)
			}
			if has(b) != stays || has(c) != stays {
				t.Errorf("it is at b: %v, at c: %v, want %v", has(b), has(c), stays)
			}
		}
		settle(fault.Again, true)
		c.o.Published(theSlice).Applied.Store(42)
		settle(fault.None, false)
		wants(t, shows(t, b, "in use"), "1")
		wants(t, shows(t, c, "in use"), "1")
		for _, l := range []*Log{b, c} {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			again, err := Open(l.o)
			if err != nil {
				t.Fatal(err)
			}
			if has(again) {
				t.Error("it is back after a start")
			}
			if err := again.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}
