package wire

// lendMost is the largest batch that is lent.
const lendMost = 64 << 10

// lend is commit for somebody who would write the frame himself, so that no
// other goroutine has to: where nothing else waits or is being written, he gets
// the batch, and must call back.
func (q *queue) lend(n int) *batch {
	if b := &q.batch; !q.lends || !q.asleep || len(q.ahead) > 0 || len(b.arena) > lendMost || !b.whole() {
		q.commit(n)
		return nil
	}
	q.grow(n)
	q.asleep = false
	q.batch, q.writing = q.writing, q.batch
	q.mu.Unlock()
	return &q.writing
}

// whole reports whether the arena holds all of a batch.
func (b *batch) whole() bool {
	for i := range b.refs {
		if b.refs[i].data != nil {
			return false
		}
	}
	return true
}

// back takes a lent batch back, of which so many bytes were written. The writer
// writes the rest, and what came meanwhile.
func (q *queue) back(b *batch, n int) {
	whole := n == len(b.arena)
	if whole {
		b.give(0, len(b.refs))
		b.reset()
	}
	q.mu.Lock()
	q.wrote(n)
	if q.rest = !whole; q.rest {
		b.sent = n
	}
	q.asleep = whole && !q.closed && len(q.batch.arena)+len(q.batch.refs)+len(q.ahead) == 0
	wake := !q.asleep
	q.mu.Unlock()
	if wake {
		q.wake <- struct{}{}
	}
}
