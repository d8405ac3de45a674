package cockroach

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/cockroach/database"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/plan"
)

// maxGroupBytes ends a group whose rows have more JSON; the rest goes into the
// next transaction.
const maxGroupBytes = geoconfig.MaxBatchBytes

// transact is one attempt at a group: read, plan call by call, write, commit. It
// answers the first calls of the group, as many as fit, and returns the store's
// revision after them.
func (s *Store) transact(ctx context.Context, group []*call) ([]answer, ids.Revision, error) {
	tx, err := s.db.Begin(ctx, "state")
	if err != nil {
		return nil, 0, err
	}
	defer database.Rollback(ctx, tx)
	b, err := lookAt(ctx, tx, group)
	if err != nil {
		return nil, 0, err
	}
	answers := b.planAll(group)
	if b.now == b.was {
		return answers, b.was.revision, nil // all were refused, or known
	}
	if err := b.save(ctx, tx); err != nil {
		return nil, 0, err
	}
	if err := tx.Commit(ctx); err != nil {
		return nil, 0, fmt.Errorf("committing: %w", err)
	}
	return answers, b.now.revision, nil
}

// planAll plans one call after the other, each on what those before it leave.
func (b *board) planAll(group []*call) []answer {
	var answers []answer
	for i, c := range group {
		if i > 0 && b.bytes > maxGroupBytes {
			break
		}
		answers = append(answers, b.plan(c))
	}
	return answers
}

func (b *board) plan(c *call) answer {
	rev, known := b.keys[c.key]
	switch {
	case known && rev == 0 && c.batch != nil:
		return answer{err: fault.E(fault.Expired, c.op, c.key, "the batch was settled as not applied")}
	case known:
		return answer{rev: rev}
	case c.batch == nil:
		b.remember(c.key, 0)
		return answer{}
	}
	return b.planBatch(c)
}

// planBatch changes the board only if the whole batch may run.
func (b *board) planBatch(c *call) answer {
	rev := b.now.revision + 1
	writes, err := plan.Batch(b, *c.batch, rev)
	if err != nil {
		return answer{err: err}
	}
	var lines []auditLine
	for _, a := range c.batch.Audit {
		record, err := json.Marshal(a)
		if err != nil {
			return answer{err: fault.Wrap(fault.Invalid, c.op, "audit", err)}
		}
		lines = append(lines, auditLine{string(record), rev})
		b.bytes += len(record)
	}
	for _, w := range writes {
		b.rows[w.Key], b.changed[w.Key] = w.Body, rev
		b.bytes += len(w.Body)
	}
	b.audit = append(b.audit, lines...)
	b.now.audit += uint64(len(lines))
	b.now.revision = rev
	b.remember(c.key, rev)
	return answer{rev: rev}
}

func (b *board) remember(key string, rev ids.Revision) {
	b.keys[key] = rev
	b.newKeys = append(b.newKeys, appliedKey{key, rev})
	b.now.keys++
}

// save writes all that the group changed in one round trip.
func (b *board) save(ctx context.Context, tx pgx.Tx) error {
	var batch pgx.Batch
	batch.Queue("UPDATE state SET revision = $1, audit = $2, keys = $3 WHERE one = 1 AND revision = $4 AND audit = $5 AND keys = $6",
		b.now.revision, b.now.audit, b.now.keys, b.was.revision, b.was.audit, b.was.keys).Exec(changes(1))
	b.queueRows(&batch)
	if err := b.queueReferences(&batch); err != nil {
		return err
	}
	b.queueAudit(&batch)
	b.queueNewKeys(&batch)
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return fmt.Errorf("writing the rows: %w", err)
	}
	return nil
}

