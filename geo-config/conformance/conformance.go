// Package conformance is the suite of geoconfig.Store: what every implementation,
// embedded or remote, has to do, told as cases. Package storetest runs it as Go
// tests; cartwheel geo-config verify runs it against a live database, so it does
// not import testing. Each case needs an empty store of its own, and may run
// beside others.
package conformance

import (
	"context"
	"fmt"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// T is what a case reports to: of *testing.T, what the cases use. Fatal and
// Fatalf end the goroutine that calls them.
type T interface {
	Helper()
	Log(args ...any)
	Logf(format string, args ...any)
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// Case is one claim about stores.
type Case struct {
	Name string
	test func(*fixture)
}

// patience bounds every wait of the suite.
const patience = 10 * time.Second

// Patience bounds one case.
const Patience = 2 * patience

// Run checks the claim on an empty store. It is called by the goroutine that
// t.Fatal may end.
func (c Case) Run(ctx context.Context, t T, s geoconfig.Store) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	c.test(&fixture{T: t, ctx: ctx, s: s})
}

// Cases returns the whole suite.
func Cases() []Case {
	return []Case{
		{"a new store takes nothing but a cluster", testNew},
		{"what is written is read", testRead},
		{"rows are swapped by revision", testRevisions},
		{"slices are swapped by epoch", testEpochs},
		{"a batch is all or nothing", testAtomic},
		{"of racing swaps one wins", testRace},
		{"repeating a batch changes nothing", testRepeat},
		{"settling is final", testSettle},
		{"rows that make no sense are refused", testValidation},
		{"references hold", testReferences},
		{"the generation only rises", testGeneration},
		{"slices are read in pages", testSlicePages},
		{"audit records are appended and numbered", testAudit},
		{"following pages through everything", testFollowPages},
		{"following waits for a change", testFollowWaits},
		{"followers end with their state", testFollowConverges},
		{"waiting ends with the context and with the store", testEnd},
		{"answers share nothing", testCopies},
		{"records are swapped, read singly and removed", testRecords},
		{"records are read in pages of one kind", testRecordPages},
		{"records that make no sense are refused", testRecordValidation},
		{"records do not reach followers", testRecordsAreNotFollowed},
		{"the number of records is bounded", testRecordBound},
		{"budgets are set, followed and removed", testBudgets},
		{"budgets that make no sense are refused", testBudgetValidation},
		{"marks of disks and what nodes give away are kept", testBalance},
	}
}

// fixture is one test's store with the verbs that the tests speak in.
type fixture struct {
	T
	ctx  context.Context
	s    geoconfig.Store
	keys int
}

func (f *fixture) key() string {
	f.keys++
	return fmt.Sprintf("key-%d", f.keys)
}

// apply runs a batch that must succeed, with a new key if it has none.
func (f *fixture) apply(b geoconfig.Batch) ids.Revision {
	f.Helper()
	if b.Key == "" {
		b.Key = f.key()
	}
	rev, err := f.s.Apply(f.ctx, b)
	if err != nil {
		f.Fatalf("Apply: %v", err)
	}
	return rev
}

// refuse runs a batch that must fail so, naming the row if subject is not "".
func (f *fixture) refuse(want fault.Kind, subject string, b geoconfig.Batch) {
	f.Helper()
	if b.Key == "" {
		b.Key = f.key()
	}
	rev, err := f.s.Apply(f.ctx, b)
	f.fails(want, subject, err)
	if rev != 0 {
		f.Errorf("a refused batch has revision %d", rev)
	}
}

func (f *fixture) fails(want fault.Kind, subject string, err error) {
	f.Helper()
	if !fault.Is(err, want) {
		f.Fatalf("got error %v of kind %v, want kind %v", err, fault.KindOf(err), want)
	}
	if got := fault.SubjectOf(err); subject != "" && got != subject {
		f.Errorf("the error names %q, want %q", got, subject)
	}
}

func (f *fixture) read(q geoconfig.Query) geoconfig.Rows {
	f.Helper()
	rows, err := f.s.Read(f.ctx, q)
	if err != nil {
		f.Fatalf("Read: %v", err)
	}
	return rows
}

func (f *fixture) follow(since ids.Revision, limit int) geoconfig.Rows {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.ctx, patience)
	defer cancel()
	rows, err := f.s.Follow(ctx, since, limit)
	if err != nil {
		f.Fatalf("Follow: %v", err)
	}
	return rows
}

func (f *fixture) slice(id ids.Slice) geoconfig.SliceRow {
	f.Helper()
	rows := f.read(geoconfig.Query{SliceIDs: []ids.Slice{id}})
	if len(rows.Slices) != 1 {
		f.Fatalf("got %d rows of slice %d, want 1", len(rows.Slices), id)
	}
	return rows.Slices[0]
}

// Site and node names of the cluster that seed makes.
var (
	siteNames = [...]ids.Site{"paris", "tokyo", "oslo"}
	nodeNames = [...]ids.Node{"n1", "n2", "n3"}
)

// seed makes a cluster of three sites with a node each.
func (f *fixture) seed() ids.Revision {
	f.Helper()
	b := geoconfig.Batch{Cluster: &geoconfig.Cluster{ID: "c1", Generation: 1, CreatedNS: 5}}
	for i, name := range siteNames {
		b.Sites = append(b.Sites, geoconfig.Site{Name: name, Location: "somewhere"})
		b.Nodes = append(b.Nodes, geoconfig.Node{
			ID: nodeNames[i], Site: name, Addresses: []string{"/ip4/127.0.0.1/tcp/4001"},
			Coordinate: geoconfig.Coordinate{Vector: []float64{1, -2.5}, Height: 0.25, Error: 1}, CapacityBytes: 1 << 40, Incarnation: 1, Version: "1",
		})
	}
	b.Users = []geoconfig.User{{Name: "root@desk", Key: "k1", GIDs: []uint32{0, 7}, TrustedHost: true}}
	return f.apply(b)
}

// row returns a valid new row over the three nodes.
func row(id ids.Slice, epoch ids.Epoch) geoconfig.SliceRow {
	r := geoconfig.SliceRow{ID: id, Epoch: epoch, Active: nodeNames[0], Policy: geoconfig.Policy{Home: siteNames[0], Level: 3, Kind: geoconfig.Ordinary}}
	for _, n := range nodeNames {
		r.Members = append(r.Members, geoconfig.Member{Node: n, State: geoconfig.Normal, Incarnation: 1})
	}
	return r
}

func create(list ...ids.Slice) geoconfig.Batch {
	var b geoconfig.Batch
	for _, id := range list {
		b.Slices = append(b.Slices, geoconfig.SliceSwap{Row: row(id, 1)})
	}
	return b
}

// swap is the batch that moves a slice from one epoch to the next.
func swap(id ids.Slice, from ids.Epoch, change func(*geoconfig.SliceRow)) geoconfig.Batch {
	r := row(id, from+1)
	if change != nil {
		change(&r)
	}
	return geoconfig.Batch{Slices: []geoconfig.SliceSwap{{From: from, Row: r}}}
}
