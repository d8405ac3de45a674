package inodes

import (
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
)

// Between the moment in which a name is looked up and the moment in which the
// file is open, another client may change the file, replace it or remove it.
// An open is therefore counted before its attributes are asked for, so that a
// revocation meanwhile is not missed. And a file that was looked up a moment
// ago, and then loses its last name, is held at its active like an open one.

// hintLife is how long a lookup below cues counts for an open by the same thread.
const hintLife = time.Second

// limitedLife is how long cues that limit an operation's time count for what a kernel
// asks of a file by itself, in the name of any thread or of none, unless the file is
// looked up without them.
const limitedLife = time.Minute

// NoteLookup notes that a regular file was looked up in a directory.
func (t *Table) NoteLookup(o, dir ids.Object, name string, pid uint32, now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := &t.lookups
	l.ring[l.next%maxLooked] = looked{o, dir, name, now}
	l.next++
	if _, was := l.refused[pid]; was {
		l.refused[pid] = Plain(o)
	}
}

// MayOpen reports whether an open may go by the name that led to a node. Where
// it may not, the kernel is to look the name up again.
func (t *Table) MayOpen(id mount.Inode, pid uint32) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := &t.lookups
	again := l.refused[pid] == id
	delete(l.refused, pid)
	if n := t.byID[id]; n == nil || n.misnamed == 0 || again {
		return true
	}
	if l.refused == nil || len(l.refused) >= maxRefused {
		l.refused = map[uint32]mount.Inode{}
	}
	l.refused[pid] = 0
	return false
}

// Lingered returns the files whose time is over and that no open came for, and
// forgets them. Their opens wait until it is decided whether they go.
func (t *Table) Lingered(now time.Duration) (out []Leaving) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for o, until := range t.lookups.lingering {
		if now < until {
			continue
		}
		delete(t.lookups.lingering, o)
		if n := t.knownLocked(o); n != nil && n.opens > 0 {
			n.held = true // its close lets go
			continue
		}
		out = append(out, Leaving{o, t.leaveLocked(o)})
	}
	return out
}

// NoteCues remembers under which cues a file was looked up.
func (t *Table) NoteCues(o ids.Object, pid uint32, cues cue.Set, now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.knownLocked(o)
	switch {
	case n == nil:
	case !cues.Empty():
		n.hint = &hint{pid: pid, at: now, cues: cues}
	case n.hint != nil && (n.hint.pid == pid || n.hint.isLimited()):
		n.hint = nil
	}
}

// isLimited reports whether the cues limit how long nodes are waited for.
func (h *hint) isLimited() bool { return h.cues.Terms().Limit > 0 }

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
	if n := t.knownLocked(o); n != nil && n.hint != nil && n.hint.isLimited() && now-n.hint.at < limitedLife {
		return n.hint.cues
	}
	return cue.Set{}
}

// HintedCues returns the cues under which a thread just looked a file up.
func (t *Table) HintedCues(o ids.Object, pid uint32, now time.Duration) cue.Set {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.knownLocked(o); n != nil && n.hint != nil && n.hint.pid == pid && now-n.hint.at < hintLife {
		return n.hint.cues
	}
	return cue.Set{}
}
