package geoconfig

import (
	"context"
	"fmt"

	"cartwheel.dev/geo-config/ids"
)

// Store holds the configuration of one cluster. All methods may be called from
// many goroutines at once; none keeps what it is given, and what it returns
// belongs to the caller. Errors are of package fault. Those that every method
// may return: Unreachable, TimedOut and Canceled (no answer: of Apply the
// outcome is then unknown, and repeating it or Settle finds it out), Closed,
// Overloaded, NoSpace, IO, Corrupt. An embedded store that met IO or Corrupt
// answers nothing else from then on; its process should end.
type Store interface {
	// Read returns the rows that q asks for, all as of one revision; rows that
	// do not exist are left out. It does not block on anything but the store.
	Read(ctx context.Context, q Query) (Rows, error)

	// Apply runs a batch as one transaction, all or nothing, and returns the
	// revision that its rows now have. A batch whose key was applied before
	// changes nothing and returns that revision again, so a call whose outcome
	// is unknown may simply be repeated. Errors: Conflict (Subject names the
	// row, as RowKey.String does; nothing was changed), Invalid (a row makes no
	// sense or names another one that is not there), NotEmpty (a removed row is
	// still referred to), WrongCluster (another cluster or generation),
	// Expired (the key was settled as not applied), TooLarge.
	Apply(ctx context.Context, b Batch) (ids.Revision, error)

	// Settle tells for good whether the batch with this key was applied, and
	// at which revision. Where it was not, it never will be: the store refuses
	// the key from now on, even if the call is still under way somewhere. The
	// last KeptKeys keys are known; an older one counts as not applied, which
	// is safe for batches that swap rows, since their rows have moved on.
	Settle(ctx context.Context, key string) (rev ids.Revision, applied bool, err error)

	// Follow waits until the configuration is past revision since, and returns
	// the rows that changed after it, the newest form of each, in the order of
	// their revisions, and in Rows.Revision where to go on. It returns about
	// limit rows at most (a batch is never cut in two; 0 means MaxBatchRows)
	// and says by Rows.More that there are others already. Following from 0
	// gives everything. Audit records and records are not among the rows; a
	// batch of only these ends the wait with no rows. It blocks until ctx ends.
	Follow(ctx context.Context, since ids.Revision, limit int) (Rows, error)

	// Properties tells what kind of store this is.
	Properties(ctx context.Context) (Properties, error)

	// Close ends every call that waits, with kind Closed, and frees what the
	// store holds. It may be called again.
	Close() error
}

// Limits of a store. A call beyond one is refused with kind TooLarge.
const (
	// MaxBatchRows is how many rows and audit records a batch may have.
	MaxBatchRows = 1000
	// MaxRowBytes bounds one row's JSON.
	MaxRowBytes = 64 << 10
	// MaxBatchBytes bounds the JSON of all rows of a batch together, so that
	// one batch always fits into one answer of Follow.
	MaxBatchBytes = 4 << 20
	// MaxNeighbours bounds each list of nodes in a node's row.
	MaxNeighbours = 256
	// MaxFirst is how many slices of one site an administrator may have repaired first.
	MaxFirst = 1000
	// KeptKeys is how many keys of batches a store remembers at least.
	KeptKeys = 100_000
)

// Properties tells stores apart, for people and for decisions.
type Properties struct {
	// Name of the implementation.
	Name string `json:"name"`
	// SinglePoint stores lose all changes while one process is away.
	SinglePoint bool `json:"single_point"`
	// Durable stores keep what they acknowledged over a loss of power.
	Durable bool `json:"durable"`
}

// Table numbers the tables. The numbers are stored and sent: never renumber.
type Table uint8

// The tables.
const (
	ClusterTable Table = 1
	SitesTable   Table = 2
	NodesTable   Table = 3
	SlicesTable  Table = 4
	UsersTable   Table = 5
	RecordsTable Table = 6
)

func (t Table) String() string {
	switch t {
	case ClusterTable:
		return "cluster"
	case SitesTable:
		return "sites"
	case NodesTable:
		return "nodes"
	case SlicesTable:
		return "slices"
	case UsersTable:
		return "users"
	case RecordsTable:
		return "records"
	}
	return fmt.Sprintf("Table(%d)", uint8(t))
}

// RowKey names a row. Slices go by their number in decimal, the only row of
// the cluster table is named "cluster".
type RowKey struct {
	Table Table  `json:"table"`
	Name  string `json:"name"`
}

// String gives the form in which errors name a row: nodes/12D3..., slices/7.
func (k RowKey) String() string { return k.Table.String() + "/" + k.Name }

// ClusterKey names the cluster's row.
func ClusterKey() RowKey { return RowKey{ClusterTable, "cluster"} }

// Key names the site's row.
func (s Site) Key() RowKey { return RowKey{SitesTable, string(s.Name)} }

// Key names the node's row.
func (n Node) Key() RowKey { return RowKey{NodesTable, string(n.ID)} }

// RowKey names the user's row; Key is the public key.
func (u User) RowKey() RowKey { return RowKey{UsersTable, string(u.Name)} }

// SliceKey names a slice's row.
func SliceKey(s ids.Slice) RowKey { return RowKey{SlicesTable, fmt.Sprint(uint32(s))} }

