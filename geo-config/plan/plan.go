package plan

import (
	"encoding/json"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// View is what a store shows of its rows within a transaction.
type View interface {
	// Row returns the JSON of a row; ok is false if there is none or it was
	// removed.
	Row(key geoconfig.RowKey) (body []byte, ok bool, err error)
	// Referrers returns the rows that name this one: a site's nodes, the
	// slices that a node is a member of.
	Referrers(key geoconfig.RowKey) ([]geoconfig.RowKey, error)
	// Records counts the records of a kind.
	Records(kind string) (int, error)
}

// Write is one row to be written: its JSON, or nil if it is removed.
type Write struct {
	Key  geoconfig.RowKey
	Body []byte
}

// Batch returns what b writes, in b's order, if it may run: rev is the revision
// that its rows get. The errors are those of geoconfig.Store.Apply.
func Batch(v View, b geoconfig.Batch, rev ids.Revision) ([]Write, error) {
	if err := Shape(b); err != nil {
		return nil, err
	}
	p := &planner{view: v, rev: rev, at: make(map[geoconfig.RowKey]int)}
	if err := p.cluster(b.Cluster); err != nil {
		return nil, err
	}
	if err := p.puts(b); err != nil {
		return nil, err
	}
	for _, s := range b.Slices {
		if err := p.slice(s); err != nil {
			return nil, err
		}
	}
	for _, r := range b.Remove {
		if err := p.remove(r); err != nil {
			return nil, err
		}
	}
	if err := p.boundRecords(b); err != nil {
		return nil, err
	}
	if err := p.references(b); err != nil {
		return nil, err
	}
	return p.writes, nil
}

// planner gathers the writes of one batch.
type planner struct {
	view       View
	rev        ids.Revision
	generation ids.Generation
	writes     []Write
	bytes      int                      // of their bodies
	at         map[geoconfig.RowKey]int // index in writes
}

// put adds a write and bounds its size.
func (p *planner) put(key geoconfig.RowKey, row any) error {
	if _, twice := p.at[key]; twice {
		return invalid(key, "the row is in the batch twice")
	}
	var body []byte
	if row != nil {
		var err error
		if body, err = json.Marshal(row); err != nil {
			return fault.Wrap(fault.Invalid, op, key.String(), err)
		}
		if len(body) > geoconfig.MaxRowBytes {
			return fault.Errorf(fault.TooLarge, op, key.String(), "the row takes %d bytes, more than %d", len(body), geoconfig.MaxRowBytes)
		}
	}
	if p.bytes += len(body); p.bytes > geoconfig.MaxBatchBytes {
		return fault.Errorf(fault.TooLarge, op, key.String(), "the batch takes more than %d bytes: split it", geoconfig.MaxBatchBytes)
	}
	p.at[key] = len(p.writes)
	p.writes = append(p.writes, Write{key, body})
	return nil
}

// load reads a stored row into out, which stays as it is if there is none.
func (p *planner) load(key geoconfig.RowKey, out any) (bool, error) {
	body, ok, err := p.view.Row(key)
	if err != nil || !ok {
		return false, err
	}
	if err := json.Unmarshal(body, out); err != nil {
		return false, fault.Wrap(fault.Corrupt, op, key.String(), err)
	}
	return true, nil
}

func conflict(key geoconfig.RowKey, format string, args ...any) error {
	return fault.Errorf(fault.Conflict, op, key.String(), format, args...)
}

// expect compares a row's revision in the store with the one that its writer
// read.
func (p *planner) expect(key geoconfig.RowKey, want ids.Revision) error {
	var have struct {
		Revision ids.Revision `json:"revision"`
	}
	ok, err := p.load(key, &have)
	switch {
	case err != nil:
		return err
	case ok && want == 0:
		return conflict(key, "the row exists already")
	case !ok && want != 0:
		return conflict(key, "the row does not exist any more")
	case have.Revision != want:
		return conflict(key, "the row is at revision %d, not %d: read it again", have.Revision, want)
	}
	return nil
}

func (p *planner) cluster(c *geoconfig.Cluster) error {
	key := geoconfig.ClusterKey()
	var have geoconfig.Cluster
	ok, err := p.load(key, &have)
	if err != nil {
		return err
	}
	p.generation = have.Generation
	if c == nil {
		if !ok {
			return invalid(key, "the store has no cluster yet: its first batch has to bring one")
		}
		return nil
	}
	if err := checkCluster(*c); err != nil {
		return err
	}
	if ok && c.ID != have.ID {
		return fault.Errorf(fault.WrongCluster, op, key.String(), "the store is of cluster %s, not %s", have.ID, c.ID)
	}
	if err := p.expect(key, c.Revision); err != nil {
		return err
	}
	if c.Generation < have.Generation {
		return fault.Errorf(fault.WrongCluster, op, key.String(), "the generation cannot fall from %d to %d", have.Generation, c.Generation)
	}
	if c.Feature < have.Feature {
		return invalid(key, "the feature level cannot fall from %d to %d", have.Feature, c.Feature)
	}
	p.generation = c.Generation
	row := *c
	row.Revision = p.rev
	return p.put(key, row)
}

// puts swaps sites, nodes, users and records.
func (p *planner) puts(b geoconfig.Batch) error {
	for _, s := range b.Sites {
		if err := swap(p, s.Key(), s.Revision, checkSite(s), func() any { s.Revision = p.rev; return s }); err != nil {
			return err
		}
	}
	for _, n := range b.Nodes {
		if err := swap(p, n.Key(), n.Revision, checkNode(n), func() any { n.Revision = p.rev; return n }); err != nil {
			return err
		}
	}
	for _, u := range b.Users {
		if err := swap(p, u.RowKey(), u.Revision, checkUser(u), func() any { u.Revision = p.rev; return u }); err != nil {
			return err
		}
	}
	for _, r := range b.Records {
		if err := swap(p, r.Key(), r.Revision, checkRecord(r), func() any { r.Revision = p.rev; return r }); err != nil {
			return err
		}
	}
	return nil
}

func swap(p *planner, key geoconfig.RowKey, want ids.Revision, bad error, row func() any) error {
	if bad != nil {
		return bad
	}
	if err := p.expect(key, want); err != nil {
		return err
	}
	return p.put(key, row())
}

func (p *planner) slice(s geoconfig.SliceSwap) error {
	row, key := s.Row, geoconfig.SliceKey(s.Row.ID)
	if err := checkSlice(row); err != nil {
		return err
	}
	if row.Generation != 0 && row.Generation != p.generation {
		return fault.Errorf(fault.WrongCluster, op, key.String(), "the row is of generation %d, the store of %d", row.Generation, p.generation)
	}
	var have geoconfig.SliceRow
	ok, err := p.load(key, &have)
	switch {
	case err != nil:
		return err
	case ok && s.From == 0:
		return conflict(key, "the slice exists already")
	case have.Epoch != s.From:
		return conflict(key, "the row is of epoch %d, not %d: read it again", have.Epoch, s.From)
	case row.Epoch <= s.From:
		return invalid(key, "the epoch has to rise above %d, the new row has %d", s.From, row.Epoch)
	}
	if was, _ := have.Member(row.Active); ok && !s.AcceptLoss && was.State != geoconfig.Normal {
		return invalid(key, "the new active %s was no member in state N before", row.Active)
	}
	row.Generation, row.Revision = p.generation, p.rev
	return p.put(key, row)
}

func (p *planner) remove(r geoconfig.Removal) error {
	switch r.Key.Table {
	case geoconfig.SitesTable, geoconfig.NodesTable, geoconfig.UsersTable, geoconfig.RecordsTable:
	default:
		return invalid(r.Key, "rows of %v are not removed", r.Key.Table)
	}
	if r.Revision == 0 {
		return invalid(r.Key, "a removal needs the row's revision")
	}
	if err := p.expect(r.Key, r.Revision); err != nil {
		return err
	}
	return p.put(r.Key, nil)
}
