package survey

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/server/audit"
)

// recordTimeout bounds a write to the audit log.
const recordTimeout = 2 * time.Second

// auditSites judges what was measured, and tells of what is new.
func (s *Surveyor) auditSites(ctx context.Context) (changed bool) {
	var sights []audit.Sight
	for _, l := range s.o.Vicinity.Links() {
		row, ok := s.o.Roster.Node(l.Node)
		if ok && l.Samples > 0 {
			sights = append(sights, audit.Sight{Node: l.Node, Site: row.Site, Least: l.Least, Samples: l.Count, Age: l.Age})
		}
	}
	limits := audit.DefaultLimits()
	limits.Spread = s.o.Spread
	s.mu.Lock()
	before := s.found
	s.found = audit.Find(s.o.Self, s.o.Site, sights, limits, before)
	begun, over := audit.Changes(before, s.found)
	s.mu.Unlock()
	for _, f := range begun {
		s.o.Logger.Warn("the site audit found nodes that are not where they are said to be", slog.String("finding", f.String()))
	}
	for _, f := range over {
		s.o.Logger.Info("what the site audit found is so no more", slog.String("kind", string(f.Kind)), logattr.Peer(string(f.Other)), logattr.Site(f.OtherSite))
	}
	if len(begun)+len(over) == 0 {
		return false
	}
	s.recordAudit(ctx, begun, over)
	return true
}

// recordAudit appends to the audit log of the configuration. A failure does no
// harm: the log has a line, and status shows what is found.
func (s *Surveyor) recordAudit(ctx context.Context, begun, over []status.Finding) {
	b := geoconfig.Batch{Key: s.o.Key("audit")}
	add := func(action, detail string) {
		if len(b.Audit) < geoconfig.MaxBatchRows {
			b.Audit = append(b.Audit, geoconfig.AuditRecord{AtNS: s.o.Wall().UnixNano(), Who: string(s.o.Self), Action: action,
				Subject: geoconfig.Node{ID: s.o.Self}.Key().String(), Detail: detail})
		}
	}
	for _, f := range begun {
		add("site.astray", f.String())
	}
	for _, f := range over {
		add("site.aright", fmt.Sprintf("%s: no more of %s at %s", f.Kind, f.Other.Short(), f.OtherSite))
	}
	call, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	if _, err := s.o.Apply(call, b); err != nil && ctx.Err() == nil {
		s.o.Logger.Debug("the site audit could not be recorded", logattr.Err(err))
	}
}
