package plan

import (
	"bytes"
	"encoding/json"
	"strings"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
)

// Bounds of a record's names. Sums in hexadecimal and peer IDs fit.
const (
	recordMarks        = "_.@-"
	maxRecordKindBytes = 32
	maxRecordNameBytes = 128
	maxRecordKeys      = geoconfig.MaxRecordPage
)

// checkRecord checks a record by itself.
func checkRecord(r geoconfig.Record) error {
	switch {
	case !isRecordKind(r.Kind):
		return invalid(r.Key(), "%q is no kind of records: lower-case letters, digits and -, %d at most", r.Kind, maxRecordKindBytes)
	case !sane(r.Name, recordMarks, maxRecordNameBytes):
		return invalid(r.Key(), "%q is no record's name: letters, digits, and ._@- after the first, %d at most", r.Name, maxRecordNameBytes)
	case r.Form < 1:
		return invalid(r.Key(), "form %d is no version of a body; the first is 1", r.Form)
	case r.ExpiresNS < 0:
		return invalid(r.Key(), "a record cannot expire before 1970")
	case len(r.Body) > geoconfig.MaxRecordBytes:
		return fault.Errorf(fault.TooLarge, op, r.Key().String(), "the body takes %d bytes, more than %d", len(r.Body), geoconfig.MaxRecordBytes)
	case !json.Valid(r.Body) || bytes.Equal(bytes.TrimSpace(r.Body), []byte("null")): // null is how no body is sent
		return invalid(r.Key(), "the body is no JSON, or null")
	}
	return nil
}

func isRecordKind(kind string) bool {
	return sane(kind, "-", maxRecordKindBytes) && strings.ToLower(kind) == kind
}

// boundRecords keeps the number of records of each kind within its limit. Only a
// batch that adds records pays for the counting.
func (p *planner) boundRecords(b geoconfig.Batch) error {
	added := map[string]int{}
	for _, r := range b.Records {
		if r.Revision == 0 {
			added[r.Kind]++
		}
	}
	for _, r := range b.Remove {
		kind := RecordKeyOf(r.Key).Kind
		if added[kind] > 0 {
			added[kind]--
		}
	}
	for kind, n := range added {
		if n == 0 {
			continue
		}
		have, err := p.view.Records(kind)
		if err != nil {
			return err
		}
		if have+n > geoconfig.MaxRecords {
			return fault.Errorf(fault.TooLarge, op, geoconfig.RecordsTable.String()+"/"+kind,
				"the store holds %d records of this kind, and %d at most: remove some first", have, geoconfig.MaxRecords)
		}
	}
	return nil
}

// RecordKeyOf returns the record that a key of the records' table names; empty
// for none.
func RecordKeyOf(key geoconfig.RowKey) geoconfig.RecordKey {
	if key.Table != geoconfig.RecordsTable {
		return geoconfig.RecordKey{}
	}
	kind, name, _ := strings.Cut(key.Name, "/")
	return geoconfig.RecordKey{Kind: kind, Name: name}
}

// RecordRange returns the names between which the rows of a kind's records lie,
// both excluded; they are compared byte by byte.
func RecordRange(kind, after string) (above, below string) { return kind + "/" + after, kind + "0" }

// checkRecordQuery bounds what a query asks of the records.
func checkRecordQuery(q geoconfig.Query) error {
	const op fault.Op = "plan.checkRecordQuery"
	switch {
	case len(q.RecordKeys) > maxRecordKeys || q.Records > geoconfig.MaxRecordPage:
		return fault.Errorf(fault.TooLarge, op, "", "a query may ask for %d records at most", geoconfig.MaxRecordPage)
	case q.Records < 0:
		return fault.E(fault.Invalid, op, "", "a query cannot ask for fewer than no records")
	case q.Records > 0 && !isRecordKind(q.RecordKind):
		return fault.Errorf(fault.Invalid, op, "", "%q is no kind of records", q.RecordKind)
	}
	return nil
}
