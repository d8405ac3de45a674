package content

import (
	"slices"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/logattr"
)

// Leftover is what a crash of the client left in the write journal of one
// object: writes that were acknowledged and are not known to be committed.
type Leftover struct {
	Object ids.Object
	// LoggedAs is the object that the journal has the writes under, where that
	// is another one; 0: Object.
	LoggedAs ids.Object
	// Known is the newest version that the client had seen; a newer one holds
	// another client's later commit, or the client's own last.
	Known uint64
	// Sent are the commits that may have been sent and are not known to be run,
	// oldest first. Each goes up to one of the writes. There are several where
	// processes died one soon after the other: any of them may have been the last
	// to be run.
	Sent []Sent
	// Writes are in the order of writing.
	Writes []Numbered
}

// Sent is a commit of all of an object's writes up to one.
type Sent struct {
	Upto uint64
	// MtimeNs is the time of change that the commit makes.
	MtimeNs int64
}

// Numbered is a write of the journal.
type Numbered struct {
	Number uint64
	Written
}

func (l *Leftover) loggedAs() ids.Object {
	if l.LoggedAs != 0 {
		return l.LoggedAs
	}
	return l.Object
}

// divide parts the writes behind one of them.
func (l Leftover) divide(upto uint64) (sent, rest Leftover) {
	at, _ := slices.BinarySearchFunc(l.Writes, upto+1, func(w Numbered, n uint64) int {
		if w.Number < n {
			return -1
		}
		return 1
	})
	sent, rest = l, l
	sent.Writes, rest.Writes = l.Writes[:at], l.Writes[at:]
	return sent, rest
}

// recovered is what a crash left behind and the engine has taken over as layers.
// Those of one leftover share it. Their committing goroutine alone changes it.
type recovered struct {
	core *core
	left Leftover     // without what was committed before
	park func() error // keeps it as a conflict copy
	done bool         // it is parked
}

func (r *recovered) parked() bool { return r != nil && r.done }

// refused parks all that is left because the active refused some of it. What is
// written to the file meanwhile waits behind it. It fails only when the engine
// ends: then the writes stay in the journal.
func (r *recovered) refused(cause error) error {
	o := &r.core.opt
	o.Logger.Warn("writes that a crash left behind are refused and kept as a conflict copy", logattr.Object(r.left.Object), logattr.Err(cause))
	for pause := o.RetryAfter; ; pause = min(2*pause, lastPause) {
		err := r.park()
		if err == nil {
			r.done = true
			return nil
		}
		o.Logger.Warn("a conflict copy cannot be made yet", logattr.Object(r.left.Object), logattr.Err(err))
		if err := r.core.pause(pause); err != nil {
			return err
		}
	}
}
