package inodes

import (
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/ids"
)

const (
	// maxCached bounds the names of one directory that the kernel may keep. It
	// asks for any other each time.
	maxCached = 1 << 14
	// contended is for how long after a revocation the kernel may keep no names
	// of a directory. Other clients work in it too, and telling the kernel of each
	// name costs more than being asked.
	contended = 2 * time.Second
	// forgetEndedEvery is how often names are forgotten that the kernel does not
	// believe any more.
	forgetEndedEvery = 5 * time.Second
)

// MayCache notes that the kernel may believe a name until a time, and reports
// whether it may.
func (t *Table) MayCache(dir mount.Inode, name string, child mount.Inode, now, until time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.byID[dir]
	if n == nil {
		if dir != mount.Root {
			return false
		}
		n = t.getLocked(mount.Root, ids.RootObject)
	}
	if x := t.byID[child]; x != nil {
		x.dir, x.name = dir, name
	}
	if n.revoked != 0 && now-n.revoked < contended || t.limit > 0 && t.names >= 2*t.limit {
		return false
	}
	if len(n.cached) >= maxCached {
		if now-n.tidied < contended/4 {
			return false
		}
		n.tidied = now
		t.tidyLocked(n, now)
		if len(n.cached) >= maxCached {
			return false
		}
	}
	if n.cached == nil {
		n.cached = map[string]cachedName{}
	}
	t.names -= len(n.cached)
	n.cached[name] = cachedName{child, until}
	t.names += len(n.cached)
	return true
}

// CachedFor returns how much longer the kernel may believe the name that led to an
// object last.
func (t *Table) CachedFor(o ids.Object, now time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.knownLocked(o)
	if n == nil {
		return 0
	}
	if dir := t.byID[n.dir]; dir != nil && dir.cached[n.name].child == n.id {
		return max(0, dir.cached[n.name].until-now)
	}
	return 0
}

// ForgetEnded forgets the names that the kernel does not believe any more, unless
// it did so a moment ago or there are none.
func (t *Table) ForgetEnded(now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.names == 0 || now-t.swept < forgetEndedEvery {
		return
	}
	t.swept = now
	for _, n := range t.byID {
		t.tidyLocked(n, now)
	}
}

// tidyLocked forgets the names of a directory that the kernel does not believe any
// more; the mutex is held.
func (t *Table) tidyLocked(n *node, now time.Duration) {
	for name, x := range n.cached {
		if x.until <= now {
			delete(n.cached, name)
			t.names--
		}
	}
	if len(n.cached) == 0 {
		n.cached = nil
	}
}
