package snapshot

import (
	"bytes"
	"fmt"
	"testing"

	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/replog"
	"cartwheel.dev/node/store"
	"cartwheel.dev/node/store/meta"
)

func openedStore(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(store.Options{Dir: t.TempDir(), ClusterID: "c", NodeID: "n"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // it was only a copy
	if err := s.Recover(nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// copied takes a slice's rows from one store to another, page by page, and
// returns whether both have the same sum after change.
func copied(t *testing.T, from, to *store.Store, at replica.Snapshot, change func(*meta.Batch) error) bool {
	t.Helper()
	kept := &keptState{slice: 7, frozen: from.Meta().Freeze(), sum: newCopySum(at)}
	defer kept.close()
	got := receivingFrom(to, rangeBytes)
	takeAll(t, got, kept.frozen, 100<<10)
	b := to.Meta().NewBatch()
	if err := change(b); err != nil {
		t.Fatal(err)
	}
	if err := b.Commit(); err != nil {
		t.Fatal(err)
	}
	var theirs []byte
	for theirs == nil {
		var err error
		if theirs, err = kept.next(); err != nil {
			t.Fatal(err)
		}
	}
	frozen := to.Meta().Freeze()
	defer frozen.Close()
	mine, err := sumOf(frozen, 7, at)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Equal(mine, theirs)
}

func TestCopySum_DiffersWhereTheCopyDoes(t *testing.T) {
	source := openedStore(t)
	at := replica.Snapshot{Serial: 105, Epoch: 3, Time: 9, Clients: []byte("clients")}
	b := source.Meta().NewBatch()
	for i := range 5000 {
		if err := b.Put(7, fmt.Appendf(nil, "key %d", i), make([]byte, 500), uint64(i+1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := replog.SaveBase(b, 7, replica.Snapshot{Serial: 90}); err != nil { // the source's own
		t.Fatal(err)
	}
	if err := b.Commit(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func(*meta.Batch) error
		same   bool
	}{
		{"the same rows", func(b *meta.Batch) error { return replog.SaveBase(b, 7, at) }, true},
		{"a row that is missing", func(b *meta.Batch) error { return b.Delete(7, []byte("key 4711"), 9000) }, false},
		{"a row too many", func(b *meta.Batch) error { return b.Set(7, []byte("plain"), nil) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := copied(t, source, openedStore(t), at, c.change); got != c.same {
				t.Errorf("equal: %v, want %v", got, c.same)
			}
		})
	}
}
