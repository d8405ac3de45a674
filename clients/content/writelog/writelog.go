// Package writelog is a client's write journal: what was written and
// acknowledged but is not yet committed, kept in files so that it survives a
// crash of the client's process (the kernel's page cache is enough for that;
// Sync makes it survive a crash of the machine). It decides nothing: at the
// next start it hands back what was left over, and content.Recover commits it
// or parks it. Nothing is dropped before the engine says that it is done. The
// format is described in docs/formats/write-journal.md.
//
// A Log may be used from many goroutines. Two processes cannot share a
// directory. One goroutine of its own syncs files that are full; Close joins it.
package writelog

import (
	"log/slog"
	"math"
	"os"
	"slices"
	"sync"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/content/dirlock"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/plant"
)

// segmentBytes is after how many bytes a new file is begun; a file goes when
// everything in it is done. What the engine may have dirty bounds them all.
const segmentBytes = 16 << 20

// Options sets up a Log.
type Options struct {
	Logger *slog.Logger
	// SegmentBytes is for tests; 0: 16 MiB.
	SegmentBytes int64
	// Sync is for tests; nil: the file's own.
	Sync func(*os.File) error
}

// Log is a directory with the write journal.
type Log struct {
	dir    string
	limit  int64
	lock   *dirlock.Lock
	logger *slog.Logger
	sync   func(*os.File) error

	full    chan struct{} // wakes the goroutine that syncs; closed by Close
	syncing sync.WaitGroup

	mu       sync.Mutex
	segments []*segment // oldest first; the last is appended to
	objects  map[ids.Object]*object
	live     int64 // bytes of the live writes' records
	next     uint64
	buffer   []byte
	// owed are notes of what is done for which there was no room. They are
	// written before any further write is taken.
	owed   map[ids.Object]record
	err    error // a write failed: the file's end is unknown
	closed bool
}

// object is what the journal knows of an object with live writes.
type object struct {
	known  uint64
	sent   []content.Sent // commits on their way, oldest first
	writes []liveWrite    // ascending
}

// liveWrite is a write that is not done, and where it lies.
type liveWrite struct {
	number   uint64
	seg      *segment
	at, size int64
}

// segment is one file; live counts its writes that are not done.
type segment struct {
	number uint64
	file   *os.File
	size   int64
	synced int64 // of size: on disk
	live   int
}

var _ content.Journal = (*Log)(nil)

// Open takes the directory, making it where it is missing, and returns what was
// left over in it, in the order of writing. Close the Log.
func Open(dir string, o Options) (*Log, []content.Leftover, error) {
	const op fault.Op = "writelog.Open"
	lock, err := dirlock.Take(dir)
	if err != nil {
		return nil, nil, fault.FromOS(op, dir, err)
	}
	l := &Log{
		dir: dir, limit: o.SegmentBytes, lock: lock, logger: o.Logger, sync: o.Sync, next: 1, full: make(chan struct{}, 1),
		objects: map[ids.Object]*object{}, owed: map[ids.Object]record{},
	}
	if l.limit <= 0 {
		l.limit = segmentBytes
	}
	if l.sync == nil {
		l.sync = (*os.File).Sync
	}
	if l.logger == nil {
		l.logger = slog.New(slog.DiscardHandler)
	}
	left, err := l.load()
	if err == nil {
		err = l.begin()
	}
	if err != nil {
		l.closeFiles()
		_ = lock.Close() // the first error counts
		return nil, nil, fault.FromOS(op, dir, err)
	}
	l.syncing.Go(l.keepSynced)
	return l, left, nil
}

// Close gives the directory back; what is not done stays in it. It is
// idempotent.
func (l *Log) Close() error {
	const op fault.Op = "writelog.Close"
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	_ = l.payOwedLocked() // what is not noted is found again at the next start
	l.closed = true
	close(l.full)
	l.mu.Unlock()
	l.syncing.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closeFiles()
	return fault.FromOS(op, l.dir, l.lock.Close())
}

// Write implements content.Journal.
func (l *Log) Write(w content.Written) (uint64, error) {
	const op fault.Op = "writelog.Write"
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.payOwedLocked(); err != nil {
		return 0, fault.FromOS(op, l.dir, err)
	}
	r := record{
		kind: byte(w.Kind), object: w.Object, number: l.next, version: w.Version, offset: w.Offset, length: w.Length,
		first: l.next, who: w.Who[:min(len(w.Who), math.MaxUint16)], data: w.Data,
	}
	if o := l.objects[w.Object]; o != nil && len(o.writes) > 0 {
		r.first = o.writes[0].number
	}
	s, err := l.putLocked(&r)
	if err != nil {
		return 0, fault.FromOS(op, l.dir, err)
	}
	l.next++
	l.add(&r, s, s.size-r.size(), r.size())
	o := l.object(w.Object)
	o.known = max(o.known, w.Version)
	return r.number, nil
}

