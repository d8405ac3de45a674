package invariant

import "cartwheel.dev/geo-config/ids"

// Log follows the entries of every slice in one journal, and checks that they
// have no gap. The zero Log is ready. Its owner guards it.
type Log struct {
	last map[ids.Slice]ids.Serial
}

// Entry checks an entry on its way to the journal. It follows the last one of
// its slice, or takes the place of it or of an earlier one, whose successors
// are then void. The first entry of a slice may have any serial.
func (l *Log) Entry(slice ids.Slice, serial ids.Serial, file string) {
	if last, known := l.last[slice]; known && serial > last+1 {
		fail(Violation{Rule: JournalFollows, Slice: slice, Serial: serial, File: file, Want: uint64(last + 1), Got: uint64(serial)})
	}
	l.Reset(slice, serial)
}

// Reset notes that the log of a slice goes on behind a serial.
func (l *Log) Reset(slice ids.Slice, base ids.Serial) {
	if l.last == nil {
		l.last = map[ids.Slice]ids.Serial{}
	}
	l.last[slice] = base
}
