package inodes

import (
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/ids"
)

const (
	// lookedFor is for how long after its lookup a file may be opened although
	// its last name is gone.
	lookedFor = 3 * time.Second
	// maxLooked bounds the lookups that are remembered; the oldest is forgotten.
	maxLooked = 256
	// maxRefused bounds the threads whose last open or rename was refused. Beyond
	// that all are forgotten.
	maxRefused = 256
)

// looked is a file that was looked up.
type looked struct {
	object, dir ids.Object
	name        string
	at          time.Duration
}

// lookups remembers what was just looked up. The mutex of the Table guards it.
type lookups struct {
	ring [maxLooked]looked
	next int
	// lingering are the files that are held though they are not open, and until
	// when.
	lingering map[ids.Object]time.Duration
	// refused are the threads whose last open was refused because of a name that
	// may mean something else. The kernel looks every name of the path up again
	// then, and what the last one names is noted here: that open succeeds.
	refused map[uint32]mount.Inode
	hints   map[asked]hint
}

// soonOpen reports whether an object was looked up a moment ago, so that its
// open may be on its way, and if so has it linger.
func (l *lookups) soonOpen(o ids.Object, now time.Duration) bool {
	for i := range l.ring {
		if x := &l.ring[i]; x.object == o && now-x.at < lookedFor {
			l.linger(o, now)
			return true
		}
	}
	return false
}

// soonOpenIn returns the files of a directory that were looked up a moment ago,
// and has them linger.
func (l *lookups) soonOpenIn(dir ids.Object, now time.Duration) (out []uint64) {
	for i := range l.ring {
		if x := &l.ring[i]; x.object != 0 && x.dir == dir && now-x.at < lookedFor {
			l.linger(x.object, now)
			out = append(out, uint64(x.object))
		}
	}
	return out
}

// foundBy returns the name that an object was looked up by last, if that is still
// known.
func (l *lookups) foundBy(o ids.Object) (dir ids.Object, name string) {
	for i := range l.ring {
		if x := &l.ring[(l.next+maxLooked-1-i)%maxLooked]; x.object == o {
			return x.dir, x.name
		}
	}
	return 0, ""
}

// linger has a file be held though it is not open.
func (l *lookups) linger(o ids.Object, now time.Duration) {
	if l.lingering == nil {
		l.lingering = map[ids.Object]time.Duration{}
	}
	l.lingering[o] = now + lookedFor
}
