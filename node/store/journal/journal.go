// Package journal is the node's one log: records of all its slices, framed in
// batches, each batch one direct synced write into preallocated segments that
// are used over and over. It knows nothing of what the records say, and it is
// not a queue: nothing is read back but in Replay, after a start. Append may
// be called by any goroutine; one writer goroutine owns the disk.
package journal

import (
	"math/rand/v2"
	"sync"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/store/disk"
)

// Position is a place in the log: it only grows, over all segments and lives.
type Position uint64

// Kind tells the records of different readers apart; the journal carries it.
type Kind uint8

// Record is one entry of the log. Pieces are joined; they must not change
// until the append is done.
type Record struct {
	Slice  ids.Slice
	Kind   Kind
	Pieces [][]byte
}

// size is the length of the record's payload.
func (r *Record) size() int {
	n := 0
	for _, p := range r.Pieces {
		n += len(p)
	}
	return n
}

// FramedSize is how much of the log the record takes.
func (r *Record) FramedSize() int { return recordHeader + r.size() }

// Options configure a journal; zero values take the defaults.
type Options struct {
	// SegmentBytes is the length of a segment file, 64 MiB.
	SegmentBytes int64
	// BatchBytes is how much one write takes from the queue at most: 4 MiB, and no
	// more than a segment.
	BatchBytes int
	// QueueBytes is how much may wait to be written, 64 MiB; beyond it Room is
	// none. Append itself refuses nothing for its length: one that is missing
	// between others would be a hole.
	QueueBytes int
	// TotalBytes bounds all segments together, 2 GiB; beyond it appends wait
	// until Trim.
	TotalBytes int64
	// Relieve is called where the disk is full, before an append waits; it may
	// give space back. nil does nothing.
	Relieve func()
	// Fatal hears of the first failed write; nothing is accepted after it.
	Fatal func(error)
}

func (o Options) withDefaults() Options {
	if o.SegmentBytes == 0 {
		o.SegmentBytes = 64 << 20
	}
	if o.BatchBytes == 0 {
		o.BatchBytes = 4 << 20
	}
	o.BatchBytes = min(o.BatchBytes, o.maxAppend())
	if o.QueueBytes == 0 {
		o.QueueBytes = 64 << 20
	}
	if o.TotalBytes == 0 {
		o.TotalBytes = 2 << 30
	}
	if o.Relieve == nil {
		o.Relieve = func() {}
	}
	if o.Fatal == nil {
		o.Fatal = func(error) {}
	}
	return o
}

// Done hears how an append ended and where its first record lies. It is called
// by the writer goroutine, in the order of the appends: it must not block.
type Done func(Position, error)

// request is one waiting append.
type request struct {
	records []Record
	bytes   int // framed length of the records
	done    Done
}

// Journal is the open log.
type Journal struct {
	opts Options
	d    disk.Disk

	// mu guards what follows; it is never held across I/O.
	mu       sync.Mutex
	wake     *sync.Cond
	queue    []request
	queued   int // bytes in queue
	replayed bool
	closed   bool
	failed   error // first failed write; final
	short    error // why there is no segment for what comes next; nil: there is
	end      Position
	tail     Position // records before it are trimmed
	left     int64    // bytes that the segment in use still takes
	live     []*segment
	free     []*segment // ready for use again, zeroed once
	key      uint64     // tells this journal's frames from any other bytes

	making creator

	// The writer alone uses these.
	w       writer
	stopped chan struct{}
	prepare chan struct{} // asks for a spare segment
	roomy   chan struct{} // tells the writer to look for room again
	ready   chan struct{} // closed when the preparer has ended
}

// Open finds the segments of a journal, or makes a new one. Replay must run
// before the first Append.
func Open(d disk.Disk, o Options) (*Journal, error) {
	o = o.withDefaults()
	j := &Journal{opts: o, d: d, stopped: make(chan struct{}), prepare: make(chan struct{}, 1),
		roomy: make(chan struct{}, 1), ready: make(chan struct{})}
	j.wake = sync.NewCond(&j.mu)
	if err := j.load(); err != nil {
		j.closeFiles()
		return nil, err
	}
	if j.key == 0 {
		j.key = rand.Uint64() | 1
	}
	go j.run()
	go j.prepareSpares()
	return j, nil
}

