// Package changes makes the changes of the configuration that administrators order:
// sites, nodes and users come, change and go. The command line and the API have
// them made here, so that both refuse the same things in the same words. Each
// change is one batch with its record in the audit log. It keeps nothing, and all
// of it may be called from anywhere.
package changes

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// Order says who orders a change, and how.
type Order struct {
	// Who is the account, for the audit log, and From the address that it ordered
	// from; empty: it is not told.
	Who, From string
	// Key names the change: repeating it with the same key does nothing more.
	// Empty: it is made up.
	Key string
	// Match is the revision that the row must have; 0: any.
	Match ids.Revision
	// At is when, for the audit log.
	At time.Time
}

// Apply applies a batch, with a record of who ordered it, from where and when. It
// returns the revision of the rows: that of the first time where the batch was
// applied before.
func (o Order) Apply(ctx context.Context, store geoconfig.Store, b geoconfig.Batch, action string, subject geoconfig.RowKey, detail string) (ids.Revision, error) {
	b.Audit = append(b.Audit, o.Record(action, subject, detail))
	return o.ApplyRecorded(ctx, store, b)
}

// Record is what the audit log says of a change that is ordered.
func (o Order) Record(action string, subject geoconfig.RowKey, detail string) geoconfig.AuditRecord {
	if o.From != "" {
		detail = strings.TrimSpace(fmt.Sprintf("%s (from %s)", detail, o.From))
	}
	return geoconfig.AuditRecord{AtNS: o.At.UnixNano(), Who: o.Who, Action: action, Subject: subject.String(), Detail: detail}
}

// ApplyRecorded is Apply for a batch that has its records already.
func (o Order) ApplyRecorded(ctx context.Context, store geoconfig.Store, b geoconfig.Batch) (ids.Revision, error) {
	b.Key = o.Key
	if b.Key == "" {
		var key [16]byte
		_, _ = rand.Read(key[:]) // never fails
		b.Key = "command-" + hex.EncodeToString(key[:])
	}
	return store.Apply(ctx, b)
}

// apply is Apply for whoever needs no revision.
func (o Order) apply(ctx context.Context, store geoconfig.Store, b geoconfig.Batch, action string, subject geoconfig.RowKey, detail string) error {
	_, err := o.Apply(ctx, store, b, action, subject, detail)
	return err
}

// again answers the repetition of a removal: nil where it was made under the order's
// key, and missing where the row never was there.
func (o Order) again(ctx context.Context, store geoconfig.Store, key geoconfig.RowKey, missing error) error {
	if o.Key == "" || !fault.Is(missing, fault.NotFound) {
		return missing
	}
	// No row is there to match revision 1: a batch that is not known is refused.
	_, err := store.Apply(ctx, geoconfig.Batch{Key: o.Key, Remove: []geoconfig.Removal{{Key: key, Revision: 1}}})
	if err == nil || !fault.Is(err, fault.Conflict) {
		return err
	}
	return missing
}

// match returns the revision that a row must have, which has one now.
func (o Order) match(now ids.Revision) ids.Revision {
	if o.Match != 0 {
		return o.Match
	}
	return now
}

// AddSite adds a site. Errors: Exists, and the store's.
func AddSite(ctx context.Context, store geoconfig.Store, o Order, s geoconfig.Site) error {
	s.Revision = 0
	err := o.apply(ctx, store, geoconfig.Batch{Sites: []geoconfig.Site{s}}, "site.add", s.Key(), s.Location)
	if fault.Is(err, fault.Conflict) {
		return fault.E(fault.Exists, "changes.AddSite", string(s.Name), "is a site already; `cartwheel site set` changes it")
	}
	return err
}

// SetSite says where a site is, and returns its row. Errors: NotFound, Conflict,
// and the store's.
func SetSite(ctx context.Context, store geoconfig.Store, o Order, name ids.Site, location string) (geoconfig.Site, error) {
	s, err := site(ctx, store, name)
	if err != nil {
		return s, err
	}
	s.Location, s.Revision = location, o.match(s.Revision)
	return s, o.apply(ctx, store, geoconfig.Batch{Sites: []geoconfig.Site{s}}, "site.set", s.Key(), location)
}

// RemoveSite removes a site at which no node stands, with its budgets, and returns
// its last row.
// Errors: NotFound, NotEmpty, Conflict, and the store's.
func RemoveSite(ctx context.Context, store geoconfig.Store, o Order, name ids.Site) (geoconfig.Site, error) {
	rows, err := store.Read(ctx, geoconfig.Query{Sites: true})
	if err != nil {
		return geoconfig.Site{Name: name}, err
	}
	s, err := siteIn(rows.Sites, name)
	if err != nil {
		s.Name = name
		return s, o.again(ctx, store, s.Key(), err)
	}
	_, err = o.Apply(ctx, store, geoconfig.Batch{Sites: withoutSite(rows.Sites, name),
		Remove: []geoconfig.Removal{{Key: s.Key(), Revision: o.match(s.Revision)}}}, "site.remove", s.Key(), "")
	if fault.Is(err, fault.NotEmpty) {
		return s, fault.E(fault.NotEmpty, "changes.RemoveSite", string(name), "has nodes: remove them first")
	}
	return s, err
}

func (o Order) remove(ctx context.Context, store geoconfig.Store, key geoconfig.RowKey, now ids.Revision, action, detail string) error {
	return o.apply(ctx, store, geoconfig.Batch{Remove: []geoconfig.Removal{{Key: key, Revision: o.match(now)}}}, action, key, detail)
}

func site(ctx context.Context, store geoconfig.Store, name ids.Site) (geoconfig.Site, error) {
	rows, err := store.Read(ctx, geoconfig.Query{Sites: true})
	if err != nil {
		return geoconfig.Site{}, err
	}
	return siteIn(rows.Sites, name)
}

func siteIn(sites []geoconfig.Site, name ids.Site) (geoconfig.Site, error) {
	for _, s := range sites {
		if s.Name == name {
			return s, nil
		}
	}
	return geoconfig.Site{}, fault.E(fault.NotFound, "changes.site", string(name), "is no site; `cartwheel site ls` lists them")
}

// RemoveNode removes the row of a node that is a member of no slice. What the node
// stores stays on its disk. A row without a revision is one that is not there.
// Errors: NotFound, NotEmpty, Conflict, and the store's.
func RemoveNode(ctx context.Context, store geoconfig.Store, o Order, n geoconfig.Node) error {
	if n.Revision == 0 {
		return o.again(ctx, store, n.Key(), fault.E(fault.NotFound, "changes.RemoveNode", string(n.ID), "is no node of the roster"))
	}
	err := o.remove(ctx, store, n.Key(), n.Revision, "node.remove", "at "+string(n.Site))
	if fault.Is(err, fault.NotEmpty) {
		return fault.E(fault.NotEmpty, "changes.RemoveNode", string(n.ID), "is a member of slices: `cartwheel node drain` moves them away; if it is lost, wait until other nodes have taken its place (failed_after)")
	}
	return err
}
