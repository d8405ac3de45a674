// Package method numbers the calls and messages of Cartwheel's protocol and
// says which class of connection each takes and what travels in it. It is the
// one list that nodes and clients share; it sends nothing itself. Numbers are
// fixed once sent: append, never renumber. Its values are constants.
//
// A node that does not act for the slice of a request answers not with an
// error but with the response's Refusal, which holds the newest slice row that
// it knows (JSON of geoconfig.SliceRow): the caller goes on with the node that
// the row names. Every other failure of a call is a fault on the wire, except
// that an operation's own outcome (exists, not found, ...) is the kind in its
// Result, because it is remembered for retries.
package method

import "cartwheel.dev/node/wire"

// Session calls, from clients; class Beacon except Hello.
const (
	Hello     wire.Method = 1 // HelloRequest: who the user is; first on every connection (class Operation)
	KeepAlive wire.Method = 2 // KeepAliveRequest
	Revoke    wire.Method = 3 // RevokeRequest, from the node to the client
	Claim     wire.Method = 4 // ClaimRequest, after a takeover (class Operation)
	Lock      wire.Method = 5 // LockRequest (class Operation)
)

// Operations and reads; class Operation.
const (
	Operate wire.Method = 16 // OperateRequest, body: bytes of body_offset extents
	Resolve wire.Method = 17
	List    wire.Method = 18
	GetAttr wire.Method = 19
	Statfs  wire.Method = 20
	Place   wire.Method = 21
	Rows    wire.Method = 22
	// Page is one-way, from the node: a page of the listing that a List call
	// under way asked for. Payload: the number of the stream (8 bytes) and of the
	// page, from 0 (4 bytes), both little-endian, and an encoded ListResponse.
	Page wire.Method = 23
	// Files goes by class Chunk; body of the answer: content.
	Files wire.Method = 24
	// Side is Operate for a node that keeps a side log of the slice: it answers with
	// what is so at this side of a cut, and merges later. Its Result has the kind
	// TimedOut for what only the slice's active does.
	Side wire.Method = 25
	// SideCopy is SideCopyRequest: what a node keeps in a side log, for another node
	// that has a copy of the slice.
	SideCopy wire.Method = 26
	// Hold is Operate for a standby: a create that it keeps apart from the log until the
	// log has it. From a node it is for the active: a create that the node keeps, to be
	// done under the client's number.
	Hold wire.Method = 27
	// History is HistoryRequest: the versions of a name or an object that are retained.
	History wire.Method = 28
)

// Content; class Chunk, except that small Range calls go by Operation.
const (
	Have  wire.Method = 32
	Put   wire.Method = 33
	Get   wire.Method = 34
	Range wire.Method = 35
)

// Administration; class Operation.
const (
	Status     wire.Method = 48
	SliceList  wire.Method = 49
	Where      wire.Method = 50
	HandOver   wire.Method = 51
	DropCaches wire.Method = 52
	Net        wire.Method = 53 // NetRequest: the node's coordinate and distances
	Conflicts  wire.Method = 54 // ConflictsRequest: what merges of side logs kept beside what won
	Space      wire.Method = 55 // SpaceRequest: what holds the space of a slice, a page at a time
	Scrub      wire.Method = 56 // ScrubRequest: has the node read all that it stores
	Snapshots  wire.Method = 57 // SnapshotsRequest: the named snapshots
	Snapshot   wire.Method = 58 // SnapshotRequest: make or delete one
	Drill      wire.Method = 59 // DrillRequest: takes part in a drill, and answers when it is over
	Drills     wire.Method = 60 // DrillsRequest: the drills that are over
	Recall     wire.Method = 61 // RecallRequest: what the node remembers of the configuration
)

// Between nodes.
const (
	Replica  wire.Method = 64 // one-way: a frame of replica messages (class Operation)
	Beacon   wire.Method = 65 // one-way: a frame of beacons and answers (class Beacon)
	Intent   wire.Method = 66 // IntentRequest: how an intent stands (class Operation)
	Transfer wire.Method = 67 // state transfer to a junior (class Chunk)
	Facts    wire.Method = 68 // FactsRequest: raw state that a coordinator needs (class Operation)
	Budget   wire.Method = 69 // one-way: a BudgetReport (class Beacon)
)

// The configuration store's server; class Operation.
const (
	GeoRead       wire.Method = 80
	GeoApply      wire.Method = 81
	GeoSettle     wire.Method = 82
	GeoFollow     wire.Method = 83
	GeoProperties wire.Method = 84
)
