package reads

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/api/gather"
	"cartwheel.dev/node/api/view"
)

// storePatience bounds how long a read waits for the store where it can answer without
// it.
const storePatience = 500 * time.Millisecond

// databaseCache has what the store last said of itself.
type databaseCache struct {
	mu    sync.Mutex // guards the rest
	known geoconfig.Properties
	at    time.Time
}

// GetDatabase shows the configuration store, by its last word while it is away.
func (s *Reads) GetDatabase(ctx context.Context, _ *view.None) (*view.Answer[view.Database], error) {
	out := view.Database{Reachable: true, Revision: s.o.Directory.Revision()}
	if away := s.o.Directory.Away(); !away.IsZero() {
		out.Reachable, out.AwaySinceAt = false, &away
	}
	c := &s.database
	if out.Reachable {
		ctx, cancel := context.WithTimeout(ctx, storePatience)
		defer cancel()
		p, err := s.o.Store.Properties(ctx)
		c.mu.Lock()
		if err == nil {
			c.known, c.at = p, s.o.Wall()
		}
		c.mu.Unlock()
		out.Reachable = err == nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.at.IsZero() {
		out.Name, out.SinglePoint, out.Durable, out.AsOfAt = c.known.Name, new(c.known.SinglePoint), new(c.known.Durable), new(c.at)
	}
	return &view.Answer[view.Database]{Body: out}, nil
}

// activityCache has the newest records that were read.
type activityCache struct {
	mu      sync.Mutex // guards the rest
	records []geoconfig.AuditRecord
	at      time.Time
}

type activityInput struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50"`
	Before uint64 `query:"cursor" doc:"next of the page before: only older records."`
	Who    string `query:"who" maxLength:"128" doc:"Only records of this account, of those on the page."`
	Action string `query:"action" maxLength:"64" doc:"Only records whose action begins with it, of those on the page."`
}

// ListActivity reads the audit log of the store. While that is away, it answers
// with the newest records that it read before, and says how old they are.
func (s *Reads) ListActivity(ctx context.Context, in *activityInput) (*view.Answer[view.List[view.Activity]], error) {
	f := s.Fresh()
	records, err := s.readActivity(ctx, in, &f)
	if err != nil {
		return nil, err
	}
	body := view.List[view.Activity]{Items: []view.Activity{}, Revision: f.GeoConfig.Revision, Freshness: f}
	if len(records) == in.Limit && records[len(records)-1].Number > 1 {
		body.Next = fmt.Sprint(records[len(records)-1].Number)
	}
	if len(records) > 0 && in.Before == 0 {
		body.Total = int(records[0].Number)
	} else if in.Before > 0 {
		body.Total = int(in.Before) - 1
	}
	for _, r := range records {
		if in.Who != "" && r.Who != in.Who || !strings.HasPrefix(r.Action, in.Action) {
			continue
		}
		body.Items = append(body.Items, view.Activity{Number: r.Number, RecordedAt: time.Unix(0, r.AtNS).UTC(), Who: r.Who, Action: r.Action,
			Subject: r.Subject, Detail: r.Detail, Revision: r.Revision})
	}
	return &view.Answer[view.List[view.Activity]]{Body: body}, nil
}

func (s *Reads) readActivity(ctx context.Context, in *activityInput, f *view.Freshness) ([]geoconfig.AuditRecord, error) {
	c := &s.activity
	c.mu.Lock()
	limit := gather.Limit
	if in.Before == 0 && !c.at.IsZero() {
		limit = storePatience
	}
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	rows, err := s.o.Store.Read(ctx, geoconfig.Query{Audit: in.Limit, AuditBefore: in.Before})
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		if in.Before == 0 {
			c.records, c.at = rows.Audit, s.o.Wall()
		}
		return rows.Audit, nil
	}
	if in.Before != 0 || c.at.IsZero() {
		return nil, &fault.Error{Kind: fault.Unreachable, Op: "reads.readActivity", Subject: "database", Public: "the audit log cannot be read now", Cause: err}
	}
	f.AsOfAt, f.GeoConfig.Reachable = c.at, false
	return c.records[:min(in.Limit, len(c.records))], nil
}
