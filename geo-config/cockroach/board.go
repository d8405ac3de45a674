package cockroach

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/plan"
)

// board is what one writing transaction knows: the rows that its group needs,
// as they are after the calls planned so far, and the counters. It belongs to
// one attempt.
type board struct {
	// The counters of table state: those read, and those after the group.
	was, now counters
	// keys are the applied keys among the group's; 0: settled.
	keys map[string]ids.Revision
	// rows has every row that the group names; nil: none.
	rows map[geoconfig.RowKey][]byte
	// stored has the keys of the records that were there before the group.
	stored map[geoconfig.RowKey]bool
	// naming has the rows that name a row which is to be removed, as stored.
	naming map[geoconfig.RowKey][]geoconfig.RowKey
	// records counts the stored records of the kinds that the group adds to.
	records map[string]int
	// changed has the revisions of the rows to be written.
	changed map[geoconfig.RowKey]ids.Revision
	bytes   int // of the bodies planned
	newKeys []appliedKey
	audit   []auditLine
}

// counters are the columns of table state.
type counters struct {
	revision ids.Revision
	audit    uint64 // the last record's number
	keys     int64  // the last key's number
}

type appliedKey struct {
	key string
	rev ids.Revision
}

type auditLine struct {
	record string
	rev    ids.Revision
}

var _ plan.View = (*board)(nil)

// Row implements plan.View. The group's rows have all been read, so a row that
// is not here does not exist.
func (b *board) Row(key geoconfig.RowKey) ([]byte, bool, error) {
	body := b.rows[key]
	return body, body != nil, nil
}

// Referrers implements plan.View: what was stored, and what the calls before
// this one made of it.
func (b *board) Referrers(key geoconfig.RowKey) ([]geoconfig.RowKey, error) {
	var out []geoconfig.RowKey
	for _, from := range b.naming[key] {
		if _, changed := b.changed[from]; !changed {
			out = append(out, from)
		}
	}
	for from := range b.changed {
		refs, err := referencesOf(from, b.rows[from])
		if err != nil {
			return nil, err
		}
		if slices.Contains(refs, key) {
			out = append(out, from)
		}
	}
	return out, nil
}

// Records implements plan.View: what was stored, and what the calls before this
// one made of it.
func (b *board) Records(kind string) (int, error) {
	n := b.records[kind]
	for key := range b.changed {
		if plan.RecordKeyOf(key).Kind != kind {
			continue
		}
		switch was, is := b.stored[key], b.rows[key] != nil; {
		case is && !was:
			n++
		case was && !is:
			n--
		}
	}
	return n, nil
}

// referencesOf lists what a row names; a removed one names nothing.
func referencesOf(from geoconfig.RowKey, body []byte) ([]geoconfig.RowKey, error) {
	if body == nil {
		return nil, nil
	}
	return plan.References(from.Table, body)
}

// needed collects the keys of the rows that a group reads, by table.
func needed(group []*call) map[geoconfig.Table][]geoconfig.RowKey {
	set := map[geoconfig.RowKey]bool{geoconfig.ClusterKey(): true}
	for _, c := range group {
		if c.batch == nil {
			continue
		}
		b := c.batch
		for _, s := range b.Sites {
			set[s.Key()] = true
		}
		for _, n := range b.Nodes {
			set[n.Key()], set[geoconfig.Site{Name: n.Site}.Key()] = true, true
		}
		for _, u := range b.Users {
			set[u.RowKey()] = true
		}
		for _, r := range b.Records {
			set[r.Key()] = true
		}
		for _, s := range b.Slices {
			set[geoconfig.SliceKey(s.Row.ID)] = true
			for _, m := range s.Row.Members {
				set[geoconfig.Node{ID: m.Node}.Key()] = true
			}
		}
		for _, r := range b.Remove {
			set[r.Key] = true
		}
	}
	out := make(map[geoconfig.Table][]geoconfig.RowKey)
	for key := range maps.Keys(set) {
		if canHold(key) {
			out[key.Table] = append(out[key.Table], key)
		}
	}
	return out
}