// queueRows stores the changed rows, table by table.
func (b *board) queueRows(batch *pgx.Batch) {
	for _, r := range relations() {
		var keys, gone []geoconfig.RowKey
		var revs []int64
		var bodies []*string // nil: removed
		for key, rev := range b.changed {
			if key.Table != r.table {
				continue
			}
			if r.remove != "" && b.rows[key] == nil {
				gone = append(gone, key)
				continue
			}
			keys, revs, bodies = append(keys, key), append(revs, int64(rev)), append(bodies, text(b.rows[key]))
		}
		if len(keys) > 0 {
			batch.Queue(r.store, keyArray(r.table, keys), revs, bodies).Exec(changes(len(keys)))
		}
		if len(gone) > 0 {
			batch.Queue(r.remove, keyArray(r.table, gone)) // one that the group added itself was never stored
		}
	}
}

func text(body []byte) *string {
	if body == nil {
		return nil
	}
	s := string(body)
	return &s
}

// queueReferences replaces what the changed nodes and slices name.
func (b *board) queueReferences(batch *pgx.Batch) error {
	var nodes, at, sites, members []string
	var swapped, of []int64
	for from := range b.changed {
		refs, err := referencesOf(from, b.rows[from])
		if err != nil {
			return err
		}
		switch from.Table {
		case geoconfig.NodesTable:
			nodes = append(nodes, from.Name)
			for _, to := range refs {
				at, sites = append(at, from.Name), append(sites, to.Name)
			}
		case geoconfig.SlicesTable:
			id := int64(plan.SliceID(from))
			swapped = append(swapped, id)
			for _, to := range refs {
				of, members = append(of, id), append(members, to.Name)
			}
		}
	}
	if len(nodes) > 0 {
		batch.Queue("DELETE FROM node_sites WHERE node = ANY($1::TEXT[])", nodes)
		batch.Queue("INSERT INTO node_sites (node, site) SELECT n, s FROM unnest($1::TEXT[], $2::TEXT[]) AS new (n, s)", at, sites).Exec(changes(len(at)))
	}
	if len(swapped) > 0 {
		batch.Queue("DELETE FROM slice_members WHERE slice = ANY($1::INT8[])", swapped)
		batch.Queue("INSERT INTO slice_members (slice, node) SELECT s, n FROM unnest($1::INT8[], $2::TEXT[]) AS new (s, n)", of, members).Exec(changes(len(of)))
	}
	return nil
}

func (b *board) queueAudit(batch *pgx.Batch) {
	var numbers, revs []int64
	var records []string
	for i, a := range b.audit {
		numbers, revs, records = append(numbers, int64(b.was.audit)+int64(i)+1), append(revs, int64(a.rev)), append(records, a.record)
	}
	queueRecords(batch, numbers, revs, records)
}

func queueRecords(batch *pgx.Batch, numbers, revs []int64, records []string) {
	if len(numbers) > 0 {
		batch.Queue("INSERT INTO audit (number, revision, record) SELECT n, r, a FROM unnest($1::INT8[], $2::INT8[], $3::TEXT[]) AS new (n, r, a)",
			numbers, revs, records).Exec(changes(len(numbers)))
	}
}

// queueNewKeys stores the group's keys, and forgets as many of the oldest as
// there are beyond KeptKeys. Each group forgets what it displaces, so the range
// of a deletion has just been filled and is never searched again.
func (b *board) queueNewKeys(batch *pgx.Batch) {
	var numbers, revs []int64
	var keys [][]byte
	for i, k := range b.newKeys {
		numbers, revs, keys = append(numbers, b.was.keys+int64(i)+1), append(revs, int64(k.rev)), append(keys, []byte(k.key))
	}
	batch.Queue("INSERT INTO batches (number, key, revision) SELECT n, k, r FROM unnest($1::INT8[], $2::BYTEA[], $3::INT8[]) AS new (n, k, r)",
		numbers, keys, revs).Exec(changes(len(numbers)))
	from, to := b.was.keys-geoconfig.KeptKeys, b.was.keys+int64(len(b.newKeys))-geoconfig.KeptKeys
	batch.Queue("DELETE FROM batches WHERE number > $1 AND number <= $2", from, to)
}
