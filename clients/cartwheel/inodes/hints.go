package inodes

import (
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
)

// A file is one node, by whatever path it was reached, since it has one page cache.
// So an open does not say under which cues it is. But a kernel looks a file below cues
// up again at each open, in the same thread and right before. What each thread looked
// up a moment ago is kept here.

// hintLife is how long a lookup below cues counts for an open by the same thread.
const hintLife = time.Second

// limitedLife is how long cues that limit an operation's time count for what a kernel
// asks of a file by itself, in the name of any thread or of none, unless the file is
// looked up without them.
const limitedLife = time.Minute

// maxHints bounds the lookups that are remembered. Beyond that those go whose time is
// over, and where there are none, any.
const maxHints = 4096

// asked is a file that a thread looked up.
type asked struct {
	pid    uint32
	object ids.Object
}

// hint is under which cues a file was looked up last.
type hint struct {
	at   time.Duration
	cues cue.Set
}

// NoteCues remembers under which cues a thread looked a file up.
func (t *Table) NoteCues(o ids.Object, pid uint32, cues cue.Set, now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, limits := t.knownLocked(o), cues.Terms().Limit > 0
	if n != nil && limits {
		n.limited = &hint{now, cues}
	} else if n != nil && cues.Empty() {
		n.limited = nil
	}
	by := asked{pid, o}
	if cues.Empty() {
		delete(t.lookups.hints, by)
		return
	}
	if t.lookups.hints == nil {
		t.lookups.hints = map[asked]hint{}
	}
	if _, was := t.lookups.hints[by]; !was && len(t.lookups.hints) >= maxHints {
		dropHints(t.lookups.hints, now)
	}
	t.lookups.hints[by] = hint{now, cues}
}

// dropHints makes room for a hint.
func dropHints(hints map[asked]hint, now time.Duration) {
	var any asked
	for by, h := range hints {
		if any = by; now-h.at >= hintLife {
			delete(hints, by)
		}
	}
	if len(hints) >= maxHints {
		delete(hints, any)
	}
}

// CuesOf returns the cues under which a thread uses an object: those of a
// directory's path, and of a file those under which the thread just looked it up, or
// under which it was looked up last, where they limit the time.
func (t *Table) CuesOf(o ids.Object, path cue.Set, pid uint32, now time.Duration) cue.Set {
	if !path.Empty() {
		return path
	}
	if hinted := t.HintedCues(o, pid, now); !hinted.Empty() {
		return hinted
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.knownLocked(o); n != nil && n.limited != nil && now-n.limited.at < limitedLife {
		return n.limited.cues
	}
	return cue.Set{}
}

// HintedCues returns the cues under which a thread just looked a file up.
func (t *Table) HintedCues(o ids.Object, pid uint32, now time.Duration) cue.Set {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h, ok := t.lookups.hints[asked{pid, o}]; ok && now-h.at < hintLife {
		return h.cues
	}
	return cue.Set{}
}
