package content

import (
	"bytes"
	"context"
	"slices"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/protocol/pb"
)

// Recovery is how a leftover is recovered.
type Recovery struct {
	// As tells of what Open.Who was in the journal how the writes are committed;
	// nil: as nobody in particular.
	As func(who []byte) Open
	// Park keeps what cannot be committed as a conflict copy.
	Park func(context.Context, *Parked) error
	// Decided, if not nil, is called once the engine shows the writes, or does
	// not because they are committed or parked: the object may be opened.
	Decided func()
}

// Recover commits what a crash left over, before any handle is opened on the
// object. Where the object has changed meanwhile, it first looks whether the
// writes are there already (the commit was run, its answer lost); if they are
// not, or if the commit is refused, it has them parked. What it has taken over
// is noted in the journal as done when it is committed or parked. After an error
// the rest stays there. Where the error comes after Decided, the engine goes on
// sending: it is the caller that no longer waits.
func (e *Engine) Recover(ctx context.Context, left Leftover, r Recovery) error {
	const op fault.Op = "content.Recover"
	if r.Decided == nil {
		r.Decided = func() {}
	}
	rest, attr, err := e.decide(ctx, left, r)
	if err != nil {
		return fault.Wrap(fault.IO, op, left.Object.String(), err)
	}
	left.Writes = rest
	last := e.adopt(left, attr, r)
	r.Decided()
	return fault.Wrap(fault.IO, op, left.Object.String(), last.wait(ctx))
}

// decide returns the writes of a leftover that are to be committed now, over
// which version.
func (e *Engine) decide(ctx context.Context, left Leftover, r Recovery) ([]Numbered, *pb.Attr, error) {
	const op fault.Op = "content.decide"
	attr, err := e.remote.Version(ctx, left.Object)
	gone := fault.Is(err, fault.NotFound) || fault.Is(err, fault.Stale)
	if err != nil && !gone {
		return nil, nil, err
	}
	base, ok := versionOf(attr)
	if !ok {
		return nil, nil, fault.E(fault.Corrupt, op, left.Object.String(), "the version's content is missing in the answer")
	}
	if !gone && (base.serial <= left.Known || plant.On(plant.RecoverOverNewer)) {
		return left.Writes, attr, nil
	}
	if !gone {
		rest, ours, err := e.committed(ctx, left, attr, base)
		switch {
		case err != nil:
			return nil, nil, err
		case ours:
			return rest.Writes, attr, nil
		}
		left = rest
	}
	if err := r.Park(ctx, e.parked(left, base)); err != nil {
		return nil, nil, err
	}
	e.settled(left, base.serial)
	return nil, nil, nil
}

// committed notes as done what an object has of a leftover, and returns the rest.
// Ours says that nobody else has written since, so that the rest may follow: the
// object's time of change is that of one of the leftover's commits.
func (e *Engine) committed(ctx context.Context, left Leftover, attr *pb.Attr, base *version) (rest Leftover, ours bool, err error) {
	for i, s := range slices.Backward(left.Sent) {
		last := i == len(left.Sent)-1
		ours = s.MtimeNs == attr.GetMtimeNs()
		sent, rest := left.divide(s.Upto)
		if len(sent.Writes) == 0 || !ours && !last {
			continue
		}
		there, err := e.parked(sent, base).there(ctx, base)
		if err != nil {
			return left, false, err
		}
		if there {
			e.settled(sent, base.serial)
			return rest, ours || len(rest.Writes) == 0, nil
		}
	}
	return left, false, nil
}

// settled notes that all of a leftover is committed or parked.
func (e *Engine) settled(left Leftover, version uint64) {
	if n := len(left.Writes); n > 0 && e.opt.Journal != nil {
		e.opt.Journal.Done(left.loggedAs(), left.Writes[0].Number, left.Writes[n-1].Number, version)
	}
}

// park keeps a leftover as a conflict copy over the version that the object is at.
func (e *Engine) park(left Leftover, r Recovery) error {
	const op fault.Op = "content.park"
	attr, err := e.remote.Version(e.ctx, left.Object)
	if err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Stale) {
		return err
	}
	base, ok := versionOf(attr)
	if !ok {
		return fault.E(fault.Corrupt, op, left.Object.String(), "the version's content is missing in the answer")
	}
	return r.Park(e.ctx, e.parked(left, base))
}

// adopt makes layers of the writes, as if they had been written just now over
// the version, and returns the last of them, or nil. The journal has them
// already.
func (e *Engine) adopt(left Leftover, attr *pb.Attr, r Recovery) *layer {
	if len(left.Writes) == 0 {
		return nil
	}
	f := e.table.open(left.Object)
	defer f.drop()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handles--
	fresh := e.layersOf(left, r)
	f.layers = append(f.layers, fresh...)
	if attr != nil {
		f.learn(attr)
	}
	for _, l := range fresh {
		l.frozen = true
		e.budget.charge(charge{all: l.bytes})
		if e.logged != nil {
			e.logged.charge(charge{all: l.logged})
		}
	}
	last := fresh[len(fresh)-1]
	f.seal(last, false)
	return last
}

// layersOf makes layers of a leftover's writes: one of each run of appends, and
// of each run of other writes, of one writer.
func (e *Engine) layersOf(left Leftover, r Recovery) []*layer {
	shared := &recovered{core: e.core, left: left, park: func() error { return e.park(left, r) }}
	var out []*layer
	var l *layer
	var who []byte
	for _, w := range left.Writes {
		if l == nil || l.appends != (w.Kind == WriteAppend) || !bytes.Equal(who, w.Who) {
			l = e.newLayer(e.opt.Wall())
			l.recovered, l.appends, l.from = shared, w.Kind == WriteAppend, w.Number
			if r.As != nil {
				o := r.As(w.Who)
				l.as, l.setid = o.As, o.ClearSetID
			}
			who, out = w.Who, append(out, l)
		}
		l.number, l.settle = w.Number, w.Number
		if e.logged != nil {
			l.logged += int64(len(w.Data)) + journalHead
		}
		if l.appends {
			w.Offset = l.length()
		}
		l.apply(w.Written)
	}
	return out
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

// parked builds the file that the writes make over a version; it is not among
// the engine's files, and nothing commits it.
func (e *Engine) parked(left Leftover, base *version) *Parked {
	l := e.newLayer(e.opt.Wall())
	f := &file{core: e.core, object: left.Object, base: base, newest: base.serial, layers: []*layer{l}}
	end := uint64(0) // of the last append
	for _, w := range left.Writes {
		if w.Kind == WriteAppend {
			if w.Version == 0 { // the writer knew of no version, so of no end
				w.Offset = max(w.Offset, base.size)
			}
			w.Offset = max(w.Offset, end)
			end = w.Offset + uint64(len(w.Data))
		}
		l.apply(w.Written)
	}
	return &Parked{Leftover: left, handle: &Handle{file: f, source: f.source()}, size: f.size()}
}

// there reports whether the version has all the writes.
func (p *Parked) there(ctx context.Context, base *version) (bool, error) {
	l := p.handle.file.layers[0]
	if p.size > base.size || (l.cut && p.size != base.size) {
		return false, nil
	}
	is := make([]byte, 0, bufferSize)
	for _, s := range l.segs {
		for off := s.off; off < s.end(); {
			n := min(s.end()-off, bufferSize)
			is = is[:n]
			if err := p.handle.source.readVersion(ctx, base, is, off); err != nil {
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
