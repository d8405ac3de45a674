// Package writelog is a client's write journal: what was written and
// acknowledged but is not yet committed, kept in files so that it survives a
// crash of the client's process (the kernel's page cache is enough for that;
// Sync makes it survive a crash of the machine). It decides nothing: at the
// next start it hands back what was left over, and content.Recover commits it
// or parks it. Nothing is dropped before somebody says that it is done. The
// format is described in docs/formats/write-journal.md.
//
// A Log may be used from many goroutines. Two processes cannot share a
// directory.
package writelog

import (
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/content/dirlock"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
)

// segmentBytes is after how many bytes a new file is begun; a file goes when
// everything in it is done. What the engine may have dirty bounds them all.
const segmentBytes = 16 << 20

// Options sets up a Log.
type Options struct {
	Log *slog.Logger
	// SegmentBytes is for tests; 0: 16 MiB.
	SegmentBytes int64
}

// Log is a directory with the write journal.
type Log struct {
	dir   string
	limit int64
	lock  *dirlock.Lock
	log   *slog.Logger

	mu       sync.Mutex
	segments []*segment // oldest first; the last is appended to
	live     map[geoconfig.ObjectID][]liveWrite
	next     uint64 // number of the next write
	first    uint64 // of this process: lower ones are left over
	buffer   []byte
	err      error // a write failed: the file's end is unknown
	closed   bool
}

// liveWrite is a write that is not done, and where it lies.
type liveWrite struct {
	number uint64
	seg    *segment
}

// segment is one file; live counts its writes that are not done.
type segment struct {
	number uint64
	file   *os.File
	size   int64
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
	l := &Log{dir: dir, limit: o.SegmentBytes, lock: lock, log: o.Log, live: map[geoconfig.ObjectID][]liveWrite{}, next: 1}
	if l.limit <= 0 {
		l.limit = segmentBytes
	}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	left, err := l.load()
	if err == nil {
		l.first = l.next
		err = l.begin()
	}
	if err != nil {
		l.closeFiles()
		_ = lock.Close() // the first error counts
		return nil, nil, fault.FromOS(op, dir, err)
	}
	return l, left, nil
}

// Close gives the directory back; what is not done stays in it. It is
// idempotent.
func (l *Log) Close() error {
	const op fault.Op = "writelog.Close"
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	l.closeFiles()
	return fault.FromOS(op, l.dir, l.lock.Close())
}

func (l *Log) closeFiles() {
	for i, s := range l.segments {
		_ = s.file.Close() // every write's own error counted
		if i == len(l.segments)-1 && s.live == 0 && len(l.live) == 0 {
			_ = os.Remove(s.file.Name()) // nothing in it is needed; if it stays, it is read again
		}
	}
	l.segments = nil
}

// Write implements content.Journal.
func (l *Log) Write(w content.Written) (uint64, error) {
	const op fault.Op = "writelog.Write"
	l.mu.Lock()
	defer l.mu.Unlock()
	r := record{kind: byte(w.Kind), object: w.Object, number: l.next, version: w.Version, offset: w.Offset, length: w.Length, data: w.Data}
	s, err := l.put(&r)
	if err != nil {
		return 0, fault.FromOS(op, l.dir, err)
	}
	l.next++
	s.live++
	l.live[w.Object] = append(l.live[w.Object], liveWrite{r.number, s})
	return r.number, nil
}

// Begin implements content.Journal.
func (l *Log) Begin(object geoconfig.ObjectID, upto uint64) error {
	const op fault.Op = "writelog.Begin"
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.put(&record{kind: kindBegin, object: object, number: upto})
	return fault.FromOS(op, l.dir, err)
}

// Done implements content.Journal. It leaves alone what was left over by
// earlier processes: Forget is for that.
func (l *Log) Done(object geoconfig.ObjectID, from, upto uint64, version uint64) {
	l.settle(object, max(from, l.first), upto, version)
}

// Forget says that all that was left over of an object is committed or parked.
func (l *Log) Forget(object geoconfig.ObjectID) { l.settle(object, 0, l.first-1, 0) }

