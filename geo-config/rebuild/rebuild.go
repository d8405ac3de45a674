// Package rebuild works out a new configuration store from what nodes remember of
// one that is lost: docs/design.md, section 3.1. It asks no node and opens no
// store; the caller gathers the copies and writes the plan, which is an
// archive.Source. Its functions may be called from anywhere; a Plan is not to be
// changed once it is made.
package rebuild

import (
	"cmp"
	"slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

const opNew fault.Op = "rebuild.New"

// EpochLeap is how far a rebuilt row's epoch is above the highest that was seen. A
// node that did not answer may know a higher row, from swaps that no other node
// heard of. It must not know so many of them that its row counts as the newer one.
const EpochLeap ids.Epoch = 1 << 20

// RevisionLeap is how far the new store's first revision is above the highest that
// was seen, for the same reason: a node follows changes from the revision that it
// reached.
const RevisionLeap ids.Revision = 1 << 32

// Copy is what one node remembers of the configuration.
type Copy struct {
	Node ids.Node `json:"node"`
	// Floor is the lowest generation of a geo-config that the node still obeys.
	Floor ids.Generation `json:"floor"`
	// Reaches says that the node reaches a geo-config which it obeys.
	Reaches bool `json:"reaches,omitempty"`
	// GeoConfig lists where the node looks for geo-config, each address with the
	// peer ID that it trusts.
	GeoConfig []string `json:"geo_config"`
	// Rows are its rows of all tables but records, of which it knows some kinds.
	// Their revision is how far it has followed the store.
	Rows geoconfig.Rows `json:"rows"`
}

// Generation returns the lowest generation that no node has obeyed or promised yet.
func Generation(copies []Copy) ids.Generation {
	var most ids.Generation
	for i := range copies {
		most = max(most, copies[i].Floor)
		if c := copies[i].Rows.Cluster; c != nil {
			most = max(most, c.Generation)
		}
	}
	return most + 1
}

// Options say how to plan.
type Options struct {
	// Generation is that of the new store, above all that the nodes have obeyed.
	Generation ids.Generation
	// Accept reports whether an operator accepts the loss of what silent members of
	// a slice have and no other does.
	Accept func(ids.Slice) bool
	// Who rebuilds, and when, for the audit log.
	Who string
	At  time.Time
}

// Plan is what a new store is to hold.
type Plan struct {
	Cluster geoconfig.Cluster
	Sites   []geoconfig.Site
	Nodes   []geoconfig.Node
	Users   []geoconfig.User
	Records []geoconfig.Record
	Slices  []Slice
	// Silent lists the nodes of the roster that gave no copy.
	Silent []ids.Node
	// From is the node whose copy is the newest: the tables but slices are its.
	From ids.Node
	// Seen is the highest revision that a node has reached.
	Seen    ids.Revision
	options Options
}

// New plans a store from copies. Errors: NotFound (no copy knows a cluster),
// WrongCluster (the copies are of several clusters), Invalid (the generation is not
// above those of the copies).
func New(copies []Copy, o Options) (*Plan, error) {
	base, err := newest(copies)
	if err != nil {
		return nil, err
	}
	if o.Generation <= base.Rows.Cluster.Generation {
		return nil, fault.Errorf(fault.Invalid, opNew, base.Node.Short(), "the node knows generation %d already, so %d is no new one", base.Rows.Cluster.Generation, o.Generation)
	}
	p := &Plan{Cluster: *base.Rows.Cluster, Sites: base.Rows.Sites, Nodes: base.Rows.Nodes, Users: base.Rows.Users,
		Records: records(copies), From: base.Node, options: o}
	p.Cluster.Generation = o.Generation
	for i := range copies {
		c := copies[i].Rows.Cluster
		p.Seen = max(p.Seen, copies[i].Rows.Revision)
		if c != nil {
			p.Cluster.Feature = max(p.Cluster.Feature, c.Feature) // it never falls
		}
	}
	p.Silent = Silent(base.Rows.Nodes, copies)
	for _, row := range highestOf(copies) {
		p.Slices = append(p.Slices, decide(row, p.Silent, o))
	}
	return p, nil
}

// newest returns the copy that has followed the store furthest. A copy is the store
// as of its revision, removed rows gone, so the newest one needs no other beside it.
func newest(copies []Copy) (*Copy, error) {
	var best *Copy
	for i := range copies {
		c := &copies[i]
		switch {
		case c.Rows.Cluster == nil:
		case best != nil && c.Rows.Cluster.ID != best.Rows.Cluster.ID:
			return nil, fault.Errorf(fault.WrongCluster, opNew, c.Node.Short(), "the node is of cluster %s, and %s is of %s: name nodes of one cluster",
				c.Rows.Cluster.ID, best.Node.Short(), best.Rows.Cluster.ID)
		case best == nil || cmp.Or(cmp.Compare(c.Rows.Cluster.Generation, best.Rows.Cluster.Generation), cmp.Compare(c.Rows.Revision, best.Rows.Revision)) > 0:
			best = c
		}
	}
	if best == nil {
		return nil, fault.E(fault.NotFound, opNew, "", "no node that answered remembers a cluster: start the nodes with their data directories first")
	}
	return best, nil
}

// Silent lists the nodes of a roster that gave no copy, in the roster's order.
func Silent(roster []geoconfig.Node, copies []Copy) []ids.Node {
	var out []ids.Node
	for i := range roster {
		if !slices.ContainsFunc(copies, func(c Copy) bool { return c.Node == roster[i].ID }) {
			out = append(out, roster[i].ID)
		}
	}
	return out
}

// records joins the records that the nodes know. Nodes read them now and then, so no
// list is certain to be whole. Of a name that two know differently the later
// revision counts, and of equal ones the longer life.
func records(copies []Copy) []geoconfig.Record {
	best := map[geoconfig.RecordKey]geoconfig.Record{}
	for i := range copies {
		for _, r := range copies[i].Rows.Records {
			key := geoconfig.RecordKey{Kind: r.Kind, Name: r.Name}
			if old, ok := best[key]; !ok || r.Revision > old.Revision {
				best[key] = r
			}
		}
	}
	out := make([]geoconfig.Record, 0, len(best))
	for _, r := range best {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b geoconfig.Record) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// highestOf returns the highest row of each slice that a node knows, by ID.
func highestOf(copies []Copy) []geoconfig.SliceRow {
	var all []geoconfig.SliceRow
	for i := range copies {
		all = append(all, copies[i].Rows.Slices...)
	}
	return Highest(all)
}

// Highest returns the highest row of each slice among some, by ID. The rows share
// their members with those given.
func Highest(rows []geoconfig.SliceRow) []geoconfig.SliceRow {
	best := map[ids.Slice]geoconfig.SliceRow{}
	for _, r := range rows {
		if old, ok := best[r.ID]; !ok || compareRows(&r, &old) > 0 {
			best[r.ID] = r
		}
	}
	out := make([]geoconfig.SliceRow, 0, len(best))
	for _, r := range best {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b geoconfig.SliceRow) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// compareRows says which of two rows of one slice is the newer one.
func compareRows(a, b *geoconfig.SliceRow) int {
	return cmp.Or(cmp.Compare(a.Generation, b.Generation), cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Revision, b.Revision))
}
