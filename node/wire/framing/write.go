package framing

import (
	"io"
	"net"
)

// Take returns the next batch to write, and waits for one. False means that the
// queue is closed. Only the writer calls it.
func (q *Queue) Take() (*Batch, bool) {
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
		if !q.idleLocked() {
			q.batch, q.writing = q.writing, q.batch
			q.mu.Unlock()
			return &q.writing, true
		}
		q.asleep = true
		q.mu.Unlock()
		<-q.wake
	}
}

// takeAhead returns the small frames that wait, to be written now.
func (q *Queue) takeAhead() []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ahead, q.passing = q.passing[:0], q.ahead
	return q.passing
}

// Write sends a batch and releases its bodies, also those of a failed write.
// Frames that may overtake go out before each frame with a large body.
func (q *Queue) Write(b *Batch, w io.Writer) error {
	var err error
	at := 0
	send := func(p []byte) {
		if err == nil && len(p) > 0 {
			_, err = w.Write(p)
			q.written(len(p))
		}
	}
	send(q.takeAhead())
	for i := range b.refs {
		r := &b.refs[i]
		if r.frame > at {
			send(b.arena[at:r.frame])
			at = r.frame
		}
		if r.frame >= 0 {
			send(q.takeAhead())
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
func (b *Batch) reset() {
	b.refs, b.sent = b.refs[:0], 0
	if b.arena = b.arena[:0]; cap(b.arena) > keepArena {
		b.arena = nil
	}
}

// gatherSize is about how much one system call of Gather writes. When it is done,
// Gather releases the bodies in it and makes room.
const gatherSize = 1 << 20

// VectorWriter writes several slices in one system call and empties v.
type VectorWriter interface {
	WriteVector(v *net.Buffers) error
}

// Gather sends a batch as Write does, with frames and bodies side by side in one
// system call where Write makes one for each. Nothing overtakes.
func (q *Queue) Gather(b *Batch, w VectorWriter) error {
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
			err = w.WriteVector(&q.parts)
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
			b.release(first, i+1)
			first = i + 1
		}
	}
	add(b.arena[at:])
	flush()
	b.release(first, len(b.refs))
	q.parts = parts
	b.reset()
	return err
}

// release gives bodies back to their owners.
func (b *Batch) release(from, to int) {
	for i := from; i < to; i++ {
		r := &b.refs[i]
		if r.done != nil {
			r.done()
		}
		*r = ref{}
	}
}

func (q *Queue) written(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.makeRoomLocked(n)
}

// makeRoomLocked counts n bytes as written. The mutex is held.
func (q *Queue) makeRoomLocked(n int) {
	if q.dropped {
		return
	}
	q.growLocked(-n)
	if q.room != nil && q.size < q.limit {
		close(q.room)
		q.room = nil
	}
}

// inlineMost is the largest batch that TryInline returns.
const inlineMost = 64 << 10

// TryInline is Commit for a caller that can write the frame itself, which saves a
// switch to the writer. If nothing else waits or is being written, it returns the
// batch, and the caller must call FinishInline. Otherwise it returns nil, and the
// writer sends the frame.
func (q *Queue) TryInline(n int) *Batch {
	if b := &q.batch; !q.Inline || !q.asleep || len(q.ahead) > 0 || len(b.arena) > inlineMost || !b.isWhole() {
		q.Commit(n)
		return nil
	}
	q.growLocked(n)
	q.asleep = false
	q.batch, q.writing = q.writing, q.batch
	q.mu.Unlock()
	return &q.writing
}

// isWhole reports whether the arena holds all of a batch.
func (b *Batch) isWhole() bool {
	for i := range b.refs {
		if b.refs[i].data != nil {
			return false
		}
	}
	return true
}

// FinishInline takes back a batch that TryInline returned, of which n bytes were
// written. The writer sends the rest, and frames that came meanwhile.
func (q *Queue) FinishInline(b *Batch, n int) {
	whole := n == len(b.arena)
	if whole {
		b.release(0, len(b.refs))
		b.reset()
	}
	q.mu.Lock()
	q.makeRoomLocked(n)
	if q.rest = !whole; q.rest {
		b.sent = n
	}
	q.asleep = whole && !q.closed && q.idleLocked()
	wake := !q.asleep
	q.mu.Unlock()
	if wake {
		q.wake <- struct{}{}
	}
}
