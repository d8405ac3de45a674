package replica

import (
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
)

// entryLog is a slice's order as this node knows it: what follows base, of
// which the newest entries are in memory and the others in the journal. The
// epochs of all of them are known, as runs.
type entryLog struct {
	base      ids.Serial
	baseEpoch ids.Epoch
	baseTime  hlc.Time
	runs      []run
	// mem[head:] are the entries first..last, without a gap.
	mem   []*Entry
	head  int
	first ids.Serial
	last  ids.Serial
	time  hlc.Time // of the last entry
}

// run says that the entries from first on, up to the next run, are of one epoch.
type run struct {
	first ids.Serial
	epoch ids.Epoch
}

func (l *entryLog) reset(base ids.Serial, epoch ids.Epoch, t hlc.Time) {
	*l = entryLog{base: base, baseEpoch: epoch, baseTime: t, first: base + 1, last: base, time: t}
}

// epochAt returns the epoch of the entry with a serial, 0 if it is not here.
func (l *entryLog) epochAt(s ids.Serial) ids.Epoch {
	if s == l.base {
		return l.baseEpoch
	}
	if s < l.base || s > l.last {
		return 0
	}
	for i := len(l.runs) - 1; i >= 0; i-- {
		if l.runs[i].first <= s {
			return l.runs[i].epoch
		}
	}
	return 0
}

// has reports whether the log is known at a serial, or just before it.
func (l *entryLog) has(s ids.Serial) bool { return s >= l.base && s <= l.last }

func (l *entryLog) get(s ids.Serial) *Entry {
	if s < l.first || s > l.last {
		return nil
	}
	return l.mem[l.head+int(s-l.first)]
}

func (l *entryLog) append(e *Entry) {
	if n := len(l.runs); n == 0 || l.runs[n-1].epoch != e.Epoch {
		l.runs = append(l.runs, run{e.Serial, e.Epoch})
	}
	if l.head > 64 && l.head*2 > len(l.mem) {
		n := copy(l.mem, l.mem[l.head:])
		clear(l.mem[n:])
		l.mem, l.head = l.mem[:n], 0
	}
	if l.head == len(l.mem) {
		l.first = e.Serial
	}
	l.mem = append(l.mem, e)
	l.last, l.time = e.Serial, e.Time
}

// cut removes the entries from a serial on.
func (l *entryLog) cut(from ids.Serial) {
	for n := len(l.runs); n > 0 && l.runs[n-1].first >= from; n-- {
		l.runs = l.runs[:n-1]
	}
	keep := l.head
	if from > l.first {
		keep += int(from - l.first)
	}
	clear(l.mem[keep:])
	l.mem = l.mem[:keep]
	l.last = from - 1
	if e := l.get(l.last); e != nil {
		l.time = e.Time
	} else {
		l.first = from
	}
}

// forget drops the entries up to a serial from memory.
func (l *entryLog) forget(upTo ids.Serial) {
	for l.first <= upTo && l.first <= l.last {
		l.mem[l.head] = nil
		l.head++
		l.first++
	}
}

// rebase says that the journal has nothing up to a serial any more.
func (l *entryLog) rebase(base ids.Serial) {
	if base <= l.base || base > l.last {
		return
	}
	l.baseEpoch = l.epochAt(base)
	l.base = base
	for len(l.runs) > 1 && l.runs[1].first <= base+1 {
		l.runs = l.runs[1:]
	}
}
