package content

import (
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/logattr"
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
		p := f.prepare(l)
		up := p.finish(f.carry(l, p.tail))
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
		f.core.work.Go(func() {
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
	c := f.core
	attr, err := f.send(l, up)
	if err != nil && f.expected(err) {
		err = nil
	}
	closed := func() bool { return err != nil && c.ctx.Err() != nil && unsettled(err) }
	if err != nil {
		f.invalidate()
		if l.recovered != nil && !closed() {
			err = l.recovered.refused(err)
		}
	}
	f.mu.Lock()
	switch {
	case err != nil:
		f.failLocked(err)
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
	c.end(l)
	if err != nil {
		c.opt.Logger.Warn("a write could not be committed", logattr.Object(f.object), logattr.Err(err))
	}
}

// settleLog notes in the journal that a layer is committed, or refused and its
// writer told.
func (f *file) settleLog(l *layer, newest uint64) {
	j := f.core.opt.Journal
	if j == nil || l.number == 0 {
		return
	}
	if l.settle == 0 { // its last bytes moved on: only the version is noted
		l.from = 1
	}
	j.Done(l.logObject(f.object), l.from, l.settle, newest)
}

// seal freezes a layer and sees that it is committed.
func (f *file) seal(l *layer, stream bool) {
	l.frozen, l.stream = true, stream && !l.appends
	if f.running {
		select {
		case f.wake <- struct{}{}:
		default:
		}
		return
	}
	if f.running = f.core.start(f.run); !f.running {
		f.abandon()
	}
}

// abandon fails all layers: the engine was closed.
func (f *file) abandon() {
	const op fault.Op = "content.abandon"
	f.failLocked(fault.E(fault.Closed, op, f.object.String(), "the engine was closed"))
	for _, l := range f.layers {
		l.err = f.err
		f.core.end(l)
	}
	f.layers, f.taken = nil, 0
}

// freeze seals what is dirty and returns the last layer, to wait for, or nil.
func (f *file) freeze() *layer {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.layers)
	if n == 0 {
		return nil
	}
	l := f.layers[n-1]
	if !l.frozen {
		f.seal(l, false)
	}
	l.stream = false // somebody waits for the last byte
	return l
}

// freezeIf seals the active layer where cond holds.
func (f *file) freezeIf(cond func(*layer) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.layers); n > 0 && !f.layers[n-1].frozen && cond(f.layers[n-1]) {
		f.seal(f.layers[n-1], false)
	}
}

// carry moves the tail of a layer to the next one, if nobody waits for it: where
// a stream is cut then depends on content only, and not on where layers end.
func (f *file) carry(l *layer, t tail) bool {
	if t.n == 0 {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.discarded || !l.stream || l.extend > t.off || t.off == l.segs[0].off {
		return false
	}
	var next *layer
	if f.taken < len(f.layers) {
		next = f.layers[f.taken]
	}
	switch {
	case next == nil:
		next = f.core.newLayer(l.since)
		f.layers = append(f.layers, next)
	case next.appends:
		return false
	}
	next.as, next.setid = l.as, next.setid || l.setid
	if next.mtime.Before(l.mtime) {
		next.mtime = l.mtime
	}
	next.number, next.settle, l.settle = max(next.number, l.number), max(next.settle, l.settle), 0
	next.logged, l.logged = next.logged+l.logged, 0
	if next.from == 0 || (l.from > 0 && l.from < next.from) {
		next.from = l.from
	}
	grown := int64(0)
	at := t.off
	for _, part := range t.parts {
		grown += next.under(part, at)
		at += uint64(len(part))
	}
	l.clear(t.off, chunk.MaxFileSize)
	f.core.budget.charge(charge{all: grown})
	if f.core.budget.crowded() && !next.frozen {
		f.seal(next, false)
	}
	return true
}
