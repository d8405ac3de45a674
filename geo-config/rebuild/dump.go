package rebuild

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/archive"
	"cartwheel.dev/geo-config/ids"
)

var _ archive.Source = (*Plan)(nil)

// rowsOfRevision is how many rows get one revision, which a follower gets at once.
const rowsOfRevision = 40

// Dump implements archive.Source. Every row gets a revision above all that were
// seen, so that each node takes it in, however far it had followed the lost store.
func (p *Plan) Dump(_ context.Context, start func(archive.Header) error, line func(archive.Line) error) error {
	rows, err := p.rows()
	if err != nil {
		return err
	}
	last := ids.Revision(0)
	if len(rows) > 0 {
		last = rows[len(rows)-1].Revision
	}
	audit := p.audit(last)
	if err := start(archive.Header{Store: "rebuild", Cluster: p.Cluster.ID, Revision: last, Audit: uint64(len(audit))}); err != nil {
		return err
	}
	for i := range rows {
		if err := line(archive.Line{Row: &rows[i]}); err != nil {
			return err
		}
	}
	for i := range audit {
		if err := line(archive.Line{Audit: &audit[i]}); err != nil {
			return err
		}
	}
	return nil
}

// rows returns all rows, encoded, in the order of tables and with rising revisions.
func (p *Plan) rows() ([]archive.Row, error) {
	var out []archive.Row
	var failed error
	add := func(key geoconfig.RowKey, row func(ids.Revision) any) {
		rev := p.Seen + RevisionLeap + ids.Revision(len(out)/rowsOfRevision)
		body, err := json.Marshal(row(rev))
		if err != nil {
			failed = fmt.Errorf("encoding %s: %w", key, err)
		}
		out = append(out, archive.Row{Table: key.Table.String(), Key: key.Name, Revision: rev, Body: body})
	}
	add(geoconfig.ClusterKey(), func(r ids.Revision) any { c := p.Cluster; c.Revision = r; return c })
	for _, s := range p.Sites {
		add(s.Key(), func(r ids.Revision) any { s.Revision = r; return s })
	}
	for _, n := range p.Nodes {
		add(n.Key(), func(r ids.Revision) any { n.Revision = r; return n })
	}
	for i := range p.Slices {
		row := p.Slices[i].Row
		add(geoconfig.SliceKey(row.ID), func(r ids.Revision) any { row.Revision = r; return row })
	}
	for _, u := range p.Users {
		add(u.RowKey(), func(r ids.Revision) any { u.Revision = r; return u })
	}
	for _, r := range p.Records {
		add(r.Key(), func(rev ids.Revision) any { r.Revision = rev; return r })
	}
	return out, failed
}

// audit returns the first records of the new store's log. The old log is lost.
func (p *Plan) audit(rev ids.Revision) []geoconfig.AuditRecord {
	var out []geoconfig.AuditRecord
	add := func(action string, subject geoconfig.RowKey, detail string) {
		out = append(out, geoconfig.AuditRecord{Number: uint64(len(out) + 1), AtNS: p.options.At.UnixNano(), Who: p.options.Who,
			Action: action, Subject: subject.String(), Detail: detail, Revision: rev})
	}
	add("geo-config.rebuild", geoconfig.ClusterKey(), fmt.Sprintf("generation %d, from what %d nodes remember; %d did not answer",
		p.Cluster.Generation, len(p.Nodes)-len(p.Silent), len(p.Silent)))
	for _, s := range p.Slices {
		if s.Verdict == Lossy {
			add("slice.accept-loss", geoconfig.SliceKey(s.Row.ID), "without "+Names(s.Silent))
		}
	}
	return out
}

// Names lists nodes for people, by the ends of their IDs.
func Names(nodes []ids.Node) string {
	var out []string
	for _, n := range nodes {
		out = append(out, n.Short())
	}
	return strings.Join(out, ", ")
}
