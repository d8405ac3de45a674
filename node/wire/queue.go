package wire

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// copyBody is the size up to which a body is copied behind its frame; larger
// ones are written from where they are.
const copyBody = 16 << 10

// keepArena is the largest encoding buffer that a queue keeps.
const keepArena = 1 << 20

// aheadLimit bounds the bytes of small frames that wait before large ones.
const aheadLimit = 1 << 20

// queue is what waits to be written to one connection: encoded frames end to
// end, and references to large bodies that stand between them. Where overtake
// is set, small frames do not wait for those with large bodies.
type queue struct {
	limit    int
	overtake bool
	lends    bool // see lend

	mu      sync.Mutex // guards all below
	batch   batch
	ahead   []byte // whole frames that go out before the next one with a large body
	size    int    // bytes in batch and ahead, and being written
	asleep  bool   // the writer waits for wake
	closed  bool
	dropped bool
	shared  *atomic.Int64 // counts size too, with that of others; nil: none does
	room    chan struct{} // closed when size falls below limit; nil when nobody waits
	wake    chan struct{} // capacity 1
	rest    bool          // of a lent batch, for the writer
	writing batch         // the writer's own, or lent; only swapped under mu
	passing []byte        // likewise, of ahead
	parts   net.Buffers   // the writer's own
}

type batch struct {
	arena []byte
	refs  []ref
	sent  int // bytes of arena that were written already
}

// ref is a body that belongs at position at of the arena. The first one of a
// frame says where that begins; the others have -1.
type ref struct {
	at    int
	frame int
	data  []byte
	done  func() // called once when data is no longer needed; may be nil
}

func newQueue(limit int) *queue {
	return &queue{limit: limit, wake: make(chan struct{}, 1)}
}

// begin locks the queue for appending a frame; false means that it is closed
// and stays unlocked. The caller appends to q.batch and calls commit.
func (q *queue) begin() bool {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return false
	}
	return true
}

// commit ends what begin began. n is how many bytes were added.
func (q *queue) commit(n int) {
	q.grow(n)
	wake := q.asleep
	q.asleep = false
	q.mu.Unlock()
	if wake {
		q.wake <- struct{}{}
	}
}

// grow counts bytes that wait from now on, or no more. The mutex is held.
func (q *queue) grow(n int) {
	q.size += n
	if q.shared != nil {
		q.shared.Add(int64(n))
	}
}

// share lets a counter count what waits here.
func (q *queue) share(with *atomic.Int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.dropped {
		q.shared = with
		with.Add(int64(q.size))
	}
}

// attach adds a body at the end of the batch, to the frame that begins at start
// of the arena; done may be nil. It must be called between begin and commit.
func (q *queue) attach(start int, body [][]byte, done func()) {
	b := &q.batch
	last := -1
	for _, part := range body {
		if len(part) <= copyBody {
			b.arena = append(b.arena, part...)
			continue
		}
		b.refs = append(b.refs, ref{at: len(b.arena), frame: start, data: part})
		last, start = len(b.refs)-1, -1
	}
	switch {
	case done == nil:
	case last >= 0:
		b.refs[last].done = done
	default:
		b.refs = append(b.refs, ref{at: len(b.arena), frame: start, done: done})
	}
}

// passes reports whether a frame may overtake others: it is small, and nobody
// waits to have its body back. A cancellation must not overtake what it cancels.
func (q *queue) passes(o *outgoing) bool {
	if !q.overtake || o.done != nil || o.kind == kindCancel {
		return false
	}
	n := 0
	for _, part := range o.body {
		n += len(part)
	}
	return n <= copyBody
}

// hasRoom reports whether a frame is taken now. It must be called after begin.
func (q *queue) hasRoom(passes bool) bool {
	return q.size < q.limit || passes && len(q.ahead) < aheadLimit
}

// wait blocks until there is room, the queue is closed or ctx ends.
func (q *queue) wait(ctx context.Context) error {
	for {
		q.mu.Lock()
		if q.closed || q.size < q.limit {
			q.mu.Unlock()
			return nil
		}
		if q.room == nil {
			q.room = make(chan struct{})
		}
		room := q.room
		q.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// take returns the next batch to write, waiting for one; false means closed.
func (q *queue) take() (*batch, bool) {
	for {
		q.mu.Lock()
		if q.closed {
			q.mu.Unlock()
			return nil, false
		}
		if q.rest {
			q.rest = false
			q.mu.Unlock()
			return &q.writing, true
		}
		if len(q.batch.arena)+len(q.batch.refs)+len(q.ahead) > 0 {
			q.batch, q.writing = q.writing, q.batch
			q.mu.Unlock()
			return &q.writing, true
		}
		q.asleep = true
		q.mu.Unlock()
		<-q.wake
	}
}

// empty reports whether nothing waits.
func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.batch.arena)+len(q.batch.refs)+len(q.ahead) == 0
}

