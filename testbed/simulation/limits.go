package simulation

import (
	"fmt"
	"math/rand/v2"
	"time"

	"cartwheel.dev/node/store"
)

// Limits are drawn tiny, so that what is rare in use happens in every run.
type Limits struct {
	Lease, Session, Shared, FailedAfter time.Duration
	Silence                             time.Duration // until a connection is given up
	MissedBytes, PageBytes              int
	CheckpointBytes, SegmentBytes       int64
	QueueBytes                          int
	SliceObjects                        uint64
	Uncommitted                         int
	FlightBytes, MessageBytes           int
	DiskDelay                           time.Duration
	Reserve                             int64 // bytes of the disk
	Retention, UploadGrace              time.Duration
	PackBytes                           int64
}

func drawLimits(r *rand.Rand) Limits {
	between := func(least, most int) int { return least + r.IntN(most-least+1) }
	ms := func(least, most int) time.Duration { return time.Duration(between(least*1_000_000, most*1_000_000)) }
	most := 4000 // of a write of the log, in microseconds
	if r.IntN(3) == 0 {
		most = 60_000
	}
	// What crosses a cut arrives behind it while the connection lasts: one that
	// outlives a lease brings what an earlier active sent to those of its successor.
	return Limits{
		Silence: ms(1500, 4000),
		Lease:   ms(600, 1500), Session: ms(800, 1500), Shared: ms(5, 100), FailedAfter: ms(1000, 6000),
		MissedBytes: between(4096, 32<<10) << (4 * r.IntN(2)), CheckpointBytes: int64(between(8, 64)) * 4096,
		SegmentBytes: int64(between(64, 256)) << 12, QueueBytes: between(1<<20, 4<<20),
		SliceObjects: uint64(between(30, 400)), Uncommitted: between(16, 256),
		FlightBytes: between(4<<10, 64<<10), MessageBytes: between(1<<10, 16<<10),
		Reserve: int64(between(16, 256)) << 10, DiskDelay: time.Duration(between(50, most)) * time.Microsecond,
		PageBytes: between(1<<10, 64<<10),
		Retention: ms(0, 5000) * time.Duration(r.IntN(2)), UploadGrace: ms(1000, 4000), PackBytes: int64(between(48, 512)) << 12,
	}
}

// shrink makes a store's parts small.
func (l *Limits) shrink(o *store.Options) {
	o.Journal.SegmentBytes, o.Journal.QueueBytes = l.SegmentBytes, l.QueueBytes
	o.Pack.PackBytes, o.Pack.ReserveBytes = l.PackBytes, -1
	o.Meta.MemtableBytes = 256 << 10
}

// String tells the limits on one line.
func (l Limits) String() string {
	return fmt.Sprintf("lease %v, session %v, silence %v, failed after %v, missed %d, page %d, checkpoint %d, segment %d, queue %d, objects %d, uncommitted %d, flight %d, message %d, disk %v, retention %v, upload grace %v, pack %d",
		l.Lease, l.Session, l.Silence, l.FailedAfter, l.MissedBytes, l.PageBytes, l.CheckpointBytes, l.SegmentBytes, l.QueueBytes, l.SliceObjects, l.Uncommitted, l.FlightBytes, l.MessageBytes, l.DiskDelay, l.Retention, l.UploadGrace, l.PackBytes)
}