// MaxAppend is how many bytes the records of one Append may take, each of its
// FramedSize: a segment.
func (j *Journal) MaxAppend() int { return j.opts.maxAppend() }

func (o *Options) maxAppend() int { return int(o.SegmentBytes-disk.Block) - frameHeader }

// Append queues records that are written together or not at all, and returns;
// done is called when they are durable. While the disk is full, or the log has
// its whole length, they wait: nothing is left out. An error returned means that
// done will not be called: TooLarge, Closed, Invalid before Replay, or the first
// failed write.
func (j *Journal) Append(records []Record, done Done) error {
	const op fault.Op = "journal.Append"
	n := 0
	for i := range records {
		n += recordHeader + records[i].size()
	}
	if n > j.MaxAppend() {
		return fault.Errorf(fault.TooLarge, op, "", "%d bytes do not fit a segment", n)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.failed != nil:
		return j.failed
	case j.closed:
		return fault.E(fault.Closed, op, "", "")
	case !j.replayed:
		return fault.E(fault.Invalid, op, "", "append before replay")
	}
	j.queue = append(j.queue, request{records: records, bytes: n, done: done})
	j.queued += n
	if len(j.queue) == 1 {
		j.wake.Signal()
	}
	return nil
}

// Room reports whether n more bytes can be written now: nil, Overloaded (too
// much waits already, or the log waits for a checkpoint) or NoSpace. Who
// proposes looks here first.
func (j *Journal) Room(n int) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.queued+n > j.opts.QueueBytes {
		return fault.E(fault.Overloaded, "journal.Room", "", "too much waits for the disk")
	}
	why := j.short
	if why == nil && len(j.free) == 0 && int64(len(j.live)+1)*j.opts.SegmentBytes > j.opts.TotalBytes {
		why = atLimit()
	}
	if why != nil && int64(j.queued+n) > j.left-slack {
		return why
	}
	return nil
}

// slack is what Room leaves of the last segment to what nobody asks it for.
const slack = 16 << 10

func atLimit() error {
	return fault.E(fault.Overloaded, "journal.Append", "", "the log has reached its limit and waits for a checkpoint")
}

// Prepare has a spare segment made where there is none, in the background.
func (j *Journal) Prepare() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return
	}
	select {
	case j.prepare <- struct{}{}:
	default:
	}
}

// Spare reports whether the next segment is there.
func (j *Journal) Spare() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.free) > 0
}

// SegmentBytes is the length of a segment.
func (j *Journal) SegmentBytes() int64 { return j.opts.SegmentBytes }

// End returns where the next record will lie at the earliest.
func (j *Journal) End() Position {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.end
}

// Tail returns the place before which everything is trimmed.
func (j *Journal) Tail() Position {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.tail
}

// Bytes returns how much of the log lies behind Tail: what a replay reads.
func (j *Journal) Bytes() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return int64(j.end - j.tail)
}

// Err returns the failed write that ended the journal, if any.
func (j *Journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.failed
}

// Close writes what is queued, stops the writer and closes the files.
func (j *Journal) Close() error {
	j.mu.Lock()
	already := j.closed
	j.closed = true
	j.wake.Broadcast()
	j.mu.Unlock()
	j.lookAgain()
	<-j.stopped
	if already {
		return nil
	}
	close(j.prepare)
	<-j.ready
	j.closeFiles()
	return nil
}

// fail makes err final and answers everything that waits.
func (j *Journal) fail(err error, batch []request) {
	j.mu.Lock()
	first := j.failed == nil
	if first {
		j.failed = err
	}
	rest := j.queue
	j.queue, j.queued = nil, 0
	j.mu.Unlock()
	for _, r := range append(batch, rest...) {
		r.done(0, err)
	}
	if first {
		j.opts.Fatal(err)
	}
}

// Segments returns how many segment files there are.
func (j *Journal) Segments() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.live) + len(j.free)
}
