package view

import (
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/api/tally"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/tree"
)

// Space is what holds the nodes' disks, and what holds the space of the slices.
type Space struct {
	Nodes []NodeSpace `json:"nodes" nullable:"false"`
	// Sum is of the nodes that ever told.
	Sum      DiskSpace   `json:"sum" doc:"Of the nodes that ever told."`
	Count    *SpaceCount `json:"count,omitempty" doc:"The newest count that has ended; absent: the answering node has made none since its start."`
	Counting *Counting   `json:"counting,omitempty" doc:"The count under way; absent: there is none."`

	Freshness Freshness `json:"freshness"`
}

// NodeSpace is what holds one node's disk.
type NodeSpace struct {
	Node   ids.Node   `json:"node"`
	Site   ids.Site   `json:"site"`
	AsOfAt *time.Time `json:"as_of_at,omitempty" doc:"When the node told it; absent: it never did."`
	Disk   *DiskSpace `json:"disk,omitempty" doc:"Its last word; absent: there is none."`
}

// DiskSpace is what a disk is used for. Deduplication makes live smaller than its bound, and
// retained larger.
type DiskSpace struct {
	JournalBytes  int64 `json:"journal_bytes"`
	MetadataBytes int64 `json:"metadata_bytes"`
	ChunkBytes    int64 `json:"chunk_bytes" doc:"All chunks: live, retained and waiting."`
	LiveBytes     int64 `json:"live_most_bytes" doc:"Chunks of current files, at most so many."`
	RetainedBytes int64 `json:"retained_least_bytes" doc:"Chunks of older versions, deleted files and snapshots alone, at least so many."`
	WaitingBytes  int64 `json:"waiting_bytes" doc:"Chunks that nothing needs any more, and that wait for collection."`
	EmptyBytes    int64 `json:"pack_empty_bytes" doc:"Room in pack files where no chunk lies."`
}

// OfDisk shows a node's disk; nil: the node tells nothing of it.
func OfDisk(n *status.Node) *DiskSpace {
	d := n.Disk
	if d == nil {
		return nil
	}
	return &DiskSpace{JournalBytes: d.JournalBytes, MetadataBytes: d.MetadataBytes, ChunkBytes: d.ChunkBytes, LiveBytes: d.LiveBytes,
		RetainedBytes: d.RetainedBytes, WaitingBytes: n.WaitingBytes, EmptyBytes: d.EmptyBytes}
}

// Add adds another disk.
func (d *DiskSpace) Add(o *DiskSpace) {
	d.JournalBytes += o.JournalBytes
	d.MetadataBytes += o.MetadataBytes
	d.ChunkBytes += o.ChunkBytes
	d.LiveBytes += o.LiveBytes
	d.RetainedBytes += o.RetainedBytes
	d.WaitingBytes += o.WaitingBytes
	d.EmptyBytes += o.EmptyBytes
}

// SpaceCount is what holds the space of all slices, in one copy of each. A chunk counts once
// in each slice that has it.
type SpaceCount struct {
	BeganAt time.Time `json:"began_at"`
	EndedAt time.Time `json:"ended_at"`
	Slices  int       `json:"slices" doc:"Slices that were to count."`
	// Failed slices are in no sum.
	Failed      []SliceFailure `json:"failed" nullable:"false" doc:"Slices that are not in the sums. At most 100."`
	FailedTotal int            `json:"failed_total"`

	Objects       uint64 `json:"objects"`
	LiveBytes     uint64 `json:"live_bytes" doc:"Content of current files, without holes and before deduplication."`
	ChunkBytes    uint64 `json:"chunk_bytes" doc:"Chunks of current files, and of contents that are not collected yet."`
	SharedBytes   uint64 `json:"shared_bytes" doc:"What more those would take without deduplication."`
	OlderBytes    uint64 `json:"older_bytes" doc:"Chunks that only older versions and deleted files use: what retention and snapshots hold."`
	SnapshotBytes uint64 `json:"snapshot_bytes" doc:"Those of them that nothing needs but snapshots."`
	WaitingBytes  uint64 `json:"waiting_bytes" doc:"Chunks that nothing needs any more, and that wait for collection."`
	DeletedFiles  Amount `json:"deleted_files" doc:"Deleted files that are retained, and their content before deduplication."`
	OlderVersions Amount `json:"older_versions" doc:"Older versions that are retained, and their content before deduplication."`
	MissingChunks uint64 `json:"missing_chunks" doc:"Chunks that follow or are sought."`
}

// Amount is how many there are of something, and their size.
type Amount struct {
	Count uint64 `json:"count"`
	Bytes uint64 `json:"bytes"`
}

// SliceFailure is a slice that no node gave the figures of.
type SliceFailure struct {
	Slice ids.Slice `json:"slice"`
	Text  string    `json:"text"`
}

// Counting is how far a count is.
type Counting struct {
	BeganAt time.Time `json:"began_at"`
	Slices  int       `json:"slices" doc:"Slices that are to count."`
	Done    int       `json:"done" doc:"Slices that were counted."`
}

// OfCount shows a count that has ended; nil: none has.
func OfCount(c *tally.Count) *SpaceCount {
	if c == nil {
		return nil
	}
	amount := func(a tree.Amount) Amount { return Amount{a.Count, a.Bytes} }
	out := &SpaceCount{BeganAt: c.BeganAt, EndedAt: c.EndedAt, Slices: c.Slices, Failed: []SliceFailure{}, FailedTotal: c.FailedTotal,
		Objects: c.Objects, LiveBytes: c.Stored, ChunkBytes: c.Named.Bytes, SharedBytes: c.Repeated, OlderBytes: c.Older.Bytes,
		SnapshotBytes: c.Usage.Snapshots.Bytes, WaitingBytes: c.Waiting.Bytes, DeletedFiles: amount(c.Deleted), OlderVersions: amount(c.Replaced), MissingChunks: c.Missing}
	for _, f := range c.Failed {
		out.Failed = append(out.Failed, SliceFailure{f.Slice, f.Text})
	}
	return out
}

// OfCounting shows a count under way; nil: none is.
func OfCounting(c *tally.Count) *Counting {
	if c == nil {
		return nil
	}
	return &Counting{BeganAt: c.BeganAt, Slices: c.Slices, Done: c.Done}
}
