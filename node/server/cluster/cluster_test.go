package cluster_test

import (
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/cluster"
)

func TestDirectory_StartsEmpty(t *testing.T) {
	d := open(t, func(*cluster.Options) {})
	if d.Cluster().ID != "" || d.Revision() != 0 || len(d.Slices())+len(d.Nodes())+len(d.Sites()) != 0 || !d.Away().IsZero() {
		t.Errorf("a new directory knows %+v", d.Cluster())
	}
	_, slice := d.Slice(1)
	_, node := d.Node("n1")
	_, user := d.User("k1")
	if slice || node || user {
		t.Errorf("a new directory has a slice: %v, a node: %v, a user: %v", slice, node, user)
	}
}

func TestDirectory_AnswersInOrder(t *testing.T) {
	b := newBench(t)
	b.apply(made(10, 2, 9))
	d := b.open(nil)
	refresh(t, d)
	var got []string
	for _, s := range d.Sites() {
		got = append(got, string(s.Name))
	}
	for _, n := range d.Nodes() {
		got = append(got, string(n.ID))
	}
	for _, r := range d.Slices() {
		got = append(got, fmt.Sprint(r.ID))
	}
	if want := []string{"oslo", "paris", "n1", "n2", "n3", "2", "9", "10"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if n, ok := d.Node("n3"); !ok || n.Site != "oslo" {
		t.Errorf("got %+v, %v, want n3 at oslo", n, ok)
	}
	if u, ok := d.User("k1"); !ok || u.Name != "ann" {
		t.Errorf("got %+v, %v, want ann", u, ok)
	}
	if d.Cluster().ID != "c1" || d.Revision() != 2 {
		t.Errorf("got cluster %q at revision %d, want c1 at 2", d.Cluster().ID, d.Revision())
	}
}

func TestDirectory_SharesNoSliceRow(t *testing.T) {
	var told []geoconfig.SliceRow
	d := open(t, func(o *cluster.Options) { o.Slices = func(rows []geoconfig.SliceRow) { told = rows } })
	learned := row(7, 1)
	d.Learn(learned)
	one, _ := d.Slice(7)
	all := d.Slices()
	for _, r := range []geoconfig.SliceRow{learned, told[0], one, all[0]} {
		r.Members[0].Node = "changed"
	}
	if got, _ := d.Slice(7); !reflect.DeepEqual(got, row(7, 1)) {
		t.Errorf("a caller's change reached the directory: %+v", got)
	}
}

func TestLearn_KeepsTheNewest(t *testing.T) {
	at := func(epoch ids.Epoch, rev ids.Revision) geoconfig.SliceRow {
		r := row(7, epoch)
		r.Revision = rev
		return r
	}
	for name, c := range map[string]struct {
		rows       []geoconfig.SliceRow
		epoch      ids.Epoch
		rev        ids.Revision
		told       int
		wakes      bool
		afterFirst bool // of rows, the first is learned before the watch begins
	}{
		"a row of its own":         {rows: []geoconfig.SliceRow{at(3, 5)}, epoch: 3, rev: 5, told: 1, wakes: true},
		"an older epoch":           {rows: []geoconfig.SliceRow{at(3, 5), at(2, 9)}, epoch: 3, rev: 5, told: 1, afterFirst: true},
		"a newer epoch":            {rows: []geoconfig.SliceRow{at(3, 5), at(4, 0)}, epoch: 4, told: 2, wakes: true, afterFirst: true},
		"an older revision":        {rows: []geoconfig.SliceRow{at(3, 5), at(3, 4)}, epoch: 3, rev: 5, told: 1, afterFirst: true},
		"the same":                 {rows: []geoconfig.SliceRow{at(3, 5), at(3, 5)}, epoch: 3, rev: 5, told: 1, afterFirst: true},
		"the revision of a swap":   {rows: []geoconfig.SliceRow{at(3, 0), at(3, 5)}, epoch: 3, rev: 5, told: 1, afterFirst: true},
		"an epoch, then the older": {rows: []geoconfig.SliceRow{at(4, 5), at(3, 6), at(5, 7)}, epoch: 5, rev: 7, told: 2, wakes: true, afterFirst: true},
	} {
		t.Run(name, func(t *testing.T) {
			told := 0
			d := open(t, func(o *cluster.Options) { o.Slices = func(rows []geoconfig.SliceRow) { told += len(rows) } })
			rest := c.rows
			if c.afterFirst {
				d.Learn(rest[0])
				rest = rest[1:]
			}
			changed := d.Changed()
			for _, r := range rest {
				d.Learn(r)
			}
			if got, _ := d.Slice(7); got.Epoch != c.epoch || got.Revision != c.rev {
				t.Errorf("got epoch %d at revision %d, want %d at %d", got.Epoch, got.Revision, c.epoch, c.rev)
			}
			if told != c.told {
				t.Errorf("told of %d rows, want %d", told, c.told)
			}
			if isClosed(changed) != c.wakes {
				t.Errorf("Changed has ended: %v, want %v", isClosed(changed), c.wakes)
			}
		})
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestLearn_TellsOneAfterTheOther(t *testing.T) {
	const slices, epochs = 3, 50
	var alone sync.Mutex
	last := map[ids.Slice]ids.Epoch{}
	d := open(t, func(o *cluster.Options) {
		o.Slices = func(rows []geoconfig.SliceRow) {
			if !alone.TryLock() {
				t.Error("two calls at once")
				return
			}
			defer alone.Unlock()
			runtime.Gosched() // lets another call in, where one can come
			for _, r := range rows {
				if r.Epoch <= last[r.ID] {
					t.Errorf("slice %d: epoch %d after %d", r.ID, r.Epoch, last[r.ID])
				}
				last[r.ID] = r.Epoch
			}
		}
	})
	var wg sync.WaitGroup
	for id := range ids.Slice(slices) {
		for first := range ids.Epoch(2) { // two peers bring odd and even epochs
			wg.Go(func() {
				for e := 1 + first; e <= epochs; e += 2 {
					d.Learn(row(id+1, e))
				}
			})
		}
	}
	wg.Wait()
	for id := range ids.Slice(slices) {
		if got, _ := d.Slice(id + 1); got.Epoch != epochs || last[id+1] != epochs {
			t.Errorf("slice %d: kept epoch %d and told of %d, want %d", id+1, got.Epoch, last[id+1], epochs)
		}
	}
}

// told counts what a directory tells.
type told struct {
	slices       []string
	nodes, users int
}

func (c *told) hear(o *cluster.Options) {
	o.Slices = func(rows []geoconfig.SliceRow) {
		for _, r := range rows {
			c.slices = append(c.slices, fmt.Sprintf("%d@%d", r.ID, r.Epoch))
		}
	}
	o.Nodes = func() { c.nodes++ }
	o.Users = func() { c.users++ }
}

func TestRefresh_TellsWhatChanged(t *testing.T) {
	b := newBench(t)
	b.apply(made(7, 8))
	var heard told
	d := b.open(heard.hear)
	refresh(t, d)
	if want := (told{[]string{"7@1", "8@1"}, 1, 1}); !reflect.DeepEqual(heard, want) {
		t.Errorf("at the start: got %+v, want %+v", heard, want)
	}
	node := geoconfig.Node{ID: "n2", Site: "paris", Version: "2", Revision: 1}
	for _, c := range []struct {
		name  string
		batch geoconfig.Batch
		want  told
	}{
		{"a site", geoconfig.Batch{Sites: []geoconfig.Site{{Name: "rome"}}}, told{}},
		{"a slice", moved(8, 1), told{slices: []string{"8@2"}}},
		{"a node", geoconfig.Batch{Nodes: []geoconfig.Node{node}}, told{nodes: 1}},
		{"a user", geoconfig.Batch{Users: []geoconfig.User{user("bob", "k2")}}, told{users: 1}},
		{"a node that goes", geoconfig.Batch{Remove: []geoconfig.Removal{{Key: geoconfig.Node{ID: "n3"}.Key(), Revision: 1}}}, told{nodes: 1, users: 1}},
	} {
		heard = told{}
		changed := d.Changed()
		b.apply(c.batch)
		refresh(t, d)
		if !reflect.DeepEqual(heard, c.want) {
			t.Errorf("%s: got %+v, want %+v", c.name, heard, c.want)
		}
		if !isClosed(changed) {
			t.Errorf("%s: Changed has not ended", c.name)
		}
	}
	heard = told{}
	changed := d.Changed()
	refresh(t, d)
	if !reflect.DeepEqual(heard, told{}) || isClosed(changed) {
		t.Errorf("without a change: told %+v, Changed has ended: %v", heard, isClosed(changed))
	}
}

func TestRefresh_ForgetsWhatWasRemoved(t *testing.T) {
	b := newBench(t)
	d := b.open(nil)
	refresh(t, d)
	b.apply(geoconfig.Batch{Remove: []geoconfig.Removal{
		{Key: geoconfig.Node{ID: "n3"}.Key(), Revision: 1},
		{Key: geoconfig.Site{Name: "oslo"}.Key(), Revision: 1},
		{Key: user("ann", "k1").RowKey(), Revision: 1},
	}})
	refresh(t, d)
	_, node := d.Node("n3")
	_, user := d.User("k1")
	if node || user || len(d.Sites()) != 1 || len(d.Nodes()) != 2 {
		t.Errorf("after the removal: node %v, user %v, sites %v", node, user, d.Sites())
	}
}

func TestRefresh_ForgetsAUsersFormerKey(t *testing.T) {
	b := newBench(t)
	d := b.open(nil)
	refresh(t, d)
	ann := user("ann", "k2")
	ann.Revision = 1
	b.apply(geoconfig.Batch{Users: []geoconfig.User{ann}})
	refresh(t, d)
	_, former := d.User("k1")
	now, ok := d.User("k2")
	if former || !ok || now.Name != "ann" {
		t.Errorf("the former key names a user: %v; the new one %+v, %v", former, now, ok)
	}
}

func TestRefresh_ReadsEveryPage(t *testing.T) {
	b := newBench(t)
	const batches, each = 3, 600 // above a page together
	for i := range batches {
		var many geoconfig.Batch
		for j := range each {
			many.Sites = append(many.Sites, geoconfig.Site{Name: ids.Site(fmt.Sprintf("s%d-%d", i, j))})
		}
		b.apply(many)
	}
	d := b.open(nil)
	refresh(t, d)
	if got, want := len(d.Sites()), 2+batches*each; got != want || d.Revision() != 1+batches {
		t.Errorf("got %d sites at revision %d, want %d at %d", got, d.Revision(), want, 1+batches)
	}
}
