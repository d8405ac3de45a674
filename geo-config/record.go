package geoconfig

import (
	"encoding/json"

	"cartwheel.dev/geo-config/ids"
)

// Limits of records. A call beyond one is refused with kind TooLarge.
const (
	// MaxRecordBytes bounds a record's body.
	MaxRecordBytes = 16 << 10
	// MaxRecords is how many records of one kind a store holds.
	MaxRecords = 10_000
	// MaxRecordPage is how many records one answer of Read carries, so that it
	// fits into a frame.
	MaxRecordPage = 100
)

// Record is a small row of the control plane: an account, a session, a draft of
// a plan. The store knows nothing of its body. Only Read returns records; Follow
// does not, and a removed record leaves nothing behind.
type Record struct {
	// Kind says what the record is, and so who reads it: lower-case letters,
	// digits and -, 32 at most.
	Kind string `json:"kind"`
	// Name is unique within the kind: letters, digits, and after the first also
	// ._@-, 128 at most.
	Name string `json:"name"`
	// Form is the version of the body, from 1. A reader refuses a higher one.
	Form int `json:"form"`
	// Body is JSON but not null, of MaxRecordBytes at most.
	Body json.RawMessage `json:"body"`
	// ExpiresNS is until when the record counts, in nanoseconds since 1970; 0: for
	// ever. The store has no clock: readers compare, and remove what has expired.
	ExpiresNS int64 `json:"expires_ns,omitempty"`
	// Revision is when the row last changed; the store sets it.
	Revision ids.Revision `json:"revision"`
}

// RecordKey names one record.
type RecordKey struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Key names the record's row.
func (r Record) Key() RowKey { return RecordKey{r.Kind, r.Name}.Row() }

// Row names the record's row: the kind has no slash, so both can be told apart.
func (k RecordKey) Row() RowKey { return RowKey{RecordsTable, k.Kind + "/" + k.Name} }
