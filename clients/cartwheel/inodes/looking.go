package inodes

import (
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/ids"
)

// Between the moment in which a name is looked up and the moment in which the
// file is open, another client may change the file, replace it or remove it.
// An open is therefore counted before its attributes are asked for, so that a
// revocation meanwhile is not missed. And a file that was looked up a moment
// ago, and then loses its last name, is held at its active like an open one.

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
