package content

import (
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
)

// Bounds of one commit.
const (
	// smallLayer is up to how many bytes a layer travels in the commit's body.
	smallLayer = 256 << 10
	// maxBody and maxExtents bound a commit; a layer above them is committed
	// in several, in order.
	maxBody    = 1 << 20
	maxExtents = 1000
	// minRun is the shortest run of bytes of a large layer that is cut into
	// chunks here; shorter ones travel in commits' bodies.
	minRun = 128 << 10
	// retries bounds how often chunks that went missing are sent again.
	retries = 3
	// inFlight is how many layers of a file are uploaded or committed at once.
	inFlight = 3
)

// run commits the file's frozen layers, oldest first, until there is none. One
// goroutine does so for a file at a time: it cuts and hashes, while earlier
// layers are still on their way.
func (f *file) run() {
	var slots chan struct{}
	var last chan struct{} // done of the layer before
	for {
		l, idle := f.take()
		switch {
		case idle:
			f.drop()
			return
		case l == nil:
			select {
			case <-last:
			case <-f.wake:
			}
			continue
		}
		up := f.prepare(l)
		if len(up.puts) == 0 && (last == nil || isClosed(last)) {
			last = l.done
			f.finish(l, up) // nothing to overlap with: no goroutine
			continue
		}
		if slots == nil {
			slots = make(chan struct{}, inFlight)
		}
		slots <- struct{}{}
		before := last
		last = l.done
		f.engine.work.Go(func() {
			defer func() { <-slots }()
			up.wait()
			if before != nil {
				<-before
			}
			f.finish(l, up)
		})
	}
}

// take returns the next frozen layer, or nil while earlier ones are on their
// way, or idle, and then the goroutine must end.
func (f *file) take() (l *layer, idle bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.taken < len(f.layers) && f.layers[f.taken].frozen {
		f.taken++
		return f.layers[f.taken-1], false
	}
	f.running = f.taken > 0
	return nil, !f.running
}

// finish sends a prepared layer's commits, takes the layer off the file and
// tells those who wait. The layer is the oldest.
func (f *file) finish(l *layer, up *upload) {
	e := f.engine
	attr, err := f.send(l, up)
	if err != nil && f.expected(err) {
		err = nil
	}
	closed := func() bool { return err != nil && e.ctx.Err() != nil && unsettled(err) }
	if err != nil {
		f.invalidate()
		if l.recovered != nil && !closed() {
			err = l.recovered.refused(err)
		}
	}
	f.mu.Lock()
	switch {
	case err != nil:
		f.fail(err)
		f.base = nil
	case attr != nil:
		f.learn(attr)
		f.doubted = f.doubted || f.doubts != l.doubts
	}
	f.layers = f.layers[1:]
	f.taken--
	if len(f.layers) == 0 {
		f.layers = nil
	}
	if f.base != nil {
		f.rebase()
	}
	l.err = err
	newest := f.newest
	f.mu.Unlock()
	if !closed() {
		f.settleLog(l, newest)
	}
	e.end(l)
	if err != nil {
		e.opt.Log.Warn("a write could not be committed", "object", f.object.String(), "err", err)
	}
}

// settleLog notes in the journal that a layer is committed, or refused and its
// writer told.
func (f *file) settleLog(l *layer, newest uint64) {
	j := f.engine.opt.Journal
	if j == nil || l.number == 0 {
		return
	}
	if l.settle == 0 { // its last bytes moved on: only the version is noted
		l.from = 1
	}
	j.Done(l.logObject(f), l.from, l.settle, newest)
}

// logObject is the object that the journal has a layer's writes under.
func (l *layer) logObject(f *file) ids.Object {
	if l.recovered != nil {
		return l.recovered.left.loggedAs()
	}
	return f.object
}

// piece is one extent of a commit to be: a chunk, bytes for the body, or a
// hole where both are missing. Those of an append layer count from its start.
type piece struct {
	off, n  uint64
	address chunk.Address
	size    uint32 // of the whole chunk
	body    [][]byte
}

// splices parts a layer's pieces into commits.
func (f *file) splices(l *layer, pieces []piece) []Commit {
	var out []Commit
	fresh := func() *Commit {
		out = append(out, Commit{Object: f.object, As: l.as, Splice: &pb.Commit{
			Object: uint64(f.object), Append: l.appends, MtimeNs: l.mtime.UnixNano(), ClearSetid: l.setid,
		}})
		return &out[len(out)-1]
	}
	c := fresh()
	if l.cut {
		c.Splice.Size = &l.truncate
	}
	body, shift := uint64(0), uint64(0)
	for i := range pieces {
		p := &pieces[i]
		if len(c.Splice.Extents) == maxExtents || (p.body != nil && body > 0 && body+p.n > maxBody) {
			if l.appends { // the next commit counts from its own end of file
				shift = p.off
			}
			c, body = fresh(), 0
		}
		x := &pb.Extent{Offset: p.off - shift, Length: p.n}
		switch {
		case p.body != nil:
			x.Source = &pb.Extent_BodyOffset{BodyOffset: body}
			c.Body = append(c.Body, p.body...)
			body += p.n
		case p.size > 0:
			x.Source = &pb.Extent_Chunk{Chunk: p.address[:]}
			x.ChunkSize = p.size
		default:
			x.Source = &pb.Extent_Hole{Hole: true}
		}
		c.Splice.Extents = append(c.Splice.Extents, x)
	}
	if l.extend > 0 {
		c.Splice.Extend = &l.extend
	}
	return out
}
