package content

import (
	"context"
	"time"

	"cartwheel.dev/clients/trace"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/protocol/pb"
)

// commitLimit is as good as no limit: a context without a deadline gets one of
// the remote's own.
const commitLimit = 10 * 365 * 24 * time.Hour

// sending is a layer's way to the nodes over all attempts.
type sending struct {
	file    *file
	layer   *layer
	up      *upload
	soft    bool // it is given up in time: a program is told
	commits []Commit
	next    int  // of commits: the first that is not known to be run
	doubt   bool // whether that one was run is to be found out first
	full    bool // it was said that there is no room
	// over and size are the version that the next commit finds if nobody else
	// writes; size counts only where sized is set.
	over, size uint64
	sized      bool
	attr       *pb.Attr // after the last commit that was run
}

// send uploads and commits a layer and returns the attributes after the last
// commit. Where Soft is not set it ends only with success, with a refusal, or
// with the engine.
func (f *file) send(l *layer, up *upload) (*pb.Attr, error) {
	c := f.core
	s := &sending{file: f, layer: l, up: up, soft: c.opt.Soft && l.recovered == nil}
	if l.recovered.parked() {
		return nil, nil
	}
	for pause := c.opt.RetryAfter; ; pause = min(2*pause, lastPause) {
		if f.isDiscarded() {
			return nil, nil
		}
		err := s.try()
		switch {
		case err == nil:
			return s.attr, nil
		case s.soft, !s.mayGoOn(err), c.ctx.Err() != nil:
			return nil, err
		}
		if err := c.pause(pause); err != nil {
			return nil, err
		}
	}
}

// try makes one attempt with what is left to do.
func (s *sending) try() error {
	const op fault.Op = "content.try"
	c := s.file.core
	if c.ctx.Err() != nil {
		return fault.Wrap(fault.Closed, op, "", context.Cause(c.ctx))
	}
	if err := s.up.err; err != nil {
		if s.soft || !s.mayGoOn(err) {
			return err
		}
		ctx, cancel := s.layer.context(c)
		defer cancel()
		if err := s.up.again(ctx); err != nil {
			return err
		}
	}
	if s.layer.empty() {
		return nil
	}
	if s.commits == nil {
		s.begin()
	}
	for s.next < len(s.commits) {
		if s.doubt {
			if err := s.resolve(); err != nil {
				return err
			}
			continue
		}
		if err := s.commit(); err != nil {
			return err
		}
	}
	return nil
}

// begin notes that commits are on their way. Where the journal has no room for
// the note, a crash now leads to a conflict copy that was not needed.
func (s *sending) begin() {
	f, l := s.file, s.layer
	if j := f.core.opt.Journal; j != nil && l.number > 0 {
		if err := j.Begin(l.logObject(f.object), l.number, l.mtime.UnixNano()); err != nil {
			f.core.opt.Logger.Warn("the write journal could not note that a commit begins", logattr.Object(f.object), logattr.Err(err))
		}
	}
	f.mu.Lock()
	l.sent, l.doubts = true, f.doubts
	s.over = f.newest
	if f.base != nil {
		s.over, s.size, s.sized = f.base.serial, f.base.size, true
	}
	f.mu.Unlock()
	s.commits = l.splices(f.object, s.up.pieces)
}

// commit runs the next commit.
func (s *sending) commit() error {
	c := s.file.core
	ctx, cancel := s.context()
	defer cancel()
	next := s.commits[s.next]
	var res *pb.Result
	var err error
	for try := 0; ; try++ {
		res, err = c.remote.Commit(ctx, next)
		if !fault.Is(err, fault.Missing) || try == retries {
			break
		}
		if err := s.up.again(ctx); err != nil {
			return err
		}
	}
	switch {
	case err == nil:
		s.ran(res.GetAttr())
		return nil
	case !s.soft && inDoubt(err) && c.ctx.Err() == nil:
		c.opt.Logger.Warn("whether a commit was run is not known; its file is looked at", logattr.Object(s.file.object), logattr.Err(err))
		s.doubt = true
	}
	return err
}

// resolve finds out whether the next commit, whose answer will not come any
// more, was run. Where it was not, it is sent again under a new number. What a
// commit writes at its place may be written twice. What it appends may not.
func (s *sending) resolve() error {
	const op fault.Op = "content.resolve"
	f, c := s.file, s.commits[s.next]
	ctx, cancel := s.layer.context(f.core)
	defer cancel()
	attr, err := f.core.remote.Version(ctx, f.object)
	if err != nil {
		return err
	}
	now, ok := versionOf(attr)
	if !ok {
		return fault.E(fault.Again, op, f.object.String(), "the version's content is missing in the answer")
	}
	if now.serial == s.over || !c.Splice.GetAppend() {
		s.doubt = false
		return nil
	}
	if !s.sized {
		return fault.E(fault.IO, op, f.object.String(), "whether an append was run cannot be found out")
	}
	lost := lostAppend{file: f, layer: s.layer, splice: c.Splice, from: s.before(), at: s.size}
	there, err := lost.isIn(ctx, now)
	switch {
	case err != nil:
		return err
	case there:
		s.doubt = false
		s.ran(attr)
		return nil
	}
	return fault.E(fault.IO, op, f.object.String(), "whether an append was run cannot be found out: another client has written")
}

// before is how many bytes of an append layer the commits before the next one
// have appended.
func (s *sending) before() (n uint64) {
	for _, c := range s.commits[:s.next] {
		n += extentsEnd(c.Splice)
	}
	return n
}

func extentsEnd(c *pb.Commit) uint64 {
	if n := len(c.Extents); n > 0 {
		return c.Extents[n-1].Offset + c.Extents[n-1].Length
	}
	return 0
}

// context is what a commit runs under. Its number must not be given up while
// its outcome is unknown.
func (s *sending) context() (context.Context, context.CancelFunc) {
	c := s.file.core
	limit := commitLimit
	if s.soft {
		limit = c.opt.CommitTimeout
	}
	return context.WithTimeout(trace.With(c.ctx, s.layer.work), limit)
}

// ran notes that the next commit was run.
func (s *sending) ran(attr *pb.Attr) {
	s.file.core.made.Add(1)
	s.next++
	if s.attr = attr; attr == nil {
		s.file.invalidate()
		s.sized = false
		return
	}
	s.over, s.size, s.sized = attr.GetVersion(), attr.GetSize(), true
}

// unsettled reports whether what failed may be tried again: nobody refused it.
func unsettled(err error) bool {
	switch fault.KindOf(err) {
	case fault.TimedOut, fault.Canceled, fault.Interrupted, fault.Unreachable, fault.Closed, fault.Expired, fault.Overloaded,
		fault.Again, fault.NotActive, fault.WrongEpoch, fault.Missing:
		return true
	}
	return false
}

// mayGoOn reports whether a layer is sent again that did not get through. What a
// crash left waits for room, too: no program is there to be told, and the journal
// has it.
func (s *sending) mayGoOn(err error) bool {
	if s.layer.recovered == nil || !fault.Is(err, fault.NoSpace) {
		return unsettled(err)
	}
	if !s.full {
		s.full = true
		s.file.core.opt.Logger.Warn("writes that a crash left behind wait for room", logattr.Object(s.file.object), logattr.Err(err))
	}
	return true
}

// inDoubt reports whether a commit that failed may have been run.
func inDoubt(err error) bool { return unsettled(err) && !fault.Is(err, fault.Missing) }
