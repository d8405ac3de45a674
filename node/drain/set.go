package drain

import (
	"context"
	"slices"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/version"
	"cartwheel.dev/node/geo/changes"
)

// setTries bounds how often a row is written anew because its node refreshed it
// meanwhile.
const setTries = 10

// Set writes into the rows of nodes that they are to be left, or not any more, in
// one batch. It changes nothing where the rows say so already. An order that names a
// revision is for one node. Errors: NotFound, NotSupported (a node's program is too
// old to know), and those of geoconfig.Store.
func Set(ctx context.Context, store geoconfig.Store, o changes.Order, nodes []ids.Node, on bool) error {
	const op fault.Op = "drain.Set"
	action := "node.undrain"
	if on {
		action = "node.drain"
	}
	for try := 1; ; try++ {
		rows, err := store.Read(ctx, geoconfig.Query{Nodes: true})
		if err != nil {
			return err
		}
		if on && rows.Cluster != nil && rows.Cluster.Feature < version.Draining {
			return fault.Errorf(fault.NotSupported, op, string(rows.Cluster.ID),
				"uses features of level %d, and draining is of level %d: update the nodes of older versions, which `cartwheel status` shows", rows.Cluster.Feature, version.Draining)
		}
		var b geoconfig.Batch
		for _, id := range nodes {
			i := slices.IndexFunc(rows.Nodes, func(n geoconfig.Node) bool { return n.ID == id })
			if i < 0 {
				return fault.E(fault.NotFound, op, string(id), "is no node; `cartwheel node ls` lists them")
			}
			row := rows.Nodes[i]
			if row.Draining == on {
				continue
			}
			row.Draining = on
			if o.Match != 0 {
				row.Revision = o.Match
			}
			b.Nodes = append(b.Nodes, row)
			b.Audit = append(b.Audit, o.Record(action, row.Key(), "at "+string(row.Site)))
		}
		if len(b.Nodes) == 0 {
			return nil
		}
		if _, err = o.ApplyRecorded(ctx, store, b); err == nil || !fault.Is(err, fault.Conflict) || o.Match != 0 || try == setTries {
			return err
		}
	}
}
