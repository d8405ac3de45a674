package content

import (
	"bytes"
	"context"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
)

// Leftover is what a crash of the client left in the write journal of one
// object: writes that were acknowledged and are not known to be committed.
type Leftover struct {
	Object geoconfig.ObjectID
	// Known is the newest version that the client had seen; a newer one holds
	// somebody's later commit, or the client's own last.
	Known uint64
	// Begun is up to which write a commit may have been sent.
	Begun uint64
	// Writes are in the order of writing.
	Writes []Numbered
}

// Numbered is a write of the journal.
type Numbered struct {
	Number uint64
	Written
}

// Parked is a file as the leftover writes make it, over the current version, to
// be kept as a conflict copy. It is valid during the call that gets it.
type Parked struct {
	Leftover
	handle *Handle
	size   uint64
}

// Size is the size of the conflict copy.
func (p *Parked) Size() uint64 { return p.size }

// ReadAt reads the conflict copy.
func (p *Parked) ReadAt(ctx context.Context, b []byte, off uint64) (int, error) {
	return p.handle.ReadAt(ctx, b, off)
}

// Recover commits what a crash left over, before anybody opens the object. Where
// the object has changed meanwhile, it first looks whether the writes are
// there already (the commit was run, its answer lost); if they are not, or if
// the commit is refused, it calls park to keep them as a conflict copy. When it
// returns nil, the journal may forget them; after an error they stay.
func (e *Engine) Recover(ctx context.Context, left Leftover, o Open, park func(context.Context, *Parked) error) error {
	const op fault.Op = "content.Engine.Recover"
	attr, err := e.remote.Version(ctx, left.Object)
	gone := fault.Is(err, fault.NotFound) || fault.Is(err, fault.Stale)
	if err != nil && !gone {
		return fault.Wrap(fault.IO, op, left.Object.String(), err)
	}
	base, ok := versionOf(attr)
	if !ok {
		return fault.E(fault.Corrupt, op, left.Object.String(), "the version's content is missing in the answer")
	}
	switch {
	case gone:
	case base.serial <= left.Known:
		if err := e.replay(ctx, left, o); err == nil || unsettled(err) {
			return fault.Wrap(fault.IO, op, left.Object.String(), err)
		}
	default:
		there, rest := left.divide()
		ok, err := e.parked(there, base).there(ctx, base)
		if err == nil && ok {
			err = e.replay(ctx, rest, o)
		}
		if err != nil && unsettled(err) || err == nil && ok {
			return fault.Wrap(fault.IO, op, left.Object.String(), err)
		}
	}
	return fault.Wrap(fault.IO, op, left.Object.String(), park(ctx, e.parked(left, base)))
}

// divide parts the writes at the last one whose commit may have been sent.
func (l Leftover) divide() (sent, rest Leftover) {
	sent, rest = l, l
	sent.Writes, rest.Writes = nil, nil
	for _, w := range l.Writes {
		if w.Number <= l.Begun {
			sent.Writes = append(sent.Writes, w)
		} else {
			rest.Writes = append(rest.Writes, w)
		}
	}
	return sent, rest
}

// replay writes all again and commits it.
func (e *Engine) replay(ctx context.Context, left Leftover, o Open) error {
	h := e.Open(left.Object, nil, o)
	defer h.Close()
	for _, w := range left.Writes {
		var err error
		switch w.Kind {
		case WriteData:
			err = h.WriteAt(ctx, w.Data, w.Offset)
		case WriteAppend:
			_, err = h.Append(ctx, w.Data)
		case WriteHole:
			err = h.zero(ctx, w.Offset, w.Offset+w.Length)
		case WriteTruncate:
			err = h.Truncate(ctx, w.Offset)
		case WriteExtend:
			err = h.Allocate(ctx, 0, 0, w.Offset)
		}
		if err != nil {
			return err
		}
	}
	return h.Flush(ctx)
}

// parked builds the file that the writes make over a version; it is not among
// the engine's files, and nothing commits it.
func (e *Engine) parked(left Leftover, base *version) *Parked {
	l := e.newLayer(e.opt.Now())
	f := &file{engine: e, object: left.Object, base: base, newest: base.serial, layers: []*layer{l}}
	for _, w := range left.Writes {
		switch w.Kind {
		case WriteData, WriteAppend:
			l.write(w.Data, w.Offset)
		case WriteHole:
			l.hole(w.Offset, w.Offset+w.Length)
		case WriteTruncate:
			l.resize(w.Offset)
		case WriteExtend:
			l.extend = max(l.extend, w.Offset)
		}
	}
	return &Parked{Leftover: left, handle: &Handle{file: f}, size: f.size()}
}

// there reports whether the version has all the writes.
func (p *Parked) there(ctx context.Context, base *version) (bool, error) {
	l := p.handle.file.layers[0]
	if len(p.Writes) == 0 { // none of ours was sent: somebody else has written
		return false, nil
	}
	if p.size > base.size || (l.cut && p.size != base.size) {
		return false, nil
	}
	is := make([]byte, 0, bufferSize)
	for _, s := range l.segs {
		for off := s.off; off < s.end(); {
			n := min(s.end()-off, bufferSize)
			is = is[:n]
			if err := p.handle.readVersion(ctx, base, is, off); err != nil {
				return false, err
			}
			want := zeros(n)
			if s.buf != nil {
				want = s.buf[off-s.off:][:n]
			}
			if !bytes.Equal(is, want) {
				return false, nil
			}
			off += n
		}
	}
	return true, nil
}

func zeros(n uint64) []byte { return make([]byte, n) }
