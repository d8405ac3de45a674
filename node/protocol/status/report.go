// Package status describes the JSON documents that a node's administration
// calls answer with (Status, SliceList, Where, Net), for whoever prints or shows
// them. It gathers nothing itself. Its types are plain values: share by copy.
package status

import (
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// Node is what one node says of itself.
type Node struct {
	ID          ids.Node        `json:"id"`
	Site        ids.Site        `json:"site"`
	Cluster     ids.Cluster     `json:"cluster"`
	Version     string          `json:"version"`
	Incarnation ids.Incarnation `json:"incarnation"`
	Addresses   []string        `json:"addresses"`
	UptimeNS    time.Duration   `json:"uptime_ns"`

	// GeoConfig is "reachable" or says since when it is not; while it is
	// away, what is configured goes on and changes wait.
	GeoConfig GeoConfig `json:"geo_config"`

	CapacityBytes int64 `json:"capacity_bytes"`
	UsedBytes     int64 `json:"used_bytes"`
	FreeBytes     int64 `json:"free_bytes"`
	ReadOnly      bool  `json:"read_only"` // no space: reads go on
	// PackBytes is the length of the files that chunks lie in, and WaitingBytes what of
	// the chunks in them lost a reference, and may go once its pack was looked at.
	PackBytes    int64 `json:"pack_bytes"`
	WaitingBytes int64 `json:"waiting_bytes"`
	// MovedBytes is the content that the node sent since its start to members of slices
	// that lacked it: they were away, replace lost ones, or take the place of others.
	MovedBytes int64 `json:"moved_bytes"`
	// Disk is what holds the node's disk; nil: the caller may not see it.
	Disk *Disk `json:"disk,omitempty"`

	// Scrub is how far the node is with reading all that it stores, and what it found.
	// A node of an earlier version has none.
	Scrub *Scrub `json:"scrub,omitempty"`
	// Drill is the one that the node takes part in; nil: none.
	Drill *Drill `json:"drill,omitempty"`
	Parts
	Moves
	Sessions     int `json:"sessions"`
	ObjectLeases int `json:"object_leases"`

	Peers []Peer `json:"peers"`
	// Findings are what this node measured against what is declared.
	Findings []Finding `json:"findings,omitempty"`
	// Clients are those connected to the node, where a caller that may see them
	// asks; at most as many as it asks for.
	Clients []Client `json:"clients,omitempty"`
}

// Drill is a drill that is under way.
type Drill struct {
	ID string `json:"id"`
	// Kind is that of package drill.
	Kind string `json:"kind"`
	// LeftNS is how much longer it lasts at the most.
	LeftNS time.Duration `json:"left_ns"`
}

// Moves are how slices come to a node and leave it.
type Moves struct {
	// Balance is how the node's disk stands to the marks of its site. A node of an
	// earlier version has none.
	Balance *Balance `json:"balance,omitempty"`
	// Copies are those that the node makes or waits to make, in their order.
	Copies []Copy `json:"copies,omitempty"`
}

// Copy is the copy of a slice that a node makes, or waits to make.
type Copy struct {
	Slice ids.Slice `json:"slice"`
	// Copies are the whole ones that the slice has, of Level that its policy asks for.
	// As many: the copy takes the place of one of them.
	Copies int `json:"copies"`
	Level  int `json:"level"`
	// First says that an operator wants it before others with as many copies.
	First bool `json:"first,omitempty"`
	// LackingNS is for how long the slice has lacked copies, as far as the node saw.
	LackingNS time.Duration `json:"lacking_ns"`
	// Running says that the copy is made now, From a node, since TookNS. Rows and Bytes of
	// content have come. Otherwise it waits for its turn.
	Running bool          `json:"running"`
	From    ids.Node      `json:"from,omitempty"`
	TookNS  time.Duration `json:"took_ns,omitempty"`
	Rows    int64         `json:"rows,omitempty"`
	Bytes   int64         `json:"bytes,omitempty"`
}

// Balance is how a node's disk stands to its marks, and what the node does about it.
type Balance struct {
	// HighPercent and LowPercent are the marks, in percent of the disk. Off: nobody
	// gives slices away at the site.
	HighPercent int  `json:"high_percent"`
	LowPercent  int  `json:"low_percent"`
	Off         bool `json:"off,omitempty"`
	// Fill is that of package geoconfig: roomy, middling, high or full.
	Fill string `json:"fill"`
	// Giving is the slice that the node gives away now, to the node To; 0: none.
	Giving ids.Slice `json:"giving,omitempty"`
	To     ids.Node  `json:"to,omitempty"`
	// Remedy says why nothing is given although the disk is above the high mark, and
	// what would help; empty: something is, or the disk is not.
	Remedy string `json:"remedy,omitempty"`
}

// Parts counts the slices of which a node has a copy, by what it is to them.
type Parts struct {
	SlicesActive  int `json:"slices_active"`
	SlicesStandby int `json:"slices_standby"`
	SlicesJunior  int `json:"slices_junior"`
}

// Disk is what a node's disk is used for, in bytes.
type Disk struct {
	JournalBytes  int64 `json:"journal_bytes"`
	MetadataBytes int64 `json:"metadata_bytes"`
	// ChunkBytes are all chunks. LiveBytes of them belong to current files at most, and
	// RetainedBytes at least to nothing but older versions, deleted files and uploads that
	// were not committed. The rest waits for collection (Node.WaitingBytes). Deduplication
	// makes live smaller than the bound, and retained larger.
	ChunkBytes    int64 `json:"chunk_bytes"`
	LiveBytes     int64 `json:"live_most_bytes"`
	RetainedBytes int64 `json:"retained_least_bytes"`
	// EmptyBytes are the pack files where no chunk lies: what the newest pack has left to
	// fill, and what went from older ones.
	EmptyBytes int64 `json:"pack_empty_bytes"`
}

// Client is a client that said hello to a node.
type Client struct {
	User ids.User `json:"user"`
	// Name and Site are its own word: host and mount point, and where it stands.
	Name string `json:"name"`
	Site string `json:"site,omitempty"`
}

// GeoConfig is how the node stands with the configuration store.
type GeoConfig struct {
	Reachable bool          `json:"reachable"`
	AwayNS    time.Duration `json:"away_ns,omitempty"`
	Warning   string        `json:"warning,omitempty"`
	// Kind and SinglePoint are the store's own words, empty while it is away.
	Kind        string `json:"kind,omitempty"`
	SinglePoint bool   `json:"single_point,omitempty"`
	// Generation is that of the store which the node follows. A slice whose row is of
	// a lower one waits to be settled after a rebuild.
	Generation ids.Generation `json:"generation,omitempty"`
}

// Peer is another node as this one sees it.
type Peer struct {
	ID        ids.Node      `json:"id"`
	Site      ids.Site      `json:"site"`
	Connected bool          `json:"connected"`
	RTTNS     time.Duration `json:"rtt_ns"`
}

// Slice is one slice as the answering node sees it.
type Slice struct {
	geoconfig.SliceRow
	// Role is active, standby, junior or none, of the answering node.
	Role string `json:"role"`
	// Serving says whether it may act for the slice now; Why says why not.
	Serving bool       `json:"serving"`
	Why     string     `json:"why,omitempty"`
	Commit  ids.Serial `json:"commit"`
	Applied ids.Serial `json:"applied"`
	Objects uint64     `json:"objects"`
	// Last is the last change in the answering node's log, and LastTime the time of that;
	// zero: it is not known. Those after Applied may be committed or not.
	Last     ids.Serial `json:"last,omitempty"`
	LastTime time.Time  `json:"last_time,omitzero"`
	// Whole says that the answering node is a member with a copy that it could act by,
	// up to Applied; of Lacking entries it lacks content.
	Whole   bool `json:"whole,omitempty"`
	Lacking int  `json:"lacking,omitempty"`
	// StoredBytes is what one copy stores; nil: the answering node has none.
	StoredBytes *int64   `json:"stored_bytes,omitempty"`
	Members     []Member `json:"member_sites"`
	// Protected says whether the policy is met; Lacks says what is missing.
	Protected bool   `json:"protected"`
	Lacks     string `json:"lacks,omitempty"`
}

// Member is one member of a slice with its place.
type Member struct {
	Node   ids.Node `json:"node"`
	Site   ids.Site `json:"site"`
	State  string   `json:"state"`
	Active bool     `json:"active"`
}

// Where says where an object is and why.
type Where struct {
	Object ids.Object       `json:"object"`
	Slice  ids.Slice        `json:"slice"`
	Epoch  ids.Epoch        `json:"epoch"`
	Policy geoconfig.Policy `json:"policy"`
	Cues   []string         `json:"cues"`
	Active Member           `json:"active"`
	Others []Member         `json:"others"`
	// Read is the node whose copy the answer was read from; Why says why it.
	Read    ids.Node `json:"read"`
	Why     string   `json:"why"`
	Version uint64   `json:"version"`
	Change  uint64   `json:"change"`
	Size    uint64   `json:"size"`
}