// removals collects the sites and nodes that a group removes.
func removals(group []*call) (sites, nodes []string) {
	for _, c := range group {
		if c.batch == nil {
			continue
		}
		for _, r := range c.batch.Remove {
			switch {
			case !canHold(r.Key):
			case r.Key.Table == geoconfig.SitesTable:
				sites = append(sites, r.Key.Name)
			case r.Key.Table == geoconfig.NodesTable:
				nodes = append(nodes, r.Key.Name)
			}
		}
	}
	return sites, nodes
}

// lookAt reads all that a group needs in one round trip.
func lookAt(ctx context.Context, tx pgx.Tx, group []*call) (*board, error) {
	b := &board{
		keys: make(map[string]ids.Revision), rows: make(map[geoconfig.RowKey][]byte),
		naming: make(map[geoconfig.RowKey][]geoconfig.RowKey), changed: make(map[geoconfig.RowKey]ids.Revision),
		stored: make(map[geoconfig.RowKey]bool), records: make(map[string]int),
	}
	var batch pgx.Batch
	batch.Queue("SELECT revision, audit, keys, archive_lines FROM state WHERE one = 1 FOR UPDATE").QueryRow(func(row pgx.Row) error {
		var lines int64
		if err := row.Scan(&b.was.revision, &b.was.audit, &b.was.keys, &lines); err != nil {
			return err
		}
		return checkLoaded("cockroach.Apply", lines)
	})
	b.queueKeys(&batch, group)
	for table, keys := range needed(group) {
		r, ok := relationOf(table)
		if !ok {
			continue // plan refuses such a batch
		}
		batch.Queue(r.load, keyArray(table, keys)).Query(func(rows pgx.Rows) error {
			var name string
			var body []byte
			_, err := pgx.ForEachRow(rows, []any{&name, &body}, func() error {
				key := geoconfig.RowKey{Table: table, Name: name}
				b.rows[key], b.stored[key] = slices.Clone(body), true
				return nil
			})
			return err
		})
	}
	b.queueNaming(&batch, group)
	b.queueCounts(&batch, group)
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return nil, fmt.Errorf("reading the rows: %w", err)
	}
	b.now = b.was
	return b, nil
}

func (b *board) queueKeys(batch *pgx.Batch, group []*call) {
	keys := make([][]byte, len(group))
	for i, c := range group {
		keys[i] = []byte(c.key)
	}
	batch.Queue("SELECT key, revision FROM batches WHERE key = ANY($1::BYTEA[])", keys).Query(func(rows pgx.Rows) error {
		var key []byte
		var rev ids.Revision
		_, err := pgx.ForEachRow(rows, []any{&key, &rev}, func() error {
			b.keys[string(key)] = rev
			return nil
		})
		return err
	})
}

func (b *board) queueNaming(batch *pgx.Batch, group []*call) {
	sites, nodes := removals(group)
	if len(sites) > 0 {
		batch.Queue("SELECT node, site FROM node_sites WHERE site = ANY($1::TEXT[])", sites).Query(func(rows pgx.Rows) error {
			var node, site string
			_, err := pgx.ForEachRow(rows, []any{&node, &site}, func() error {
				to := geoconfig.RowKey{Table: geoconfig.SitesTable, Name: site}
				b.naming[to] = append(b.naming[to], geoconfig.RowKey{Table: geoconfig.NodesTable, Name: node})
				return nil
			})
			return err
		})
	}
	if len(nodes) > 0 {
		batch.Queue("SELECT slice, node FROM slice_members WHERE node = ANY($1::TEXT[])", nodes).Query(func(rows pgx.Rows) error {
			var slice int64
			var node string
			_, err := pgx.ForEachRow(rows, []any{&slice, &node}, func() error {
				to := geoconfig.RowKey{Table: geoconfig.NodesTable, Name: node}
				b.naming[to] = append(b.naming[to], sliceKey(slice))
				return nil
			})
			return err
		})
	}
}
