package drilling

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"sync"
	"time"

	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/drill"
)

// Files is what the probe needs of a client; a *cartwheel.Client has it.
type Files interface {
	mount.PathWalker
	Forget(node mount.Inode, lookups uint64)
	Mkdir(ctx context.Context, c mount.Caller, dir mount.Inode, name string, mode uint32) (mount.Entry, error)
	Rmdir(ctx context.Context, c mount.Caller, dir mount.Inode, name string) error
	Unlink(ctx context.Context, c mount.Caller, dir mount.Inode, name string) error
	Create(ctx context.Context, c mount.Caller, dir mount.Inode, name string, mode uint32, flags mount.OpenFlags) (mount.Entry, mount.Opened, error)
	Open(ctx context.Context, c mount.Caller, node mount.Inode, flags mount.OpenFlags) (mount.Opened, error)
	Read(ctx context.Context, c mount.Caller, node mount.Inode, h mount.Handle, offset int64, buf []byte) (int, error)
	Write(ctx context.Context, c mount.Caller, node mount.Inode, h mount.Handle, offset int64, data []byte, flags mount.WriteFlags) (int, error)
	Fsync(ctx context.Context, c mount.Caller, node mount.Inode, h mount.Handle, dataOnly bool) error
	Release(node mount.Inode, h mount.Handle, owner mount.LockOwner, unlock bool)
	GetXattr(ctx context.Context, c mount.Caller, node mount.Inode, name string, buf []byte) (int, error)
	Close() error
}

const (
	// recordBytes is the length of one record of a stream.
	recordBytes = 128
	// rest is what a stream waits from an answer to its next question.
	rest = 50 * time.Millisecond
)

// record is the content of a stream's nth record.
func record(id string, stream, n int) []byte {
	text := fmt.Sprintf("%s %d %d", id, stream, n)
	text = fmt.Sprintf("%s %08x", text, crc32.ChecksumIEEE([]byte(text)))
	return append(bytes.Repeat([]byte{' '}, recordBytes-1-len(text)), text+"\n"...)
}

// gauge measures the longest time without an answer. Its owner guards it.
type gauge struct {
	last    time.Duration // when the last answer came, or the measurement began
	longest time.Duration
	usual   time.Duration // longest, before the drill
	count   int
}

func (g *gauge) answered(now time.Duration) {
	g.longest, g.last = max(g.longest, now-g.last), now
	g.count++
}

// mark begins the measurement of the drill.
func (g *gauge) mark(now time.Duration) { g.usual, g.longest, g.last = g.longest, 0, now }

// stream is one file, with a client that writes it and another one that reads it.
type stream struct {
	id             string // of the drill
	number         int
	site           ids.Site
	path           string // of the file
	node           mount.Inode
	writer, reader Files
	who            mount.Caller
	now            func() time.Duration

	mu            sync.Mutex // guards below
	acked         int        // records
	writes, reads gauge
	wrong         error // the first error that is no pause
}

// write writes records until ctx ends or an error is no pause.
func (s *stream) write(ctx context.Context) {
	var h *mount.Opened
	for n := 0; ctx.Err() == nil; {
		err := s.writeOne(ctx, &h, n)
		if s.settle(ctx, err, "a write") && err == nil {
			n++
			s.mu.Lock()
			s.acked = n
			s.writes.answered(s.now())
			s.mu.Unlock()
		}
		if err != nil && h != nil {
			s.writer.Release(s.node, h.Handle, 0, false)
			h = nil
		}
		if s.failed() != nil || !contact.Pause(ctx, rest) {
			break
		}
	}
	if h != nil {
		s.writer.Release(s.node, h.Handle, 0, false)
	}
}

// writeOne writes a record, and returns nil once it is on disk at the members.
func (s *stream) writeOne(ctx context.Context, h **mount.Opened, n int) error {
	if *h == nil {
		o, err := s.writer.Open(ctx, s.who, s.node, mount.OpenWrite)
		if err != nil {
			return err
		}
		*h = &o
	}
	if _, err := s.writer.Write(ctx, s.who, s.node, (*h).Handle, int64(n)*recordBytes, record(s.id, s.number, n), 0); err != nil {
		return err
	}
	return s.writer.Fsync(ctx, s.who, s.node, (*h).Handle, false)
}

