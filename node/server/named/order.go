package named

import (
	"context"
	"fmt"
	"slices"
	"strings"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// Row names the row of a snapshot or a schedule in geo-config: both have one name between
// them.
func Row(name string) geoconfig.RowKey { return geoconfig.RecordKey{Kind: kind, Name: name}.Row() }

// Revision is that of the snapshot's row, as the list was read.
func (s Snapshot) Revision() ids.Revision { return s.revision }

// Revision is that of the schedule's row, as the list was read.
func (s Schedule) Revision() ids.Revision { return s.revision }

// Snapshots is how many snapshots of the schedule there are at once, at most.
func (s Schedule) Snapshots() int { return s.snapshots() }

// Refresh reads the list anew, so that it has whatever was made before the call. Errors:
// those of geo-config; the list is then as it was.
func (l *List) Refresh(ctx context.Context) error { return l.refresh(ctx) }

// Order says how a request orders a change, beside who does. The context of the change
// carries it.
type Order struct {
	// Key names the change: repeated with the same key, it does nothing more.
	Key string
	// From is the address that it comes from, for the audit log; empty: it is not told.
	From string
}

// The actions by which the audit log knows the changes.
const (
	AuditCreate     = "snapshot.create"
	AuditDelete     = "snapshot.delete"
	AuditSchedule   = "schedule.create"
	AuditUnschedule = "schedule.delete"
)

// KeyOf is the key of the batch that an action of the order writes. One order may need two:
// a snapshot that is made too late is deleted again.
func (o Order) KeyOf(action string) string { return o.Key + "-" + action }

type orderKey struct{}

// With returns a context under which a List makes its changes as the order has it.
func With(ctx context.Context, o Order) context.Context {
	return context.WithValue(ctx, orderKey{}, o)
}

// ordered is a Store that applies recorded batches as the order of their context has it.
type ordered struct{ Store }

// Apply gives the batch the order's key, and its records the order's address.
func (s ordered) Apply(ctx context.Context, b geoconfig.Batch) (ids.Revision, error) {
	o, ok := ctx.Value(orderKey{}).(Order)
	if !ok || len(b.Audit) == 0 {
		return s.Store.Apply(ctx, b)
	}
	b.Key = o.KeyOf(b.Audit[0].Action)
	if o.From != "" {
		b.Audit = slices.Clone(b.Audit)
		for i := range b.Audit {
			b.Audit[i].Detail = strings.TrimSpace(fmt.Sprintf("%s (from %s)", b.Audit[i].Detail, o.From))
		}
	}
	return s.Store.Apply(ctx, b)
}
