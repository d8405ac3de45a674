package conformance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

func testFollowPages(f *fixture) {
	first := f.seed()
	f.apply(create(1, 2, 3))
	f.apply(create(4))
	last := f.apply(swap(2, 1, nil))
	rows := f.follow(0, 2)
	if rows.Revision != first || !rows.More || len(rows.Sites) != 3 || len(rows.Nodes) != 3 || len(rows.Users) != 1 || rows.Cluster == nil || len(rows.Slices) != 0 {
		f.Fatalf("the first page is %+v, want the whole first batch and no more", rows)
	}
	var got []ids.Slice
	since := rows.Revision
	for more := true; more; {
		rows := f.follow(since, 1)
		for _, r := range rows.Slices {
			got = append(got, r.ID)
		}
		if rows.Revision <= since || rows.Cluster == nil || rows.Cluster.Generation != 1 {
			f.Fatalf("from %d to %d with cluster %+v", since, rows.Revision, rows.Cluster)
		}
		since, more = rows.Revision, rows.More
	}
	if want := []ids.Slice{1, 3, 4, 2}; !reflect.DeepEqual(got, want) || since != last {
		f.Errorf("got %v to revision %d, want %v to %d", got, since, want, last)
	}
}

// outcome is what a call in the background came to.
type outcome struct {
	rows geoconfig.Rows
	err  error
}

func (f *fixture) followLater(ctx context.Context, since ids.Revision) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		rows, err := f.s.Follow(ctx, since, 0)
		done <- outcome{rows, err}
	}()
	return done
}

func (f *fixture) wait(done <-chan outcome) outcome {
	f.Helper()
	select {
	case got := <-done:
		return got
	case <-time.After(patience):
		f.Fatal("the call has not come back")
		return outcome{}
	}
}

func testFollowWaits(f *fixture) {
	rev := f.seed()
	done := f.followLater(f.ctx, rev)
	select {
	case got := <-done:
		f.Fatalf("came back without a change: %+v", got)
	case <-time.After(50 * time.Millisecond):
	}
	next := f.apply(create(1))
	got := f.wait(done)
	if got.err != nil || got.rows.Revision != next || len(got.rows.Slices) != 1 || got.rows.More || len(got.rows.Sites) != 0 {
		f.Fatalf("got %+v, want slice 1 at revision %d", got, next)
	}
	done = f.followLater(f.ctx, next)
	last := f.apply(geoconfig.Batch{Audit: []geoconfig.AuditRecord{{Who: "ann", Action: "node.drain"}}})
	if got := f.wait(done); got.err != nil || got.rows.Revision != last || len(got.rows.Slices) != 0 {
		f.Fatalf("after an audit record: got %+v, want no rows and revision %d", got, last)
	}
}

// testFollowConverges changes rows at random while followers keep copies, which
// have to be equal to the store in the end.
func testFollowConverges(f *fixture) {
	rev := f.seed()
	const slices, changes = 6, 40
	list := []ids.Slice{1, 2, 3, 4, 5, 6}
	f.apply(create(list...))
	seed := uint64(time.Now().UnixNano())
	f.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	final := make(chan ids.Revision, 1)
	copies := make(chan map[string]ids.Revision, 1)
	ctx, cancel := context.WithTimeout(f.ctx, patience)
	defer cancel()
	go func() {
		have := make(map[string]ids.Revision)
		defer func() { copies <- have }()
		target := ids.Revision(1 << 62)
		for since := rev; since < target; {
			rows, err := f.s.Follow(ctx, since, 1)
			if err != nil {
				f.Errorf("Follow: %v", err)
				return
			}
			note(have, rows)
			since = rows.Revision
			select {
			case target = <-final:
			default:
			}
		}
	}()
	epochs := [slices + 1]ids.Epoch{}
	user := geoconfig.User{Name: "eve", Key: "k", UID: 7, GIDs: []uint32{7}}
	var last ids.Revision
	for i := range changes {
		id := ids.Slice(1 + random.IntN(slices))
		b := swap(id, epochs[id]+1, nil)
		epochs[id]++
		switch {
		case i%3 == 0 && user.Revision == 0:
			b.Users = []geoconfig.User{user}
		case i%3 == 1 && user.Revision != 0:
			b.Remove = []geoconfig.Removal{{Key: user.RowKey(), Revision: user.Revision}}
		}
		last = f.apply(b)
		if b.Users != nil {
			user.Revision = last
		} else if b.Remove != nil {
			user.Revision = 0
		}
	}
	final <- last
	f.apply(geoconfig.Batch{Audit: []geoconfig.AuditRecord{{Who: "ann", Action: "test.end"}}})
	want := make(map[string]ids.Revision)
	note(want, f.read(geoconfig.Query{Users: true, Slices: 100}))
	got := <-copies
	if !reflect.DeepEqual(got, want) {
		f.Errorf("the follower has %v, want %v", got, want)
	}
}

func note(have map[string]ids.Revision, rows geoconfig.Rows) {
	for _, r := range rows.Slices {
		have[fmt.Sprint("slice", r.ID)] = r.Revision
	}
	for _, u := range rows.Users {
		if u.Name == "eve" {
			have["eve"] = u.Revision
		}
	}
	for _, r := range rows.Removed {
		if r.Key.Name == "eve" {
			delete(have, "eve")
		}
	}
}

func testEnd(f *fixture) {
	rev := f.seed()
	ctx, cancel := context.WithCancel(f.ctx)
	done := f.followLater(ctx, rev)
	cancel()
	f.fails(fault.Canceled, "", f.wait(done).err)
	short, stop := context.WithTimeout(f.ctx, 20*time.Millisecond)
	defer stop()
	f.fails(fault.TimedOut, "", f.wait(f.followLater(short, rev)).err)
	canceled, cancel := context.WithCancel(f.ctx)
	cancel()
	b := create(1)
	b.Key = "late"
	_, err := f.s.Apply(canceled, b)
	f.fails(fault.Canceled, "", err)

	done = f.followLater(f.ctx, rev)
	time.AfterFunc(20*time.Millisecond, func() { f.s.Close() })
	f.fails(fault.Closed, "", f.wait(done).err)
	_, err = f.s.Read(f.ctx, geoconfig.Query{})
	f.fails(fault.Closed, "", err)
	_, err = f.s.Apply(f.ctx, b)
	f.fails(fault.Closed, "", err)
	if err := f.s.Close(); err != nil {
		f.Errorf("the second Close: %v", err)
	}
}

func testCopies(f *fixture) {
	f.seed()
	b := create(1)
	f.apply(b)
	b.Slices[0].Row.Members[0].Node = "changed"
	rows := f.read(geoconfig.Query{Slices: 10, Nodes: true})
	rows.Slices[0].Members[1].Node = "changed"
	rows.Nodes[0].Addresses[0] = "changed"
	rows.Cluster.ID = "changed"
	rows = f.read(geoconfig.Query{Slices: 10, Nodes: true})
	if fmt.Sprint(rows.Slices[0].Normals()) != "[n1 n2 n3]" || rows.Nodes[0].Addresses[0] == "changed" || rows.Cluster.ID != "c1" {
		f.Errorf("a caller's change reached the store: %+v", rows)
	}
}
