package plan_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/plan"
)

func long(n int) string { return strings.Repeat("x", n) }

func TestCheckKey_BoundsTheKey(t *testing.T) {
	for length, want := range map[int]fault.Kind{0: fault.Invalid, 1: fault.None, 128: fault.None, 129: fault.Invalid} {
		if got := fault.KindOf(plan.CheckKey(long(length))); got != want {
			t.Errorf("a key of %d bytes: got %v, want %v", length, got, want)
		}
	}
}

func TestShape_ChecksABatchByItself(t *testing.T) {
	audit := func(n int, who, detail string) geoconfig.Batch {
		b := geoconfig.Batch{Key: "key"}
		for range n {
			b.Audit = append(b.Audit, geoconfig.AuditRecord{Who: who, Action: "act", Subject: "sub", Detail: detail})
		}
		return b
	}
	const words = len("ann" + "act" + "sub")
	for name, c := range map[string]struct {
		batch geoconfig.Batch
		want  fault.Kind
	}{
		"no key":                {geoconfig.Batch{Sites: []geoconfig.Site{{Name: "rome"}}}, fault.Invalid},
		"nothing":               {geoconfig.Batch{Key: "key"}, fault.Invalid},
		"one row":               {geoconfig.Batch{Key: "key", Cluster: &geoconfig.Cluster{ID: "c1"}}, fault.None},
		"as many as it may":     {audit(geoconfig.MaxBatchRows, "ann", ""), fault.None},
		"one too many":          {audit(geoconfig.MaxBatchRows+1, "ann", ""), fault.TooLarge},
		"a record without who":  {audit(1, "", ""), fault.Invalid},
		"a record without what": {geoconfig.Batch{Key: "key", Audit: []geoconfig.AuditRecord{{Who: "ann"}}}, fault.Invalid},
		"a long record":         {audit(1, "ann", long(4096-words)), fault.None},
		"a record too long":     {audit(1, "ann", long(4097-words)), fault.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fault.KindOf(plan.Shape(c.batch)); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// checked plans batches of one row each and wants those named in bad, and no
// others, to be refused as Invalid.
func checked(t *testing.T, good, bad map[string]geoconfig.Batch) {
	t.Helper()
	for name, b := range good {
		t.Run(name, func(t *testing.T) { taken(t, seeded(t), b) })
	}
	for name, b := range bad {
		t.Run(name, func(t *testing.T) { refused(t, seeded(t), b, fault.Invalid, "") })
	}
}

func TestBatch_ChecksClusters(t *testing.T) {
	row := func(id ids.Cluster, secret string) geoconfig.Batch {
		return geoconfig.Batch{Cluster: &geoconfig.Cluster{ID: id, Secret: secret, Generation: 2, Revision: seedRev}}
	}
	good := map[string]geoconfig.Batch{
		"no secret": row("c1", ""),
		"a secret":  row("c1", strings.Repeat("0f", 32)),
	}
	bad := map[string]geoconfig.Batch{
		"no ID":               row("", ""),
		"an ID with a dot":    row("c.1", ""),
		"a short secret":      row("c1", strings.Repeat("0f", 31)),
		"a long secret":       row("c1", strings.Repeat("0f", 33)),
		"an odd secret":       row("c1", strings.Repeat("0", 63)),
		"a secret of letters": row("c1", strings.Repeat("zz", 32)),
	}
	checked(t, good, bad)
	for length, want := range map[int]fault.Kind{63: fault.None, 64: fault.Invalid} {
		b := geoconfig.Batch{Cluster: &geoconfig.Cluster{ID: ids.Cluster(long(length))}}
		if _, err := run(&table{}, b); fault.KindOf(err) != want {
			t.Errorf("an ID of %d bytes: got %v, want kind %v", length, err, want)
		}
	}
}

func TestBatch_ChecksSites(t *testing.T) {
	row := func(name, location string) geoconfig.Batch {
		return geoconfig.Batch{Sites: []geoconfig.Site{{Name: ids.Site(name), Location: location}}}
	}
	good := map[string]geoconfig.Batch{
		"marks":            row("a_b.c-1", ""),
		"a digit":          row("1", ""),
		"capitals":         row("ROME", ""),
		"a long name":      row(long(63), ""),
		"a long location":  row("rome", long(4096)),
		"a place in words": row("rome", "Zürich, 2nd floor"),
		"random and more":  row("random1", ""),
	}
	bad := map[string]geoconfig.Batch{
		"no name":             row("", ""),
		"a name too long":     row(long(64), ""),
		"a mark at first":     row(".rome", ""),
		"a slash":             row("a/b", ""),
		"a space":             row("a b", ""),
		"a sign of users":     row("a@b", ""),
		"a letter with dots":  row("zürich", ""),
		"around the letters":  row("a`b", ""),
		"beyond the letters":  row("a{b", ""),
		"the cue's word":      row("random", ""),
		"the cue's in any":    row("RanDom", ""),
		"a location too long": row("rome", long(4097)),
		"a location no text":  row("rome", "\xff"),
	}
	checked(t, good, bad)
}

func TestBatch_ChecksNodes(t *testing.T) {
	row := func(change func(*geoconfig.Node)) geoconfig.Batch {
		n := geoconfig.Node{ID: "n4", Site: "paris"}
		change(&n)
		return geoconfig.Batch{Nodes: []geoconfig.Node{n}}
	}
	addresses := func(n, length int) func(*geoconfig.Node) {
		return func(row *geoconfig.Node) {
			for range n {
				row.Addresses = append(row.Addresses, "/"+long(length-1))
			}
		}
	}
	neighbours := func(n int) []ids.Node {
		out := make([]ids.Node, n)
		for i := range out {
			out[i] = ids.Node(fmt.Sprint("m", i))
		}
		return out
	}
	at := func(x, height, off float64) func(*geoconfig.Node) {
		return func(n *geoconfig.Node) {
			n.Coordinate = geoconfig.Coordinate{Vector: []float64{0, x}, Height: height, Error: off}
		}
	}
	good := map[string]geoconfig.Batch{
		"a long ID":       row(func(n *geoconfig.Node) { n.ID = ids.Node(long(128)) }),
		"many addresses":  row(addresses(32, 8)),
		"a long address":  row(addresses(1, 512)),
		"a coordinate":    row(at(-1.5, 0.25, 1)),
		"many near nodes": row(func(n *geoconfig.Node) { n.Together = neighbours(geoconfig.MaxNeighbours) }),
		"many far nodes":  row(func(n *geoconfig.Node) { n.Apart = neighbours(geoconfig.MaxNeighbours) }),
		"a long version":  row(func(n *geoconfig.Node) { n.Version = long(128) }),
		"an empty disk":   row(func(n *geoconfig.Node) { n.CapacityBytes, n.UsedBytes = 1, 0 }),
	}
	bad := map[string]geoconfig.Batch{
		"no ID":                  row(func(n *geoconfig.Node) { n.ID = "" }),
		"an ID too long":         row(func(n *geoconfig.Node) { n.ID = ids.Node(long(129)) }),
		"an ID with a slash":     row(func(n *geoconfig.Node) { n.ID = "../n4" }),
		"an ID with a dot":       row(func(n *geoconfig.Node) { n.ID = "n.4" }),
		"too many addresses":     row(addresses(33, 8)),
		"an address too long":    row(addresses(1, 513)),
		"an address of no kind":  row(func(n *geoconfig.Node) { n.Addresses = []string{"127.0.0.1:1"} }),
		"an empty address":       row(func(n *geoconfig.Node) { n.Addresses = []string{""} }),
		"a place that is none":   row(at(math.NaN(), 0, 0)),
		"a height without end":   row(at(0, math.Inf(1), 0)),
		"an error without end":   row(at(0, 0, math.Inf(-1))),
		"too many near nodes":    row(func(n *geoconfig.Node) { n.Together = neighbours(geoconfig.MaxNeighbours + 1) }),
		"too many far nodes":     row(func(n *geoconfig.Node) { n.Apart = neighbours(geoconfig.MaxNeighbours + 1) }),
		"a near node of no name": row(func(n *geoconfig.Node) { n.Together = []ids.Node{"a/b"} }),
		"a far node of no name":  row(func(n *geoconfig.Node) { n.Apart = []ids.Node{""} }),
		"a negative capacity":    row(func(n *geoconfig.Node) { n.CapacityBytes = -1 }),
		"a negative use":         row(func(n *geoconfig.Node) { n.UsedBytes = -1 }),
		"a version too long":     row(func(n *geoconfig.Node) { n.Version = long(129) }),
	}
	checked(t, good, bad)
}

func TestBatch_ChecksUsers(t *testing.T) {
	row := func(change func(*geoconfig.User)) geoconfig.Batch {
		u := geoconfig.User{Name: "bob", Key: "k2", UID: 1001, GIDs: []uint32{100}}
		change(&u)
		return geoconfig.Batch{Users: []geoconfig.User{u}}
	}
	good := map[string]geoconfig.Batch{
		"marks":                  row(func(u *geoconfig.User) { u.Name = "b_o.b-1@desk" }),
		"a long name":            row(func(u *geoconfig.User) { u.Name = ids.User(long(63)) }),
		"a long key":             row(func(u *geoconfig.User) { u.Key = long(128) }),
		"many groups":            row(func(u *geoconfig.User) { u.GIDs = make([]uint32, 1024) }),
		"a trusted host as root": row(func(u *geoconfig.User) { u.TrustedHost, u.UID, u.GIDs = true, 0, nil }),
	}
	bad := map[string]geoconfig.Batch{
		"no name":         row(func(u *geoconfig.User) { u.Name = "" }),
		"a name too long": row(func(u *geoconfig.User) { u.Name = ids.User(long(64)) }),
		"a mark at first": row(func(u *geoconfig.User) { u.Name = "@bob" }),
		"no key":          row(func(u *geoconfig.User) { u.Key = "" }),
		"a key too long":  row(func(u *geoconfig.User) { u.Key = long(129) }),
		"a key of signs":  row(func(u *geoconfig.User) { u.Key = "k.2" }),
		"too many groups": row(func(u *geoconfig.User) { u.GIDs = make([]uint32, 1025) }),
		"root":            row(func(u *geoconfig.User) { u.UID = 0 }),
		"no group":        row(func(u *geoconfig.User) { u.GIDs = nil }),
	}
	checked(t, good, bad)
}

func TestBatch_ChecksSlices(t *testing.T) {
	row := func(change func(*geoconfig.SliceRow)) geoconfig.Batch {
		return swapped(func(s *geoconfig.SliceSwap) { change(&s.Row) })
	}
	members := func(n int) func(*geoconfig.SliceRow) {
		return func(r *geoconfig.SliceRow) {
			for i := len(r.Members); i < n; i++ {
				r.Members = append(r.Members, geoconfig.Member{Node: ids.Node(fmt.Sprint("m", i)), State: geoconfig.Failed})
			}
		}
	}
	good := map[string]geoconfig.Batch{
		"one replica":       row(func(r *geoconfig.SliceRow) { r.Policy.Level = 1 }),
		"many replicas":     row(func(r *geoconfig.SliceRow) { r.Policy.Level = 64 }),
		"a site each":       row(func(r *geoconfig.SliceRow) { r.Policy.Sites = r.Policy.Level }),
		"write-once":        row(func(r *geoconfig.SliceRow) { r.Policy.Kind = geoconfig.WriteOnce }),
		"a day late":        row(func(r *geoconfig.SliceRow) { r.Policy.Coherence = 24 * time.Hour }),
		"no home":           row(func(r *geoconfig.SliceRow) { r.Policy.Home = "" }),
		"all heard":         row(func(r *geoconfig.SliceRow) { r.Hear = len(r.Members) }),
		"a failed standby":  row(func(r *geoconfig.SliceRow) { r.Members[1].State = geoconfig.Failed }),
		"a closed one":      row(func(r *geoconfig.SliceRow) { r.Closed = true }),
		"the highest there": {Slices: []geoconfig.SliceSwap{{Row: sliceRow(ids.MaxSlice, 1)}}},
	}
	bad := map[string]geoconfig.Batch{
		"no number":            {Slices: []geoconfig.SliceSwap{{Row: sliceRow(0, 1)}}},
		"a number too high":    {Slices: []geoconfig.SliceSwap{{Row: sliceRow(ids.MaxSlice+1, 1)}}},
		"no epoch":             {Slices: []geoconfig.SliceSwap{{Row: sliceRow(8, 0)}}},
		"no replica":           row(func(r *geoconfig.SliceRow) { r.Policy.Level = 0 }),
		"too many replicas":    row(func(r *geoconfig.SliceRow) { r.Policy.Level = 65 }),
		"fewer than no sites":  row(func(r *geoconfig.SliceRow) { r.Policy.Sites = -1 }),
		"more sites than that": row(func(r *geoconfig.SliceRow) { r.Policy.Sites = r.Policy.Level + 1 }),
		"no kind":              row(func(r *geoconfig.SliceRow) { r.Policy.Kind = 0 }),
		"a kind of later":      row(func(r *geoconfig.SliceRow) { r.Policy.Kind = geoconfig.WriteOnce + 1 }),
		"early coherence":      row(func(r *geoconfig.SliceRow) { r.Policy.Coherence = -1 }),
		"more than a day late": row(func(r *geoconfig.SliceRow) { r.Policy.Coherence = 24*time.Hour + 1 }),
		"a home of no name":    row(func(r *geoconfig.SliceRow) { r.Policy.Home = "a b" }),
		"no members":           row(func(r *geoconfig.SliceRow) { r.Members = nil }),
		"too many members":     row(members(65)),
		"fewer to hear":        row(func(r *geoconfig.SliceRow) { r.Hear = -1 }),
		"more to hear":         row(func(r *geoconfig.SliceRow) { r.Hear = len(r.Members) + 1 }),
		"a state before":       row(func(r *geoconfig.SliceRow) { r.Members[1].State = 0 }),
		"a state of later":     row(func(r *geoconfig.SliceRow) { r.Members[1].State = geoconfig.Failed + 1 }),
		"a member twice":       row(func(r *geoconfig.SliceRow) { r.Members[1].Node = "n1" }),
		"no active":            row(func(r *geoconfig.SliceRow) { r.Active = "" }),
		"an active outside":    row(func(r *geoconfig.SliceRow) { r.Active = "n3" }),
		"a junior active":      row(func(r *geoconfig.SliceRow) { r.Members[0].State = geoconfig.Recovering }),
	}
	checked(t, good, bad)
	most := row(members(64))
	for _, m := range most.Slices[0].Row.Members[2:] {
		most.Nodes = append(most.Nodes, geoconfig.Node{ID: m.Node, Site: "oslo"})
	}
	taken(t, seeded(t), most)
}
