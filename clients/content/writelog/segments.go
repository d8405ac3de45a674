package writelog

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/plant"
)

// stateLocked says why nothing more is taken; the mutex is held.
func (l *Log) stateLocked(op fault.Op) error {
	if l.err != nil {
		return fault.FromOS(op, l.dir, l.err)
	}
	return fault.E(fault.Closed, op, l.dir, "the write journal is closed")
}

// putLocked appends a record, to a new file where the last is full; the mutex is
// held. Afterwards the journal is kept from growing.
func (l *Log) putLocked(r *record) (*segment, error) {
	const op fault.Op = "writelog.putLocked"
	if l.closed || l.err != nil {
		return nil, l.stateLocked(op)
	}
	if s := l.segments[len(l.segments)-1]; s.size >= l.limit {
		if err := l.begin(); err != nil {
			return nil, err
		}
		if err := l.compact(); err != nil {
			l.logger.Warn("old writes could not be moved forward in the write journal", logattr.Err(err))
		}
		if l.err != nil { // the sync failed: nothing more is taken
			return nil, l.stateLocked(op)
		}
		l.wakeLocked()
	}
	return l.append(r)
}

// append writes a record to the last file.
func (l *Log) append(r *record) (*segment, error) {
	s := l.segments[len(l.segments)-1]
	l.buffer = r.head(l.buffer[:0])
	at := s.size
	n, err := s.file.WriteAt(l.buffer, at)
	if err == nil && len(r.data) > 0 {
		_, err = s.file.WriteAt(r.data, at+int64(n))
	}
	if err != nil && n > 0 {
		return nil, l.undo(s, err)
	} else if err != nil {
		return nil, err
	}
	s.size = at + r.size()
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
		_ = os.Remove(name)
		return err
	}
	l.segments = append(l.segments, &segment{number: number, file: f, size: int64(len(magic))})
	l.collect()
	return nil
}

// collect removes the oldest files as long as nothing in them is needed. Their
// order matters: a note of what is done must not go before what it is about.
func (l *Log) collect() {
	for len(l.segments) > 1 && (l.segments[0].live == 0 || plant.On(plant.WritelogDropsLive)) {
		s := l.segments[0]
		l.segments = l.segments[1:]
		l.remove(s)
	}
}

func (l *Log) remove(s *segment) {
	_ = s.file.Close() // it goes anyway
	if err := os.Remove(s.file.Name()); err != nil {
		l.logger.Warn("a file of the write journal cannot be removed", slog.String("file", s.file.Name()), logattr.Err(err))
	}
}

// compact moves the live writes of the oldest files forward while the files are
// larger than twice what is live in them: one write that stays for long must not
// keep all that was written after it. What was moved is on disk before its old
// file goes, and that file goes before any note in a later one: a write that is
// done would come back without its note. The writer waits for that, once a file.
func (l *Log) compact() error {
	for len(l.segments) > 2 && l.bytes() > 2*l.live+2*l.limit && l.segments[0].live > 0 {
		oldest := l.segments[0]
		for id, o := range l.objects {
			if err := l.move(id, o, oldest); err != nil {
				return err
			}
		}
		if err := l.sync(l.segments[len(l.segments)-1].file); err != nil {
			l.err = err // a failed fsync is final
			return err
		}
		l.segments = l.segments[1:]
		l.remove(oldest)
		l.collect()
	}
	return nil
}

// move writes an object's live writes of a file again, and what else the journal
// knows of the object.
func (l *Log) move(id ids.Object, o *object, from *segment) error {
	const op fault.Op = "writelog.move"
	moved := false
	for i := range o.writes {
		w := &o.writes[i]
		if w.seg != from {
			continue
		}
		raw := make([]byte, w.size)
		if _, err := from.file.ReadAt(raw, w.at); err != nil {
			return err
		}
		r, n := decode(raw)
		if n != len(raw) || r.number != w.number {
			return fault.E(fault.Corrupt, op, from.file.Name(), "a write is not where it was put")
		}
		r.first = o.writes[0].number
		s, err := l.append(&r)
		if err != nil {
			return err
		}
		from.live--
		s.live++
		w.seg, w.at = s, s.size-w.size
		moved = true
	}
	if !moved {
		return nil
	}
	if len(o.sent) == 0 { // only the version is noted
		_, err := l.append(&record{kind: kindBegin, object: id, version: o.known})
		return err
	}
	for _, s := range o.sent {
		if _, err := l.append(&record{kind: kindBegin, object: id, number: s.Upto, version: o.known, offset: uint64(s.MtimeNs)}); err != nil {
			return err
		}
	}
	return nil
}

// wakeLocked has full files synced; the mutex is held.
func (l *Log) wakeLocked() {
	select {
	case l.full <- struct{}{}:
	default:
	}
}

// keepSynced syncs files that are full, so that fsync has little to do.
func (l *Log) keepSynced() {
	for range l.full {
		if err := l.Sync(); err != nil && !fault.Is(err, fault.Closed) {
			l.logger.Warn("the write journal cannot be synced", logattr.Err(err))
		}
	}
}

// Sync implements content.Journal. The mutex is not held meanwhile.
func (l *Log) Sync() error {
	const op fault.Op = "writelog.Sync"
	l.mu.Lock()
	if l.closed || l.err != nil {
		defer l.mu.Unlock()
		return l.stateLocked(op)
	}
	type todo struct {
		s    *segment
		size int64
	}
	var dirty []todo
	for _, s := range l.segments {
		if s.synced < s.size {
			dirty = append(dirty, todo{s, s.size})
		}
	}
	l.mu.Unlock()
	for _, d := range dirty {
		err := l.sync(d.s.file)
		l.mu.Lock()
		switch {
		case err == nil:
			d.s.synced = max(d.s.synced, d.size)
		case l.has(d.s): // otherwise all in it is committed
			l.err = err // a failed fsync is final
			l.mu.Unlock()
			return fault.FromOS(op, l.dir, err)
		}
		l.mu.Unlock()
	}
	return nil
}

// has reports whether a file was not removed meanwhile.
func (l *Log) has(s *segment) bool {
	return slices.Contains(l.segments, s)
}

// closeFiles closes all files. The last one goes where nothing is needed.
func (l *Log) closeFiles() {
	for i, s := range l.segments {
		_ = s.file.Close() // every write's own error counted
		if i == len(l.segments)-1 && i == 0 && s.live == 0 {
			_ = os.Remove(s.file.Name()) // if it stays, it is read again
		}
	}
	l.segments = nil
}