// full reports whether no more should be added.
func (q *queue) full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.size >= q.limit
}

// maxOverfull is how many times its limit a queue may hold of answers, which
// do not wait for room, before the connection is given up.
const maxOverfull = 4

func (q *queue) overfull() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.size >= maxOverfull*q.limit
}

// waiting reports whether anything is queued or being written.
func (q *queue) waiting() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.size > 0 && !q.closed
}

// pass returns the small frames that wait, to be written now.
func (q *queue) pass() []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ahead, q.passing = q.passing[:0], q.ahead
	return q.passing
}

// write sends a batch and gives back the bodies, also those of a failed write.
// What may overtake goes out before each frame with a large body.
func (q *queue) write(b *batch, w io.Writer) error {
	var err error
	at := 0
	send := func(p []byte) {
		if err == nil && len(p) > 0 {
			_, err = w.Write(p)
			q.written(len(p))
		}
	}
	send(q.pass())
	for i := range b.refs {
		r := &b.refs[i]
		if r.frame > at {
			send(b.arena[at:r.frame])
			at = r.frame
		}
		if r.frame >= 0 {
			send(q.pass())
		}
		send(b.arena[at:r.at])
		at = r.at
		send(r.data)
		if r.done != nil {
			r.done()
		}
		*r = ref{}
	}
	send(b.arena[at:])
	b.reset()
	return err
}

// reset empties a batch that was written.
func (b *batch) reset() {
	b.refs, b.sent = b.refs[:0], 0
	if b.arena = b.arena[:0]; cap(b.arena) > keepArena {
		b.arena = nil
	}
}

// gatherSize is about how much one system call of gather writes; the bodies in
// it are given back and room is made when it is done.
const gatherSize = 1 << 20

// gather does what write does, with frames and bodies side by side in one
// system call where write makes one for each.
func (q *queue) gather(b *batch, w *raw) error {
	var err error
	parts, size := q.parts[:0], 0
	add := func(p []byte) {
		if len(p) > 0 {
			parts = append(parts, p)
			size += len(p)
		}
	}
	flush := func() {
		if err == nil && size > 0 {
			q.parts = parts
			err = w.writev(&q.parts)
			q.written(size)
		}
		parts, size = parts[:0], 0
	}
	at, first := b.sent, 0
	for i := range b.refs {
		r := &b.refs[i]
		add(b.arena[at:r.at])
		add(r.data)
		if at = r.at; size >= gatherSize {
			flush()
			b.give(first, i+1)
			first = i + 1
		}
	}
	add(b.arena[at:])
	flush()
	b.give(first, len(b.refs))
	q.parts = parts
	b.reset()
	return err
}

// give gives back bodies.
func (b *batch) give(from, to int) {
	for i := from; i < to; i++ {
		r := &b.refs[i]
		if r.done != nil {
			r.done()
		}
		*r = ref{}
	}
}

func (q *queue) written(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wrote(n)
}

// wrote makes room; the mutex is held.
func (q *queue) wrote(n int) {
	if q.dropped {
		return
	}
	q.grow(-n)
	if q.room != nil && q.size < q.limit {
		close(q.room)
		q.room = nil
	}
}

// close refuses further frames and wakes everybody. The writer calls drop
// afterwards.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.closed = true
	if q.room != nil {
		close(q.room)
		q.room = nil
	}
	if q.asleep {
		q.asleep = false
		q.wake <- struct{}{}
	}
}

// drop gives back bodies that were never written.
func (q *queue) drop() {
	q.mu.Lock()
	refs := q.batch.refs
	if q.rest {
		refs = append(refs, q.writing.refs...)
	}
	q.batch = batch{}
	q.grow(-q.size)
	q.dropped = true
	q.mu.Unlock()
	for _, r := range refs {
		if r.done != nil {
			r.done()
		}
	}
}
