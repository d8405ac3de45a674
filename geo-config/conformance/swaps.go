package conformance

import (
	"fmt"
	"reflect"
	"sync"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

func testNew(f *fixture) {
	if rows := f.read(geoconfig.Query{Sites: true, Nodes: true, Users: true, Slices: 10, Audit: 10}); !reflect.DeepEqual(rows, geoconfig.Rows{}) {
		f.Errorf("a new store holds %+v", rows)
	}
	f.refuse(fault.Invalid, "cluster/cluster", geoconfig.Batch{Sites: []geoconfig.Site{{Name: "paris"}}})
	if rev := f.seed(); rev != 1 {
		f.Errorf("the first batch has revision %d, want 1", rev)
	}
	props, err := f.s.Properties(f.ctx)
	if err != nil || props.Name == "" {
		f.Errorf("Properties: %+v, %v", props, err)
	}
}

func testRead(f *fixture) {
	rev := f.seed()
	r := row(7, 3)
	r.Policy.Coherence, r.Policy.Kind, r.Policy.Sites = 5*time.Second, geoconfig.WriteOnce, 2
	r.Members[2].State, r.Hear, r.Closed = geoconfig.Migrating, 2, true
	later := f.apply(geoconfig.Batch{Slices: []geoconfig.SliceSwap{{Row: r}}})
	rows := f.read(geoconfig.Query{Sites: true, Nodes: true, Users: true, SliceIDs: []ids.Slice{8, 7, 7}})
	if rows.Revision != later || later <= rev || rows.More {
		f.Errorf("got revision %d (more: %v), want %d above %d", rows.Revision, rows.More, later, rev)
	}
	want := &geoconfig.Cluster{ID: "c1", Generation: 1, CreatedNS: 5, Revision: rev}
	if !reflect.DeepEqual(rows.Cluster, want) {
		f.Errorf("got cluster %+v, want %+v", rows.Cluster, want)
	}
	r.Revision, r.Generation = later, 1
	if len(rows.Slices) != 1 || !reflect.DeepEqual(rows.Slices[0], r) {
		f.Errorf("got slices %+v, want %+v", rows.Slices, r)
	}
	if len(rows.Sites) != 3 || rows.Sites[0].Name != "oslo" || rows.Sites[2].Name != "tokyo" || rows.Sites[1].Revision != rev {
		f.Errorf("got sites %+v, want three in the order of their names", rows.Sites)
	}
	n := geoconfig.Node{
		ID: "n1", Site: "paris", Addresses: []string{"/ip4/127.0.0.1/tcp/4001"}, CapacityBytes: 1 << 40, Incarnation: 1, Version: "1", Revision: rev,
		Coordinate: geoconfig.Coordinate{Vector: []float64{1, -2.5}, Height: 0.25, Error: 1},
	}
	if len(rows.Nodes) != 3 || !reflect.DeepEqual(rows.Nodes[0], n) {
		f.Errorf("got nodes %+v, want the first to be %+v", rows.Nodes, n)
	}
	u := geoconfig.User{Name: "root@desk", Key: "k1", GIDs: []uint32{0, 7}, TrustedHost: true, Revision: rev}
	if len(rows.Users) != 1 || !reflect.DeepEqual(rows.Users[0], u) {
		f.Errorf("got users %+v, want %+v", rows.Users, u)
	}
}

func testRevisions(f *fixture) {
	rev := f.seed()
	site := geoconfig.Site{Name: "paris", Location: "left bank"}
	f.refuse(fault.Conflict, "sites/paris", geoconfig.Batch{Sites: []geoconfig.Site{site}})
	site.Revision = rev
	later := f.apply(geoconfig.Batch{Sites: []geoconfig.Site{site}})
	f.refuse(fault.Conflict, "sites/paris", geoconfig.Batch{Sites: []geoconfig.Site{site}})
	gone := geoconfig.Site{Name: "rome", Revision: rev}
	f.refuse(fault.Conflict, "sites/rome", geoconfig.Batch{Sites: []geoconfig.Site{gone}})
	user := geoconfig.User{Name: "root@desk", Key: "k2", UID: 7, GIDs: []uint32{7}}
	f.refuse(fault.Conflict, "users/root@desk", geoconfig.Batch{Users: []geoconfig.User{user}})
	node := geoconfig.Node{ID: "n2", Site: "paris", Revision: later}
	f.refuse(fault.Conflict, "nodes/n2", geoconfig.Batch{Nodes: []geoconfig.Node{node}})
	f.refuse(fault.Conflict, "users/root@desk", geoconfig.Batch{Remove: []geoconfig.Removal{{Key: user.RowKey(), Revision: later}}})
	removed := f.apply(geoconfig.Batch{Remove: []geoconfig.Removal{{Key: user.RowKey(), Revision: rev}}})
	if rows := f.read(geoconfig.Query{Users: true}); len(rows.Users) != 0 || rows.Revision != removed {
		f.Errorf("after the removal: %+v", rows)
	}
	f.refuse(fault.Conflict, "users/root@desk", geoconfig.Batch{Remove: []geoconfig.Removal{{Key: user.RowKey(), Revision: rev}}})
	again := f.apply(geoconfig.Batch{Users: []geoconfig.User{user}})
	if rows := f.read(geoconfig.Query{Users: true, Sites: true}); len(rows.Users) != 1 || rows.Users[0].Revision != again || rows.Sites[1].Location != "left bank" {
		f.Errorf("at the end: %+v", rows)
	}
}

func testEpochs(f *fixture) {
	f.seed()
	f.apply(create(1, 2))
	f.refuse(fault.Conflict, "slices/2", create(2))
	f.refuse(fault.Conflict, "slices/3", swap(3, 1, nil))
	f.apply(swap(1, 1, func(r *geoconfig.SliceRow) { r.Hear = 2 }))
	f.refuse(fault.Conflict, "slices/1", swap(1, 1, nil))
	f.refuse(fault.Conflict, "slices/1", swap(1, 3, nil))
	f.refuse(fault.Invalid, "slices/1", swap(1, 2, func(r *geoconfig.SliceRow) { r.Epoch = 2 }))
	f.refuse(fault.Invalid, "slices/1", swap(1, 2, func(r *geoconfig.SliceRow) { r.Epoch = 1 }))
	f.apply(swap(1, 2, func(r *geoconfig.SliceRow) { r.Epoch, r.Members[1].State = 9, geoconfig.Failed }))
	takeover := swap(1, 9, func(r *geoconfig.SliceRow) { r.Active = "n2" })
	f.refuse(fault.Invalid, "slices/1", takeover)
	takeover.Slices[0].AcceptLoss = true
	f.apply(takeover)
	if got := f.slice(1); got.Epoch != 10 || got.Active != "n2" {
		f.Errorf("got %+v, want epoch 10 with active n2", got)
	}
	f.refuse(fault.Invalid, "slices/1", geoconfig.Batch{Remove: []geoconfig.Removal{{Key: geoconfig.SliceKey(ids.Slice(1)), Revision: 4}}})
}

func testAtomic(f *fixture) {
	f.seed()
	f.apply(create(1, 2, 3))
	before := f.read(geoconfig.Query{Sites: true, Slices: 10, Audit: 10})
	b := swap(1, 1, nil)
	b.Slices = append(b.Slices, swap(2, 7, nil).Slices...)
	b.Sites = []geoconfig.Site{{Name: "rome"}}
	b.Audit = []geoconfig.AuditRecord{{Who: "n1", Action: "slice.takeover", Subject: "slices/1"}}
	f.refuse(fault.Conflict, "slices/2", b)
	if after := f.read(geoconfig.Query{Sites: true, Slices: 10, Audit: 10}); !reflect.DeepEqual(after, before) {
		f.Errorf("a refused batch left %+v, want %+v", after, before)
	}
	b.Slices[1] = swap(2, 1, nil).Slices[0]
	rev := f.apply(b)
	after := f.read(geoconfig.Query{Sites: true, Slices: 10, Audit: 10})
	if len(after.Sites) != 4 || after.Slices[0].Revision != rev || after.Slices[1].Revision != rev || after.Slices[2].Revision == rev || len(after.Audit) != 1 {
		f.Errorf("the batch of revision %d left %+v", rev, after)
	}
}

func testRace(f *fixture) {
	f.seed()
	f.apply(create(1))
	const racers, rounds = 4, 5
	for round := range rounds {
		won := make([]error, racers)
		var wg sync.WaitGroup
		for i := range racers {
			wg.Go(func() {
				b := swap(1, ids.Epoch(round+1), func(r *geoconfig.SliceRow) { r.Hear = i % 3 })
				b.Key = fmt.Sprintf("race-%d-%d", round, i)
				_, won[i] = f.s.Apply(f.ctx, b)
			})
		}
		wg.Wait()
		winners := 0
		for i, err := range won {
			if err == nil {
				winners++
				if got := f.slice(1); got.Hear != i%3 || got.Epoch != ids.Epoch(round+2) {
					f.Errorf("racer %d won, the row is %+v", i, got)
				}
				continue
			}
			f.fails(fault.Conflict, "slices/1", err)
		}
		if winners != 1 {
			f.Fatalf("round %d has %d winners, want 1", round, winners)
		}
	}
}

func testRepeat(f *fixture) {
	f.seed()
	b := create(1)
	b.Key = "same"
	b.Audit = []geoconfig.AuditRecord{{Who: "n1", Action: "slice.create"}}
	rev := f.apply(b)
	f.apply(swap(1, 1, nil))
	if again := f.apply(b); again != rev {
		f.Errorf("the repetition has revision %d, want %d", again, rev)
	}
	if rows := f.read(geoconfig.Query{Audit: 10}); len(rows.Audit) != 1 || f.slice(1).Epoch != 2 {
		f.Errorf("the repetition changed something: %+v", rows)
	}
	failed := create(1)
	failed.Key = "second chance"
	f.refuse(fault.Conflict, "", failed)
	failed.Slices[0].Row.ID = 2
	f.apply(failed)
}

func testSettle(f *fixture) {
	f.seed()
	b := create(1)
	b.Key = "applied"
	want := f.apply(b)
	if rev, applied, err := f.s.Settle(f.ctx, "applied"); rev != want || !applied || err != nil {
		f.Errorf("got %d, %v, %v, want %d, true", rev, applied, err, want)
	}
	b = create(2)
	b.Key = "never"
	for range 2 {
		if rev, applied, err := f.s.Settle(f.ctx, "never"); rev != 0 || applied || err != nil {
			f.Errorf("got %d, %v, %v, want 0, false", rev, applied, err)
		}
		f.refuse(fault.Expired, "", b)
	}
	if rows := f.read(geoconfig.Query{SliceIDs: []ids.Slice{2}}); len(rows.Slices) != 0 {
		f.Error("a batch came through after it was settled as not applied")
	}
	_, _, err := f.s.Settle(f.ctx, "")
	f.fails(fault.Invalid, "", err)
}
