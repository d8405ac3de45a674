package pack

import (
	"sync"
	"time"

	"cartwheel.dev/node/chunk"
)

// pinsKept bounds one generation of pins; a full one pins every chunk until it
// has expired, which errs on the safe side.
const pinsKept = 1 << 18

// pins remember which chunks must not be collected. They live in memory and yet
// outlive a crash: for the whole limit after a start, every chunk is pinned.
// Two generations, each as long as the limit, are enough to forget the rest.
type pins struct {
	now   func() time.Duration
	limit time.Duration

	mu       sync.Mutex // guards what follows
	all      time.Duration
	turned   time.Duration
	young    map[pinKey]struct{}
	old      map[pinKey]struct{}
	youngAll bool
	oldAll   bool
}

// pinKey is a part of an address: a false match keeps a chunk a little longer.
type pinKey [8]byte

func newPins(now func() time.Duration, limit time.Duration) *pins {
	t := now()
	return &pins{now: now, limit: limit, all: t + limit, turned: t, young: map[pinKey]struct{}{}, old: map[pinKey]struct{}{}}
}

func (p *pins) turn(t time.Duration) {
	if t-p.turned < p.limit {
		return
	}
	p.old, p.oldAll = p.young, p.youngAll
	if t-p.turned >= 2*p.limit {
		p.old, p.oldAll = map[pinKey]struct{}{}, false
	}
	p.young, p.youngAll = map[pinKey]struct{}{}, false
	p.turned = t
}

func (p *pins) add(a *chunk.Address) {
	t := p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn(t)
	if len(p.young) >= pinsKept {
		p.youngAll = true
		return
	}
	p.young[pinKey(a[:8])] = struct{}{}
}

func (p *pins) has(a *chunk.Address) bool {
	t := p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn(t)
	if t < p.all || p.youngAll || p.oldAll {
		return true
	}
	k := pinKey(a[:8])
	_, young := p.young[k]
	_, old := p.old[k]
	return young || old
}
