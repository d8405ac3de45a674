package drill

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

const (
	kind = "drill" // of the records
	form = 1       // of their bodies

	// Kept is how many drills the history has: the oldest go.
	Kept = 100
	// tries bounds how often Add begins anew where others change the list.
	tries = 5
)

// IsRecord reports whether a row of geo-config is of the history.
func IsRecord(key geoconfig.RowKey) bool {
	return key.Table == geoconfig.RecordsTable && strings.HasPrefix(key.Name, kind+"/")
}

// Reader is what reading the history asks of geo-config.
type Reader interface {
	Read(context.Context, geoconfig.Query) (geoconfig.Rows, error)
}

// Store is what adding to the history asks of geo-config.
type Store interface {
	Reader
	Apply(context.Context, geoconfig.Batch) (ids.Revision, error)
}

// Read returns the history, the oldest drill first. The errors are those of the store,
// Corrupt, and NewerVersion for a record of a newer program.
func Read(ctx context.Context, s Reader) ([]Record, error) {
	rows, err := rows(ctx, s)
	if err != nil {
		return nil, err
	}
	out := make([]Record, len(rows))
	for i := range rows {
		if out[i], err = decode(&rows[i]); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(out, func(a, b Record) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// rows reads the records as they are stored, by name: an ID begins with the time.
func rows(ctx context.Context, s Reader) ([]geoconfig.Record, error) {
	var out []geoconfig.Record
	q := geoconfig.Query{Records: geoconfig.MaxRecordPage, RecordKind: kind}
	for more := true; more; {
		page, err := s.Read(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, r := range page.Records {
			out, q.RecordsAfter = append(out, r), r.Name
		}
		more = page.MoreRecords
	}
	slices.SortFunc(out, func(a, b geoconfig.Record) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func decode(r *geoconfig.Record) (Record, error) {
	const op fault.Op = "drill.decode"
	if r.Form > form {
		return Record{}, fault.Errorf(fault.NewerVersion, op, r.Key().String(), "is of form %d, and this program knows %d: install the newer program", r.Form, form)
	}
	var out Record
	if err := json.Unmarshal(r.Body, &out); err != nil || out.ID != r.Name {
		return Record{}, fault.E(fault.Corrupt, op, r.Key().String(), "the record of a drill is malformed")
	}
	return out, nil
}

// Add adds a drill to the history, with a record in the audit log, and takes the oldest
// beyond Kept away. Key names a batch of some kind. Adding the same drill again changes
// nothing. Errors: Invalid, and those of the store.
func Add(ctx context.Context, s Store, key func(kind string) string, r Record) error {
	const op fault.Op = "drill.Add"
	body, err := json.Marshal(r)
	if err != nil {
		return fault.Wrap(fault.Invalid, op, r.ID, err)
	}
	for range tries {
		old, readErr := rows(ctx, s)
		if readErr != nil {
			return readErr
		}
		if slices.ContainsFunc(old, func(o geoconfig.Record) bool { return o.Name == r.ID }) {
			return nil
		}
		one := geoconfig.Record{Kind: kind, Name: r.ID, Form: form, Body: body}
		b := geoconfig.Batch{Key: key("drill"), Records: []geoconfig.Record{one}, Audit: []geoconfig.AuditRecord{{
			AtNS: r.AtNS + r.LastedMS*int64(time.Millisecond), Who: r.By, Action: "drill.end", Subject: one.Key().String(), Detail: r.text()}}}
		for i := range old[:max(len(old)+1-Kept, 0)] {
			b.Remove = append(b.Remove, geoconfig.Removal{Key: old[i].Key(), Revision: old[i].Revision})
		}
		if _, err = s.Apply(ctx, b); !fault.Is(err, fault.Conflict) {
			return err
		}
	}
	return err
}

// text sums a drill up in a line.
func (r *Record) text() string {
	return fmt.Sprintf("%s: ended by %s after %d ms, writes paused for %d ms, %d of %d lost", r.Kind, r.Stopped, r.LastedMS, r.WritePauseMS, r.Lost, r.Acknowledged)
}
