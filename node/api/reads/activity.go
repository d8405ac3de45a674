package reads

import (
	"context"
	"fmt"
	"time"

	"cartwheel.dev/node/api/auditlog"
	"cartwheel.dev/node/api/gather"
	"cartwheel.dev/node/api/view"
)

type activityInput struct {
	Limit   int       `query:"limit" minimum:"1" maximum:"500" default:"50"`
	Before  uint64    `query:"cursor" doc:"next of the page before, with the same filters: only older records."`
	Who     string    `query:"who" maxLength:"128" doc:"Only records of this account or node."`
	Action  string    `query:"action" maxLength:"64" doc:"Only records whose action begins with it."`
	Subject string    `query:"subject" maxLength:"256" doc:"Only records about it: all of a subject, its kind, or its name. Of sites/oslo these are sites/oslo, sites and oslo."`
	Text    string    `query:"q" maxLength:"128" doc:"Only records with this text in any of their words; capital letters do not matter."`
	From    time.Time `query:"from" doc:"Only records of this time and later."`
	To      time.Time `query:"to" doc:"Only records before this time."`
}

// ListActivity searches the audit log of the store, the newest records first. One
// request looks at a bounded part of it, and its cursor goes on behind that. While
// the store is away, it searches the newest records that it read before, and says
// how old they are.
func (s *Reads) ListActivity(ctx context.Context, in *activityInput) (*view.Answer[view.ActivityList], error) {
	q := auditlog.Query{Before: in.Before, Who: in.Who, Action: in.Action, Subject: in.Subject, Text: in.Text, From: in.From, To: in.To}
	if err := q.Check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, gather.Limit)
	defer cancel()
	f := s.Fresh()
	found, err := s.activity.Search(ctx, q, in.Limit)
	if err != nil {
		return nil, err
	}
	if !found.KnownAt.IsZero() {
		f.AsOfAt, f.GeoConfig.Reachable = found.KnownAt, false
	}
	body := view.ActivityList{Items: []view.Activity{}, Revision: f.GeoConfig.Revision, Freshness: f}
	for _, r := range found.Records {
		body.Items = append(body.Items, view.Activity{Number: r.Number, RecordedAt: time.Unix(0, r.AtNS).UTC(), Who: r.Who, Action: r.Action,
			Subject: r.Subject, Detail: r.Detail, Revision: r.Revision})
	}
	if found.Next > 0 {
		body.Next = fmt.Sprint(found.Next)
	}
	if found.Last.Number > 0 {
		body.SearchedToAt = new(time.Unix(0, found.Last.AtNS).UTC())
	}
	return &view.Answer[view.ActivityList]{Body: body}, nil
}