// Cluster is the row that says whose configuration this is.
type Cluster struct {
	ID ids.Cluster `json:"id"`
	// Generation rises when the store is rebuilt; nodes refuse a lower one.
	Generation ids.Generation `json:"generation"`
	// CreatedNS is when, in nanoseconds since 1970, by its maker's clock.
	CreatedNS int64 `json:"created_ns"`
	// Secret is what nodes seal tickets with, 32 bytes in hexadecimal. Only nodes
	// may read it. The first node makes one where there is none.
	Secret string `json:"secret,omitempty"`
	// Feature is the feature level that is switched on (package version). It never
	// falls, and a program that knows only lower ones must not act for the cluster.
	Feature  int          `json:"feature,omitempty"`
	Revision ids.Revision `json:"revision"`
}

// AuditRecord tells who changed what. Records are only ever appended.
type AuditRecord struct {
	// Number counts the records of the store from 1; the store sets it.
	Number uint64 `json:"number"`
	// AtNS is when, in nanoseconds since 1970, by the writer's clock.
	AtNS int64 `json:"at_ns"`
	// Who is a user, or a node that acted by itself.
	Who string `json:"who"`
	// Action is what was done, as noun.verb: slice.takeover, node.drain.
	Action string `json:"action"`
	// Subject is what it was done to, in the form of RowKey.String where it is
	// a row.
	Subject string `json:"subject"`
	Detail  string `json:"detail,omitempty"`
	// Revision is that of the batch; the store sets it.
	Revision ids.Revision `json:"revision"`
}

// SliceSwap replaces a slice's row.
type SliceSwap struct {
	// From is the epoch that the row must have; 0: the slice must not exist.
	// Slices are never removed and their IDs never used again. To make a slice,
	// choose an ID; on Conflict choose the next one.
	From ids.Epoch `json:"from"`
	// Row is the new row; its epoch is above From, whatever it changes. Its
	// generation is 0 or the cluster's, and the store sets it.
	Row SliceRow `json:"row"`
	// AcceptLoss allows an active that was not in state N before; an operator
	// said so.
	AcceptLoss bool `json:"accept_loss,omitempty"`
}

// Batch is one transaction. Of all rows but slices the Revision
// field of each row is the revision that it must have in the store, 0 if it
// must not exist. A row may be in a batch once. A store with no cluster row
// takes only a batch that brings one.
type Batch struct {
	// Key makes the batch idempotent: unique, 1 to 128 bytes, say random hex.
	Key     string      `json:"key"`
	Cluster *Cluster    `json:"cluster,omitempty"`
	Sites   []Site      `json:"sites,omitempty"`
	Nodes   []Node      `json:"nodes,omitempty"`
	Users   []User      `json:"users,omitempty"`
	Records []Record    `json:"records,omitempty"`
	Slices  []SliceSwap `json:"slices,omitempty"`
	// Remove takes out sites, nodes, users and records that nothing refers to: no node
	// stands at the site, the node is a member of no slice.
	Remove []Removal     `json:"remove,omitempty"`
	Audit  []AuditRecord `json:"audit,omitempty"`
}

// Removal names a row that is to go (with the revision that it must have) or
// that went (with the revision of the batch that removed it).
type Removal struct {
	Key      RowKey       `json:"key"`
	Revision ids.Revision `json:"revision"`
}

// Query says which rows to read. The zero Query reads the cluster row only,
// which every answer carries.
type Query struct {
	Sites bool `json:"sites,omitempty"`
	Nodes bool `json:"nodes,omitempty"`
	Users bool `json:"users,omitempty"`
	// SliceIDs asks for these slices.
	SliceIDs []ids.Slice `json:"slice_ids,omitempty"`
	// Slices asks for this many slices (at most MaxBatchRows) with IDs of
	// SlicesFrom and above, in their order. Rows.More: there are others.
	Slices     int       `json:"slices,omitempty"`
	SlicesFrom ids.Slice `json:"slices_from,omitempty"`
	// RecordKeys asks for these records, 100 at most.
	RecordKeys []RecordKey `json:"record_keys,omitempty"`
	// Records asks for this many records (at most MaxRecordPage) of RecordKind,
	// those with names above RecordsAfter, in the order of their bytes.
	// Rows.MoreRecords: there are others.
	Records      int    `json:"records,omitempty"`
	RecordKind   string `json:"record_kind,omitempty"`
	RecordsAfter string `json:"records_after,omitempty"`
	// Audit asks for this many of the newest audit records (at most
	// MaxBatchRows), newest first, those below number AuditBefore if it is
	// not 0.
	Audit       int    `json:"audit,omitempty"`
	AuditBefore uint64 `json:"audit_before,omitempty"`
}

// Rows is what a store answers.
type Rows struct {
	// Cluster is nil while the store is new.
	Cluster *Cluster      `json:"cluster,omitempty"`
	Sites   []Site        `json:"sites,omitempty"`
	Nodes   []Node        `json:"nodes,omitempty"`
	Slices  []SliceRow    `json:"slices,omitempty"`
	Users   []User        `json:"users,omitempty"`
	Records []Record      `json:"records,omitempty"`
	Removed []Removal     `json:"removed,omitempty"`
	Audit   []AuditRecord `json:"audit,omitempty"`
	// Revision is the store's at the time of reading; of Follow, the one to
	// follow from next.
	Revision ids.Revision `json:"revision"`
	More     bool         `json:"more,omitempty"`
	// MoreRecords says that records follow those of the page asked for.
	MoreRecords bool `json:"more_records,omitempty"`
}

// Len counts the rows that a batch would change, and its audit records.
func (b Batch) Len() int {
	n := len(b.Sites) + len(b.Nodes) + len(b.Users) + len(b.Records) + len(b.Slices) + len(b.Remove) + len(b.Audit)
	if b.Cluster != nil {
		n++
	}
	return n
}
