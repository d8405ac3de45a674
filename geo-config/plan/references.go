package plan

import (
	"encoding/json"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
)

// references checks, as things stand after the batch, that nodes stand at
// sites that exist, that members are nodes that exist, and that nothing refers
// to a removed row.
func (p *planner) references(b geoconfig.Batch) error {
	for _, n := range b.Nodes {
		if err := p.needs(n.Key(), geoconfig.Site{Name: n.Site}.Key()); err != nil {
			return err
		}
	}
	for _, s := range b.Slices {
		for _, m := range s.Row.Members {
			if err := p.needs(geoconfig.SliceKey(s.Row.ID), geoconfig.Node{ID: m.Node}.Key()); err != nil {
				return err
			}
		}
	}
	for _, r := range b.Remove {
		referrers, err := p.view.Referrers(r.Key)
		if err != nil {
			return err
		}
		for _, from := range referrers {
			still, err := p.refers(from, r.Key)
			if err != nil {
				return err
			}
			if still {
				return fault.Errorf(fault.NotEmpty, op, r.Key.String(), "%s still refers to it", from)
			}
		}
	}
	return nil
}

func (p *planner) needs(from, to geoconfig.RowKey) error {
	if i, ok := p.at[to]; ok {
		if p.writes[i].Body != nil {
			return nil
		}
		return fault.Errorf(fault.NotEmpty, op, to.String(), "%s still refers to it", from)
	}
	_, ok, err := p.view.Row(to)
	if err == nil && !ok {
		err = invalid(from, "%s does not exist", to)
	}
	return err
}

// refers tells whether a row that referred to another one before the batch
// does so after it.
func (p *planner) refers(from, to geoconfig.RowKey) (bool, error) {
	i, ok := p.at[from]
	if !ok {
		return true, nil
	}
	if p.writes[i].Body == nil {
		return false, nil
	}
	refs, err := References(from.Table, p.writes[i].Body)
	for _, ref := range refs {
		if ref == to {
			return true, nil
		}
	}
	return false, err
}

// References lists the rows that a row of this table names.
func References(t geoconfig.Table, body []byte) ([]geoconfig.RowKey, error) {
	var refs []geoconfig.RowKey
	var err error
	switch t {
	case geoconfig.NodesTable:
		var n geoconfig.Node
		err = json.Unmarshal(body, &n)
		refs = append(refs, geoconfig.Site{Name: n.Site}.Key())
	case geoconfig.SlicesTable:
		var s geoconfig.SliceRow
		err = json.Unmarshal(body, &s)
		for _, m := range s.Members {
			refs = append(refs, geoconfig.Node{ID: m.Node}.Key())
		}
	}
	return refs, fault.Wrap(fault.Corrupt, op, t.String(), err)
}