// Begin implements content.Journal.
func (l *Log) Begin(id ids.Object, upto uint64, mtimeNs int64) error {
	const op fault.Op = "writelog.Begin"
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.payOwedLocked()
	if err == nil {
		_, err = l.putLocked(&record{kind: kindBegin, object: id, number: upto, offset: uint64(mtimeNs)})
	}
	if o := l.objects[id]; err == nil && o != nil {
		o.sent = begun(o.sent, content.Sent{Upto: upto, MtimeNs: mtimeNs})
	}
	return fault.FromOS(op, l.dir, err)
}

// Done implements content.Journal.
func (l *Log) Done(id ids.Object, from, upto uint64, version uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if plant.On(plant.WritelogSettlesAll) {
		upto = max(upto, l.next-1)
	}
	r := record{kind: kindDone, object: id, number: upto, version: version, offset: from, first: l.lowestLocked(id, from, upto)}
	if o := l.objects[id]; o != nil {
		o.known = max(o.known, version)
	}
	if old, ok := l.owed[id]; ok && upto >= from {
		r.offset, r.number, r.version = min(from, old.offset), max(upto, old.number), max(version, old.version)
		delete(l.owed, id)
	}
	_, err := l.putLocked(&r)
	if err != nil && upto >= from {
		l.owed[id] = r
		l.logger.Warn("the write journal could not note a commit yet", logattr.Object(id), logattr.Err(err))
	}
	l.finish(id, from, upto)
	l.forget(id)
	l.collect()
}

// lowestLocked is an object's lowest number that is not done once from..upto are: what is
// below it is done. The mutex is held.
func (l *Log) lowestLocked(id ids.Object, from, upto uint64) uint64 {
	if o := l.objects[id]; o != nil {
		for _, w := range o.writes {
			if w.number < from || w.number > upto {
				return w.number
			}
		}
	}
	return l.next
}

// Forget says that all that is kept of an object up to a write is committed or
// parked.
func (l *Log) Forget(id ids.Object, upto uint64) { l.Done(id, 0, upto, 0) }

// payOwedLocked writes down what is done and was not noted; the mutex is held.
func (l *Log) payOwedLocked() error {
	for id, r := range l.owed {
		if _, err := l.putLocked(&r); err != nil {
			return err
		}
		delete(l.owed, id)
	}
	return nil
}

// object returns what is known of an object, made where there is nothing.
func (l *Log) object(id ids.Object) *object {
	o := l.objects[id]
	if o == nil {
		o = &object{}
		l.objects[id] = o
	}
	return o
}

// forget drops an object that has no live writes.
func (l *Log) forget(id ids.Object) {
	if o := l.objects[id]; o != nil && len(o.writes) == 0 {
		delete(l.objects, id)
	}
}

// add takes a write into the table. One that is there already, because it was
// moved, lies where the newer record does.
func (l *Log) add(r *record, s *segment, at, size int64) {
	o := l.object(r.object)
	w := liveWrite{number: r.number, seg: s, at: at, size: size}
	i, there := slices.BinarySearchFunc(o.writes, r.number, byNumber)
	s.live++
	if there {
		o.writes[i].seg.live--
		o.writes[i] = w
		return
	}
	o.writes = slices.Insert(o.writes, i, w)
	l.live += size
}

func byNumber(w liveWrite, number uint64) int {
	switch {
	case w.number < number:
		return -1
	case w.number > number:
		return 1
	}
	return 0
}

// finish takes done writes off the table.
func (l *Log) finish(id ids.Object, from, upto uint64) {
	o := l.objects[id]
	if o == nil || upto < from {
		return
	}
	o.writes = slices.DeleteFunc(o.writes, func(w liveWrite) bool {
		done := w.number >= from && w.number <= upto
		if done {
			w.seg.live--
			l.live -= w.size
		}
		return done
	})
	if len(o.writes) > 0 {
		o.sent = onTheWay(o.sent, o.writes[0].number)
	}
}

// maxSent bounds the commits of an object that are remembered as on their way.
const maxSent = 64

// begun adds a commit; one that is there already was moved.
func begun(sent []content.Sent, s content.Sent) []content.Sent {
	sent = append(slices.DeleteFunc(sent, func(x content.Sent) bool { return x == s }), s)
	return sent[max(0, len(sent)-maxSent):]
}

// onTheWay leaves out the commits that have nothing from the lowest live write on.
func onTheWay(sent []content.Sent, lowest uint64) []content.Sent {
	return slices.DeleteFunc(sent, func(s content.Sent) bool { return s.Upto < lowest })
}

// Bytes is the size of the journal's files.
func (l *Log) Bytes() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes()
}

func (l *Log) bytes() int64 {
	var n int64
	for _, s := range l.segments {
		n += s.size
	}
	return n
}
