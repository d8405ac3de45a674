package plan_test

import (
	"encoding/json"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/plan"
)

// table is a View over a map. A failure that is set is the answer to every
// question of its kind.
type table struct {
	rows             map[geoconfig.RowKey][]byte
	failRow, failRef error
}

func (v *table) Row(key geoconfig.RowKey) ([]byte, bool, error) {
	body, ok := v.rows[key]
	return body, ok, v.failRow
}

func (v *table) Records(kind string) (int, error) {
	n := 0
	for key := range v.rows {
		if plan.RecordKeyOf(key).Kind == kind {
			n++
		}
	}
	return n, v.failRow
}

func (v *table) Referrers(key geoconfig.RowKey) ([]geoconfig.RowKey, error) {
	var out []geoconfig.RowKey
	for from, body := range v.rows {
		refs, err := plan.References(from.Table, body)
		if err != nil {
			return nil, err
		}
		for _, ref := range refs {
			if ref == key {
				out = append(out, from)
			}
		}
	}
	return out, v.failRef
}

func encode(t *testing.T, row any) []byte {
	t.Helper()
	body, err := json.Marshal(row)
	if err != nil {
		t.Fatalf("encoding a row: %v", err)
	}
	return body
}

// Revisions of the rows that seeded holds, and the next one.
const (
	seedRev ids.Revision = 5
	nextRev ids.Revision = 9
)

// seeded returns a view of cluster c1 in generation 2: sites paris and oslo,
// nodes n1 and n2 at paris and n3 at oslo, user ann, and slice 7 in epoch 4
// with the members n1 (active) and n2.
func seeded(t *testing.T) *table {
	t.Helper()
	v := &table{rows: map[geoconfig.RowKey][]byte{}}
	v.rows[geoconfig.ClusterKey()] = encode(t, geoconfig.Cluster{ID: "c1", Generation: 2, Revision: seedRev})
	for _, name := range []ids.Site{"paris", "oslo"} {
		v.rows[geoconfig.Site{Name: name}.Key()] = encode(t, geoconfig.Site{Name: name, Revision: seedRev})
	}
	for id, site := range map[ids.Node]ids.Site{"n1": "paris", "n2": "paris", "n3": "oslo"} {
		v.rows[geoconfig.Node{ID: id}.Key()] = encode(t, geoconfig.Node{ID: id, Site: site, Revision: seedRev})
	}
	v.rows[ann().RowKey()] = encode(t, ann())
	row := sliceRow(7, 4)
	row.Revision, row.Generation = seedRev, 2
	v.rows[geoconfig.SliceKey(7)] = encode(t, row)
	return v
}

func ann() geoconfig.User {
	return geoconfig.User{Name: "ann", Key: "k1", UID: 1000, GIDs: []uint32{100}, Revision: seedRev}
}

// sliceRow returns a valid row with the members n1 (active) and n2.
func sliceRow(id ids.Slice, epoch ids.Epoch) geoconfig.SliceRow {
	return geoconfig.SliceRow{
		ID: id, Epoch: epoch, Active: "n1", Policy: geoconfig.Policy{Home: "paris", Level: 2, Kind: geoconfig.Ordinary},
		Members: []geoconfig.Member{{Node: "n1", State: geoconfig.Normal}, {Node: "n2", State: geoconfig.Normal}},
	}
}

// swapped is a batch that takes slice 7 from epoch 4 to 5 with a change.
func swapped(change func(*geoconfig.SliceSwap)) geoconfig.Batch {
	s := geoconfig.SliceSwap{From: 4, Row: sliceRow(7, 5)}
	if change != nil {
		change(&s)
	}
	return geoconfig.Batch{Slices: []geoconfig.SliceSwap{s}}
}

// run plans a batch, with a key if it has none.
func run(v plan.View, b geoconfig.Batch) ([]plan.Write, error) {
	if b.Key == "" {
		b.Key = "key"
	}
	return plan.Batch(v, b, nextRev)
}

// refused wants a batch to fail with a kind, and to name a row if subject is
// not empty.
func refused(t *testing.T, v plan.View, b geoconfig.Batch, want fault.Kind, subject string) {
	t.Helper()
	writes, err := run(v, b)
	if !fault.Is(err, want) {
		t.Fatalf("got %v of kind %v, want kind %v", err, fault.KindOf(err), want)
	}
	if got := fault.SubjectOf(err); subject != "" && got != subject {
		t.Errorf("the error names %q, want %q", got, subject)
	}
	if writes != nil {
		t.Errorf("a refused batch writes %d rows", len(writes))
	}
}

// taken wants a batch to be planned.
func taken(t *testing.T, v plan.View, b geoconfig.Batch) []plan.Write {
	t.Helper()
	writes, err := run(v, b)
	if err != nil {
		t.Fatalf("the batch is refused: %v", err)
	}
	return writes
}
