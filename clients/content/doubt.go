package content

import (
	"bytes"
	"context"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/protocol/pb"
)

// resolve finds out whether the next commit, whose answer will not come any
// more, was run. Where it was not, it is sent again under a new number. What a
// commit writes at its place may be written twice. What it appends may not.
func (s *sending) resolve() error {
	const op fault.Op = "content.resolve"
	f, c := s.file, s.commits[s.next]
	ctx, cancel := s.layer.context(f.engine)
	defer cancel()
	attr, err := f.engine.remote.Version(ctx, f.object)
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
	there, err := s.appended(ctx, c, now)
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

// appended reports whether a version has what a commit appends where it would
// have come to lie.
func (s *sending) appended(ctx context.Context, c Commit, now *version) (bool, error) {
	h := &Handle{file: s.file}
	before := s.before()
	for _, x := range c.Splice.Extents {
		for done := uint64(0); done < x.Length; {
			n := min(x.Length-done, bufferSize)
			at := s.size + x.Offset + done
			if at+n > now.size {
				return false, nil
			}
			is, want := make([]byte, n), make([]byte, n)
			if err := h.readVersion(ctx, now, is, at); err != nil {
				return false, err
			}
			s.own(want, before+x.Offset+done)
			if !bytes.Equal(is, want) {
				return false, nil
			}
			done += n
		}
	}
	return true, nil
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

// own fills p with what the append layer has from off on, which counts from the
// layer's start.
func (s *sending) own(p []byte, off uint64) {
	s.file.mu.Lock()
	defer s.file.mu.Unlock()
	l := s.layer
	off += l.base
	for i := l.at(off); i < len(l.segs) && len(p) > 0; i++ {
		seg := l.segs[i]
		if seg.buf == nil || seg.off > off {
			return
		}
		n := copy(p, seg.buf[off-seg.off:seg.n])
		p, off = p[n:], off+uint64(n)
	}
}