// read reads the newest record that was acknowledged, again and again, as write writes.
func (s *stream) read(ctx context.Context) {
	for ctx.Err() == nil && s.failed() == nil {
		s.mu.Lock()
		acked := s.acked
		s.mu.Unlock()
		if acked > 0 {
			err := s.readOne(ctx, acked-1)
			if s.settle(ctx, err, "a read") && err == nil {
				s.mu.Lock()
				s.reads.answered(s.now())
				s.mu.Unlock()
			}
		}
		if !contact.Pause(ctx, rest) {
			return
		}
	}
}

// readOne reads a record and compares it.
func (s *stream) readOne(ctx context.Context, n int) error {
	got := make([]byte, recordBytes)
	if err := readAt(ctx, s.reader, s.who, s.path, int64(n)*recordBytes, &got); err != nil {
		return err
	}
	if !bytes.Equal(got, record(s.id, s.number, n)) {
		return fault.Errorf(fault.Corrupt, "drilling.read", s.path, "record %d was acknowledged, and a read of it got %q", n, got)
	}
	return nil
}

// readAt opens a file anew and fills buf from it, which is cut where the file ends.
func readAt(ctx context.Context, f Files, who mount.Caller, path string, offset int64, buf *[]byte) error {
	e, err := f.Walk(ctx, who, mount.Root, path)
	if err != nil {
		return err
	}
	if e.Node == 0 {
		return fault.E(fault.NotFound, "drilling.readAt", path, "the file of the drill is gone")
	}
	defer f.Forget(e.Node, 1)
	o, err := f.Open(ctx, who, e.Node, mount.OpenRead)
	if err != nil {
		return err
	}
	defer f.Release(e.Node, o.Handle, 0, false)
	n, err := f.Read(ctx, who, e.Node, o.Handle, offset, *buf)
	*buf = (*buf)[:n]
	return err
}

// settle takes an outcome in. An error that is no pause is kept; false: nothing more is
// to be counted.
func (s *stream) settle(ctx context.Context, err error, what string) bool {
	if ctx.Err() != nil {
		return false // whatever came is the end's
	}
	if err == nil || isPause(err) {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wrong == nil {
		s.wrong = fault.Errorf(fault.KindOf(err), "drilling.probe", s.path, "%s at %s failed, which is no pause: %v", what, s.site, err)
	}
	return false
}

func (s *stream) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wrong
}

// isPause reports whether an error says that the caller may try again.
func isPause(err error) bool {
	switch fault.KindOf(err) {
	case fault.Unreachable, fault.TimedOut, fault.Canceled, fault.Interrupted, fault.Again, fault.Overloaded, fault.NotActive, fault.WrongEpoch, fault.Expired, fault.Busy:
		return true
	}
	return false
}

// mark begins the measurement of the drill.
func (s *stream) mark(now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes.mark(now)
	s.reads.mark(now)
}

// waits returns how long the stream has had no answer now.
func (s *stream) waits(now time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now - min(s.writes.last, s.reads.last)
}

// answeredSince reports whether a write and a read were answered after a time.
func (s *stream) answeredSince(at time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes.last > at && s.reads.last > at
}

// result is what the stream measured. A pause that is not over counts as far as it came.
func (s *stream) result(now time.Duration) drill.Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	longest := func(g *gauge) int64 { return max(g.longest, now-g.last).Milliseconds() }
	return drill.Stream{Site: s.site, WritePauseMS: longest(&s.writes), ReadPauseMS: longest(&s.reads), UsualMS: s.writes.usual.Milliseconds(),
		Acknowledged: s.acked, Reads: s.reads.count}
}

// verify reads all that was acknowledged with another client, and returns how many records
// are missing or wrong.
func (s *stream) verify(ctx context.Context, f Files) (lost int, err error) {
	s.mu.Lock()
	acked := s.acked
	s.mu.Unlock()
	all := make([]byte, acked*recordBytes)
	for at := 0; at < len(all); {
		part := all[at:]
		if err := readAt(ctx, f, s.who, s.path, int64(at), &part); err != nil {
			return 0, err
		}
		if len(part) == 0 {
			all = all[:at]
		}
		at += len(part)
	}
	for n := range acked {
		if at := n * recordBytes; len(all) < at+recordBytes || !bytes.Equal(all[at:at+recordBytes], record(s.id, s.number, n)) {
			lost++
		}
	}
	return lost, nil
}
