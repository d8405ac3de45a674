package content

import (
	"context"
	"slices"
	"sync"

	"cartwheel.dev/node/chunk"
)

// batchBytes is about how much travels in one PutChunks.
const batchBytes = 2 << 20

// upload is a layer on its way: its pieces in order of offset, and the batches
// of chunks that must be stored before they are committed.
type upload struct {
	file   *file
	pieces []piece
	puts   []*put
	err    error
}

// put is one batch of chunks.
type put struct {
	addresses []chunk.Address
	sizes     []uint32
	body      [][]byte // of each chunk its parts
	parts     []int    // how many parts of body each chunk has
	bytes     int
	done      chan struct{}
	err       error
}

// prepare turns a frozen layer into pieces. Small layers travel in the commit;
// of large ones the long runs are cut into chunks, and batches of these are on
// their way when it returns. The caller says by finish what becomes of the tail.
func (f *file) prepare(l *layer) *preparer {
	up := &upload{file: f}
	p := &preparer{up: up, layer: l}
	if f.isDiscarded() {
		return p
	}
	segs, total := f.segments(l)
	for i := 0; i < len(segs); {
		j, n := i+1, segs[i].n
		for j < len(segs) && segs[i].buf != nil && segs[j].buf != nil && segs[j-1].end() == segs[j].off {
			n += segs[j].n
			j++
		}
		switch run := segs[i:j]; {
		case run[0].buf == nil:
			up.pieces = append(up.pieces, piece{off: run[0].off, n: n})
		case total <= smallLayer || n < minRun:
			up.inBody(run)
		default:
			p.run(run, j == len(segs))
		}
		i = j
	}
	return p
}

// finish adds the tail, unless it is carried to the next layer, and sends the
// last batch.
func (p *preparer) finish(carried bool) *upload {
	if t := p.tail; t.n > 0 && !carried {
		p.chunk(t.off, t.n, t.parts)
	}
	p.send()
	return p.up
}

// segments copies the list of a frozen layer's segments, those of an append
// layer counted from its start, and adds up their bytes.
func (f *file) segments(l *layer) (segs []segment, total uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	segs = slices.Clone(l.segs)
	for i := range segs {
		if l.appends {
			segs[i].off -= l.base
		}
		if segs[i].buf != nil {
			total += segs[i].n
		}
	}
	return segs, total
}

// inBody makes pieces of a short run's bytes.
func (u *upload) inBody(run []segment) {
	var open *piece
	for _, s := range run {
		for rest, off := s.buf[:s.n], s.off; len(rest) > 0; {
			if open == nil || open.n == chunk.MaxSize {
				u.pieces = append(u.pieces, piece{off: off})
				open = &u.pieces[len(u.pieces)-1]
			}
			n := min(uint64(len(rest)), chunk.MaxSize-open.n)
			open.body = append(open.body, rest[:n])
			open.n += n
			rest, off = rest[n:], off+n
		}
	}
}

// preparer cuts the runs of one layer.
type preparer struct {
	up       *upload
	layer    *layer
	splitter *chunk.Splitter
	hasher   *chunk.Hasher
	batch    *put
	tail     tail
}

// tail is what lies behind the last boundary of a layer's last run.
type tail struct {
	off, n uint64 // n is 0 where nothing does
	parts  [][]byte
}

// run cuts one run of contiguous segments. The tail of the last one is kept for
// finish.
func (p *preparer) run(run []segment, last bool) {
	if p.splitter == nil {
		p.splitter, p.hasher = chunk.NewSplitter(), chunk.NewHasher()
	}
	p.splitter.Reset()
	off := run[0].off
	var parts [][]byte
	pending := uint64(0)
	for _, s := range run {
		for rest := s.buf[:s.n]; len(rest) > 0; {
			n, boundary := p.splitter.Next(rest)
			if n > 0 {
				parts = append(parts, rest[:n:n])
				pending += uint64(n)
				rest = rest[n:]
			}
			if boundary {
				p.chunk(off, pending, parts)
				off += pending
				parts, pending = nil, 0
			}
		}
	}
	switch {
	case pending == 0:
	case last:
		p.tail = tail{off, pending, parts}
	default:
		p.chunk(off, pending, parts)
	}
}

// chunk adds one chunk to the pieces and to the batch.
func (p *preparer) chunk(off, n uint64, parts [][]byte) {
	a := p.hasher.Sum(parts)
	p.up.pieces = append(p.up.pieces, piece{off: off, n: n, address: a, size: uint32(n)})
	if p.batch == nil {
		p.batch = &put{done: make(chan struct{})}
	}
	b := p.batch
	b.addresses = append(b.addresses, a)
	b.sizes = append(b.sizes, uint32(n))
	b.body = append(b.body, parts...)
	b.parts = append(b.parts, len(parts))
	if b.bytes += int(n); b.bytes >= batchBytes {
		p.send()
	}
}

// send starts the batch on its way.
func (p *preparer) send() {
	b := p.batch
	if p.batch = nil; b == nil {
		return
	}
	p.up.puts = append(p.up.puts, b)
	f := p.up.file
	ask, first := f.dedup.ask(), !f.dedup.asked
	f.dedup.asked = true
	todo := b
	if first { // whether what follows is asked for depends on this answer
		ctx, cancel := p.layer.context(f.core)
		defer cancel()
		ask = false
		if todo, b.err = f.lacking(ctx, b); b.err != nil || len(todo.addresses) == 0 {
			close(b.done)
			return
		}
	}
	c := f.core
	c.work.Go(func() {
		defer close(b.done)
		b.err = c.flight.run(c.ctx, func() error {
			ctx, cancel := p.layer.context(c)
			defer cancel()
			return f.store(ctx, todo, ask)
		})
	})
}

// store sends a batch, or, where it asks first, what is missing of it.
func (f *file) store(ctx context.Context, b *put, ask bool) error {
	if f.isDiscarded() {
		return nil
	}
	if ask {
		rest, err := f.lacking(ctx, b)
		if err != nil || len(rest.addresses) == 0 {
			return err
		}
		b = rest
	}
	err := f.core.remote.PutChunks(ctx, f.object, b.addresses, b.sizes, b.body)
	if err == nil {
		f.core.made.Add(1)
	}
	return err
}

// lacking returns the part of a batch that the members lack.
func (f *file) lacking(ctx context.Context, b *put) (*put, error) {
	missing, err := f.core.remote.HaveChunks(ctx, f.object, b.addresses, b.sizes, b.body)
	if err != nil {
		return nil, err
	}
	rest := &put{}
	at := 0
	for i := range b.addresses {
		parts := b.body[at : at+b.parts[i]]
		at += b.parts[i]
		if i >= len(missing) || missing[i] {
			rest.addresses = append(rest.addresses, b.addresses[i])
			rest.sizes = append(rest.sizes, b.sizes[i])
			rest.body = append(rest.body, parts...)
			rest.parts = append(rest.parts, b.parts[i])
		}
	}
	f.dedup.hit.Store(len(rest.addresses) < len(b.addresses))
	return rest, nil
}

// wait waits for the batches and keeps the first failure.
func (u *upload) wait() {
	for _, b := range u.puts {
		<-b.done
		if b.err != nil && u.err == nil {
			u.err = b.err
		}
	}
}

// again asks for each batch what is missing now, and sends that.
func (u *upload) again(ctx context.Context) error {
	var group sync.WaitGroup
	for _, b := range u.puts {
		group.Go(func() {
			b.err = u.file.core.flight.run(ctx, func() error { return u.file.store(ctx, b, true) })
		})
	}
	group.Wait()
	u.err = nil
	u.wait()
	return u.err
}
