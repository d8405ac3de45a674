package server

import (
	"fmt"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/ledger"
	"cartwheel.dev/node/store"
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

// copied takes a slice's pages from one store to another, and returns what the
// comparison says after change.
func copied(t *testing.T, from, to *store.Store, at replica.Snapshot, change func(*taking)) error {
	t.Helper()
	given := &givenCopy{slice: 7, frozen: from.Meta().Freeze(), sum: newCopySum(at)}
	defer given.close()
	taken := &taking{s: &Server{store: to}, id: 7, peer: "source"}
	for page := uint64(1); ; page++ {
		body, last, err := given.next(page)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := taken.restore(body); err != nil {
			t.Fatal(err)
		}
		if last {
			break
		}
	}
	taken.sum = given.sum.bytes()
	if change != nil {
		change(taken)
	}
	return taken.compare(at)
}

func TestACopyThatDiffersFromItsSourceIsRefused(t *testing.T) {
	source := openedStore(t)
	at := replica.Snapshot{Serial: 105, Epoch: 3, Time: 9, Clients: []byte("clients")}
	b := source.Meta().NewBatch()
	for i := range 5000 {
		if err := b.Put(7, fmt.Appendf(nil, "key %d", i), make([]byte, 500), uint64(i+1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := ledger.SaveBase(b, 7, replica.Snapshot{Serial: 90}); err != nil { // the source's own
		t.Fatal(err)
	}
	if err := b.Commit(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		at     replica.Snapshot
		change func(*taking)
		same   bool
	}{
		{"the same rows", at, nil, true},
		{"a row that is missing", at, func(k *taking) {
			b := k.s.store.Meta().NewBatch()
			if err := b.Delete(7, []byte("key 4711"), 9000); err != nil {
				t.Fatal(err)
			}
			if err := b.Commit(); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"another sum", at, func(k *taking) { k.sum = nil }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := copied(t, source, openedStore(t), c.at, c.change)
			if (err == nil) != c.same || err != nil && !fault.Is(err, fault.Corrupt) {
				t.Errorf("got %v, want them to be equal: %v", err, c.same)
			}
		})
	}
}
