package conformance

import (
	"fmt"
	"math"
	"reflect"
	"strings"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

func testValidation(f *fixture) {
	f.seed()
	before := f.read(geoconfig.Query{Sites: true, Nodes: true, Users: true, Slices: 10})
	for what, change := range map[string]func(*geoconfig.SliceRow){
		"no ID":                      func(r *geoconfig.SliceRow) { r.ID = 0 },
		"an ID of 25 bits":           func(r *geoconfig.SliceRow) { r.ID = ids.MaxSlice + 1 },
		"epoch 0":                    func(r *geoconfig.SliceRow) { r.Epoch = 0 },
		"level 0":                    func(r *geoconfig.SliceRow) { r.Policy.Level = 0 },
		"more sites than level":      func(r *geoconfig.SliceRow) { r.Policy.Sites = 4 },
		"an unknown kind":            func(r *geoconfig.SliceRow) { r.Policy.Kind = 0 },
		"negative coherence":         func(r *geoconfig.SliceRow) { r.Policy.Coherence = -1 },
		"a home that is no name":     func(r *geoconfig.SliceRow) { r.Policy.Home = "a b" },
		"no members":                 func(r *geoconfig.SliceRow) { r.Members = nil },
		"a member twice":             func(r *geoconfig.SliceRow) { r.Members[2].Node = r.Members[1].Node },
		"a state that is none":       func(r *geoconfig.SliceRow) { r.Members[2].State = 5 },
		"no active":                  func(r *geoconfig.SliceRow) { r.Active = "" },
		"an active from outside":     func(r *geoconfig.SliceRow) { r.Active = "n9" },
		"a junior active":            func(r *geoconfig.SliceRow) { r.Members[0].State = geoconfig.Recovering },
		"more to hear than members":  func(r *geoconfig.SliceRow) { r.Hear = 4 },
		"a member that is no node":   func(r *geoconfig.SliceRow) { r.Members[2].Node = "n9" },
		"a member with a wrong name": func(r *geoconfig.SliceRow) { r.Members[2].Node = "../n9" },
	} {
		b := create(5)
		change(&b.Slices[0].Row)
		f.Log(what)
		f.refuse(fault.Invalid, "", b)
	}
	for _, name := range []ids.Site{"", "Random", ".x", "a/b", "a b", ids.Site(strings.Repeat("x", 64)), "ü"} {
		f.refuse(fault.Invalid, "", geoconfig.Batch{Sites: []geoconfig.Site{{Name: name}}})
	}
	for _, n := range []geoconfig.Node{
		{ID: "", Site: "paris"}, {ID: "a/b", Site: "paris"}, {ID: "n9"}, {ID: "n9", Site: "rome"},
		{ID: "n9", Site: "paris", Addresses: []string{"127.0.0.1:1"}}, {ID: "n9", Site: "paris", CapacityBytes: -1},
		{ID: "n9", Site: "paris", Coordinate: geoconfig.Coordinate{Height: math.MaxFloat64 * -1, Error: math.Inf(1)}},
	} {
		f.refuse(fault.Invalid, "", geoconfig.Batch{Nodes: []geoconfig.Node{n}})
	}
	checkUsers(f)
	f.refuse(fault.Invalid, "", geoconfig.Batch{})
	f.refuse(fault.Invalid, "", geoconfig.Batch{Audit: []geoconfig.AuditRecord{{Who: "n1"}}})
	f.refuse(fault.Invalid, "slices/5", create(5, 6, 5))
	f.refuse(fault.Invalid, "", geoconfig.Batch{Key: strings.Repeat("k", 129), Sites: []geoconfig.Site{{Name: "rome"}}})
	f.refuse(fault.TooLarge, "", geoconfig.Batch{Audit: make([]geoconfig.AuditRecord, geoconfig.MaxBatchRows+1)})
	var big geoconfig.Batch
	for i := range 200 { // JSON writes six bytes for each of these
		big.Sites = append(big.Sites, geoconfig.Site{Name: ids.Site(fmt.Sprint("s", i)), Location: strings.Repeat("<", 4096)})
	}
	f.refuse(fault.TooLarge, "", big)
	if after := f.read(geoconfig.Query{Sites: true, Nodes: true, Users: true, Slices: 10}); !reflect.DeepEqual(after, before) {
		f.Errorf("refused batches left %+v, want %+v", after, before)
	}
	_, err := f.s.Read(f.ctx, geoconfig.Query{Slices: geoconfig.MaxBatchRows + 1})
	f.fails(fault.TooLarge, "", err)
}

func testReferences(f *fixture) {
	rev := f.seed()
	f.apply(create(1))
	paris := geoconfig.Removal{Key: geoconfig.Site{Name: "paris"}.Key(), Revision: rev}
	n1 := geoconfig.Removal{Key: geoconfig.Node{ID: "n1"}.Key(), Revision: rev}
	f.refuse(fault.NotEmpty, "sites/paris", geoconfig.Batch{Remove: []geoconfig.Removal{paris}})
	f.refuse(fault.NotEmpty, "nodes/n1", geoconfig.Batch{Remove: []geoconfig.Removal{n1}})
	f.refuse(fault.NotEmpty, "nodes/n1", geoconfig.Batch{Remove: []geoconfig.Removal{n1, paris}})
	add := create(2)
	add.Slices[0].Row.Active, add.Slices[0].Row.Members = "n3", add.Slices[0].Row.Members[2:]
	add.Remove = []geoconfig.Removal{{Key: geoconfig.Node{ID: "n3"}.Key(), Revision: rev}}
	f.refuse(fault.NotEmpty, "nodes/n3", add)
	leave := swap(1, 1, func(r *geoconfig.SliceRow) { r.Active, r.Members = "n2", r.Members[1:] })
	leave.Remove = []geoconfig.Removal{n1, paris}
	f.apply(leave)
	rows := f.read(geoconfig.Query{Sites: true, Nodes: true})
	if len(rows.Sites) != 2 || len(rows.Nodes) != 2 {
		f.Errorf("after n1 and paris went: %+v", rows)
	}
	f.refuse(fault.Invalid, "nodes/n1", geoconfig.Batch{Nodes: []geoconfig.Node{{ID: "n1", Site: "paris"}}})
	f.apply(geoconfig.Batch{Sites: []geoconfig.Site{{Name: "paris"}}, Nodes: []geoconfig.Node{{ID: "n1", Site: "paris", Incarnation: 2}}})
}

func testGeneration(f *fixture) {
	rev := f.seed()
	next := geoconfig.Cluster{ID: "c1", Generation: 3, Revision: rev}
	other := next
	other.ID = "c2"
	f.refuse(fault.WrongCluster, "cluster/cluster", geoconfig.Batch{Cluster: &other})
	f.refuse(fault.Conflict, "cluster/cluster", geoconfig.Batch{Cluster: &geoconfig.Cluster{ID: "c1", Generation: 3}})
	f.apply(create(1))
	next.Revision = f.apply(geoconfig.Batch{Cluster: &next})
	next.Generation = 2
	f.refuse(fault.WrongCluster, "cluster/cluster", geoconfig.Batch{Cluster: &next})
	f.refuse(fault.WrongCluster, "slices/1", swap(1, 1, func(r *geoconfig.SliceRow) { r.Generation = 1 }))
	f.apply(swap(1, 1, func(r *geoconfig.SliceRow) { r.Generation = 3 }))
	f.apply(swap(1, 2, nil))
	if got := f.slice(1).Generation; got != 3 {
		f.Errorf("the row has generation %d, want 3", got)
	}
}

func testSlicePages(f *fixture) {
	f.seed()
	f.apply(create(1, 9, 10, 100, 2))
	var got []ids.Slice
	pages := 0
	for from, more := ids.Slice(0), true; more; pages++ {
		rows := f.read(geoconfig.Query{Slices: 2, SlicesFrom: from})
		for _, r := range rows.Slices {
			got = append(got, r.ID)
			from = r.ID + 1
		}
		more = rows.More
	}
	if want := []ids.Slice{1, 2, 9, 10, 100}; !reflect.DeepEqual(got, want) || pages != 3 {
		f.Errorf("got %v in %d pages, want %v in 3", got, pages, want)
	}
}

func testAudit(f *fixture) {
	f.seed()
	for i := range 4 {
		var b geoconfig.Batch
		for j := range 2 {
			b.Audit = append(b.Audit, geoconfig.AuditRecord{AtNS: int64(i), Who: "ann", Action: "node.drain", Subject: fmt.Sprint(i, j), Detail: "because"})
		}
		f.apply(b)
	}
	rows := f.read(geoconfig.Query{Audit: 3})
	want := geoconfig.AuditRecord{Number: 8, AtNS: 3, Who: "ann", Action: "node.drain", Subject: "3 1", Detail: "because", Revision: rows.Revision}
	if len(rows.Audit) != 3 || rows.Audit[0] != want || rows.Audit[2].Subject != "2 1" {
		f.Errorf("got %+v, want the newest three from %+v down", rows.Audit, want)
	}
	rows = f.read(geoconfig.Query{Audit: 100, AuditBefore: 3})
	if len(rows.Audit) != 2 || rows.Audit[0].Number != 2 || rows.Audit[1].Number != 1 {
		f.Errorf("below 3: got %+v", rows.Audit)
	}
}

func checkUsers(f *fixture) {
	for _, u := range []geoconfig.User{
		{Name: "a b", Key: "k", UID: 7, GIDs: []uint32{7}}, {Name: "ann", Key: "", UID: 7, GIDs: []uint32{7}},
		{Name: "ann", Key: "k", UID: 7, GIDs: make([]uint32, 5000)},
		{Name: "ann", Key: "k", GIDs: []uint32{7}}, {Name: "ann", Key: "k", UID: 7}, {Name: "ann", Key: "k", Admin: true},
		{Name: "t", Key: "k", Join: &geoconfig.Join{Site: "oslo"}}, {Name: "t", Key: "k", Join: &geoconfig.Join{ExpiresNS: 1}},
		{Name: "t", Key: "k", Admin: true, Join: &geoconfig.Join{Site: "oslo", ExpiresNS: 1}},
		{Name: "t", Key: "k", UID: 7, GIDs: []uint32{7}, Join: &geoconfig.Join{Site: "oslo", ExpiresNS: 1}},
	} {
		f.refuse(fault.Invalid, "users/"+string(u.Name), geoconfig.Batch{Users: []geoconfig.User{u}})
	}
}