// settle marks an object's writes from..upto as done.
func (l *Log) settle(object geoconfig.ObjectID, from, upto, version uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.put(&record{kind: kindDone, object: object, number: upto, version: version, offset: from}); err != nil {
		l.log.Warn("the write journal could not note a commit", "object", object.String(), "err", err)
		return // it will be found again at the next start
	}
	l.finish(object, from, upto)
	l.collect()
}

// finish takes done writes off the table.
func (l *Log) finish(object geoconfig.ObjectID, from, upto uint64) {
	keep := l.live[object][:0]
	for _, w := range l.live[object] {
		if w.number >= from && w.number <= upto {
			w.seg.live--
		} else {
			keep = append(keep, w)
		}
	}
	if l.live[object] = keep; len(keep) == 0 {
		delete(l.live, object)
	}
}

// collect removes the oldest files as long as nothing in them is needed. Their
// order matters: a note of what is done must not go before what it is about.
func (l *Log) collect() {
	for len(l.segments) > 1 && l.segments[0].live == 0 {
		s := l.segments[0]
		l.segments = l.segments[1:]
		_ = s.file.Close() // it goes anyway
		if err := os.Remove(s.file.Name()); err != nil {
			l.log.Warn("a file of the write journal cannot be removed", "file", s.file.Name(), "err", err)
		}
	}
}

// Sync implements content.Journal.
func (l *Log) Sync() error {
	const op fault.Op = "writelog.Sync"
	l.mu.Lock()
	if l.closed || l.err != nil {
		defer l.mu.Unlock()
		return l.state(op)
	}
	files := make([]*os.File, len(l.segments))
	for i, s := range l.segments {
		files[i] = s.file
	}
	l.mu.Unlock()
	for _, f := range files[max(0, len(files)-2):] { // older ones were synced when they were full
		err := f.Sync()
		if err == nil {
			continue
		}
		l.mu.Lock()
		if l.removed(f) { // all in it is committed
			err = nil
		} else {
			l.err = err // a failed fsync is final
		}
		l.mu.Unlock()
		if err != nil {
			return fault.FromOS(op, l.dir, err)
		}
	}
	return nil
}

// removed reports whether a file was collected meanwhile.
func (l *Log) removed(f *os.File) bool {
	for _, s := range l.segments {
		if s.file == f {
			return false
		}
	}
	return true
}

// state says why nothing more is taken; the mutex is held.
func (l *Log) state(op fault.Op) error {
	if l.err != nil {
		return fault.FromOS(op, l.dir, l.err)
	}
	return fault.E(fault.Closed, op, l.dir, "the write journal is closed")
}

// Bytes is the size of the journal's files.
func (l *Log) Bytes() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var n int64
	for _, s := range l.segments {
		n += s.size
	}
	return n
}

// put appends a record; the mutex is held.
func (l *Log) put(r *record) (*segment, error) {
	const op fault.Op = "writelog.put"
	if l.closed || l.err != nil {
		return nil, l.state(op)
	}
	s := l.segments[len(l.segments)-1]
	if s.size >= l.limit {
		if err := s.file.Sync(); err != nil {
			l.err = err
			return nil, err
		}
		if err := l.begin(); err != nil {
			return nil, err
		}
		s = l.segments[len(l.segments)-1]
	}
	l.buffer = r.head(l.buffer[:0])
	at := s.size
	if _, err := s.file.WriteAt(l.buffer, at); err != nil {
		return nil, l.undo(s, err)
	}
	if len(r.data) > 0 {
		if _, err := s.file.WriteAt(r.data, at+int64(len(l.buffer))); err != nil {
			return nil, l.undo(s, err)
		}
	}
	s.size = at + int64(len(l.buffer)+len(r.data))
	return s, nil
}

// undo cuts off a record that was not written whole (a full disk); where that
// fails too, the journal takes nothing more.
func (l *Log) undo(s *segment, cause error) error {
	if err := s.file.Truncate(s.size); err != nil {
		l.err = err
	}
	return cause
}

// begin starts a new file.
func (l *Log) begin() error {
	number := uint64(1)
	if n := len(l.segments); n > 0 {
		number = l.segments[n-1].number + 1
	}
	name := filepath.Join(l.dir, segmentName(number))
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt([]byte(magic), 0); err != nil {
		_ = f.Close() // the first error counts
		return err
	}
	l.segments = append(l.segments, &segment{number: number, file: f, size: int64(len(magic))})
	l.collect()
	return nil
}
