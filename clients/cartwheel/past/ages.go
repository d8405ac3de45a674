package past

import (
	"sync"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/hlc"
)

// An age is fixed to a time when it is looked up, so that all of the tree below it is of
// one time. It keeps that time while it is looked up again, and for ageLife after that:
// a program that works its way through the tree by whole paths sees one tree.

const (
	// ageLife is for how long after its last lookup an age stands for the same time.
	ageLife = time.Minute
	// maxAges bounds the ages that are remembered; with more, all are forgotten.
	maxAges = 1024
)

// age is the name of an age in a directory.
type age struct {
	dir  ids.Object
	cues cue.Set
	text string
}

// fixed is what an age stands for.
type fixed struct {
	at   hlc.Time
	used time.Duration // boot time
}

// ages remembers what ages stand for. Its zero value is empty.
type ages struct {
	mu sync.Mutex // guards by
	by map[age]fixed
}

// fix returns the time that an age stands for, which is at where it has none.
func (g *ages) fix(a age, at hlc.Time, now time.Duration) hlc.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	f, known := g.by[a]
	if !known || now-f.used >= ageLife {
		f.at = at
	}
	if g.by == nil || !known && len(g.by) >= maxAges {
		g.by = map[age]fixed{}
	}
	f.used = now
	g.by[a] = f
	return f.at
}
