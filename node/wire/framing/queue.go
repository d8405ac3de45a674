package framing

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
)

// copyBody is the size up to which a body is copied behind its frame. Larger
// ones are written from where they are.
const copyBody = 16 << 10

// keepArena is the largest encoding buffer that a queue keeps.
const keepArena = 1 << 20

// aheadLimit bounds the bytes of small frames that wait before large ones.
const aheadLimit = 1 << 20

// Queue holds the frames that wait to be written to one connection: encoded
// frames end to end, and references to large bodies between them. Overtake and
// Inline must be set before its first use.
type Queue struct {
	limit    int
	Overtake bool // small frames do not wait for those with large bodies
	Inline   bool // TryInline may return a batch

	mu      sync.Mutex // guards all below
	batch   Batch
	ahead   []byte // whole frames that go out before the next one with a large body
	size    int    // bytes in batch and ahead, and being written
	asleep  bool   // the writer waits for wake
	closed  bool
	dropped bool
	shared  *atomic.Int64 // counts size too, with that of other queues; may be nil
	room    chan struct{} // closed when size falls below limit; nil while nothing waits for room
	wake    chan struct{} // capacity 1
	rest    bool          // an inline write left a part of writing to the writer
	writing Batch         // belongs to the writer or to an inline write; only swapped under mu
	passing []byte        // likewise, of ahead
	parts   net.Buffers   // the writer's own
}

// Batch is what one write takes.
type Batch struct {
	arena []byte
	refs  []ref
	sent  int // bytes of arena that were written already
}

// Bytes returns a batch's frames. A batch of TryInline has nothing else.
func (b *Batch) Bytes() []byte { return b.arena }

// ref is a body that belongs at position at of the arena. The first one of a
// frame says where that begins; the others have -1.
type ref struct {
	at    int
	frame int
	data  []byte
	done  func() // called once when data is no longer needed; may be nil
}

// NewQueue returns a queue that is full with so many bytes.
func NewQueue(limit int) *Queue {
	return &Queue{limit: limit, wake: make(chan struct{}, 1)}
}

// State says whether a queue takes a frame.
type State int

// The states.
const (
	Open State = iota
	Full
	Closed
)

// Begin locks the queue for one frame and returns the memory to encode it behind.
// The caller then calls Append and either Commit or TryInline, or else Abort. With
// ahead, which MayOvertake allows, the frame overtakes those with large bodies. The
// state is Full only with bounded. In any state but Open the queue stays unlocked.
func (q *Queue) Begin(ahead, bounded bool) ([]byte, State) {
	q.mu.Lock()
	switch {
	case q.closed:
		q.mu.Unlock()
		return nil, Closed
	case bounded && !q.hasRoom(ahead):
		q.mu.Unlock()
		return nil, Full
	case ahead:
		return q.ahead, Open
	}
	return q.batch.arena, Open
}

// hasRoom reports whether a frame is taken now.
func (q *Queue) hasRoom(ahead bool) bool {
	return q.size < q.limit || ahead && len(q.ahead) < aheadLimit
}

// Append adds the frame that Begin began. Encoded is the memory that Begin
// returned with the frame at its end. A frame that goes ahead has no done.
// Append returns how many bytes it added.
func (q *Queue) Append(ahead bool, encoded []byte, body [][]byte, done func()) int {
	n := len(encoded)
	for _, part := range body {
		n += len(part)
	}
	if ahead {
		n -= len(q.ahead)
		q.ahead = encoded
		for _, part := range body {
			q.ahead = append(q.ahead, part...)
		}
		return n
	}
	start := len(q.batch.arena)
	q.batch.arena = encoded
	q.attach(start, body, done)
	return n - start
}

// Abort ends what Begin began, without a frame.
func (q *Queue) Abort() { q.mu.Unlock() }

// Commit ends what Begin began. n is what Append returned.
func (q *Queue) Commit(n int) {
	q.growLocked(n)
	wake := q.asleep
	q.asleep = false
	q.mu.Unlock()
	if wake {
		q.wake <- struct{}{}
	}
}

// growLocked counts bytes that wait from now on, or no more. The mutex is held.
func (q *Queue) growLocked(n int) {
	q.size += n
	if q.shared != nil {
		q.shared.Add(int64(n))
	}
}

// Share lets a counter count what waits here.
func (q *Queue) Share(with *atomic.Int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.dropped {
		q.shared = with
		with.Add(int64(q.size))
	}
}

// attach adds a body at the end of the batch, to the frame that begins at start
// of the arena. Done may be nil.
func (q *Queue) attach(start int, body [][]byte, done func()) {
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

// MayOvertake reports whether a frame with this body may go ahead of frames with
// large bodies. The caller does not let a cancellation overtake, which could pass
// the call that it cancels, nor a frame whose sender waits to have the body back.
func (q *Queue) MayOvertake(body [][]byte) bool {
	if !q.Overtake {
		return false
	}
	n := 0
	for _, part := range body {
		n += len(part)
	}
	return n <= copyBody
}

// Wait blocks until there is room, the queue is closed or ctx ends.
func (q *Queue) Wait(ctx context.Context) error {
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

// IsEmpty reports whether nothing waits.
func (q *Queue) IsEmpty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.idleLocked()
}

// idleLocked reports whether nothing waits. The mutex is held.
func (q *Queue) idleLocked() bool { return len(q.batch.arena)+len(q.batch.refs)+len(q.ahead) == 0 }

// IsFull reports whether no more should be added.
func (q *Queue) IsFull() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.size >= q.limit
}

// maxOverfull is how many times its limit a queue may hold of answers, which
// do not wait for room, before the connection is given up.
const maxOverfull = 4

// IsOverfull reports whether so much waits that the peer must be given up.
func (q *Queue) IsOverfull() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.size >= maxOverfull*q.limit
}

// IsWaiting reports whether anything is queued or being written.
func (q *Queue) IsWaiting() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.size > 0 && !q.closed
}

// Size returns how many bytes are queued or being written.
func (q *Queue) Size() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.size
}

// Close refuses further frames and wakes all goroutines that wait. The writer
// calls Drop afterwards.
func (q *Queue) Close() {
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

// Drop releases bodies that were never written.
func (q *Queue) Drop() {
	q.mu.Lock()
	refs := q.batch.refs
	if q.rest {
		refs = append(refs, q.writing.refs...)
	}
	q.batch = Batch{}
	q.growLocked(-q.size)
	q.dropped = true
	q.mu.Unlock()
	for _, r := range refs {
		if r.done != nil {
			r.done()
		}
	}
}
