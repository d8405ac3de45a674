package listing

import (
	"hash/crc32"
	"slices"
	"sort"

	"cartwheel.dev/clients/names"
)

// window is the part of a reading that is in memory: the names around the place
// that the kernel reads at. Of the names before it there are checksums, 4 bytes
// each, and the name before each part that was dropped. They are for seekdir:
// the nodes list on behind any name, and the checksums find the place again.
type window struct {
	names []names.Named // from base on
	base  uint64        // the names that were dropped
	sums  []uint32      // of each name that was dropped
	marks []waymark     // ascending; the last is that of base, where it is not 0
}

// waymark is a place in a reading, and the name before it.
type waymark struct {
	at    uint64
	after string
}

// end is the place behind the last name that was read.
func (w *window) end() uint64 { return w.base + uint64(len(w.names)) }

// at returns the name at a place of the window.
func (w *window) at(place uint64) *names.Named { return &w.names[place-w.base] }

// last returns the last name that was read, or none.
func (w *window) last() string {
	if n := len(w.names); n > 0 {
		return w.names[n-1].Name
	}
	if n := len(w.marks); n > 0 {
		return w.marks[n-1].after
	}
	return ""
}

// add takes in a page. It drops the names before, but for the last page of them:
// the kernel comes back to the names that its caller had no room for.
func (w *window) add(page []names.Named) {
	if n := len(w.names) - pageEntries; n >= pageEntries {
		for _, each := range w.names[:n] {
			w.sums = append(w.sums, sum(each.Name))
		}
		w.base += uint64(n)
		w.marks = append(w.marks, waymark{w.base, w.names[n-1].Name})
		w.names = slices.Clone(w.names[n:])
	}
	w.names = append(w.names, page...)
}

// before returns the last mark up to a place that was dropped, and the checksums
// of the names between.
func (w *window) before(at uint64) (from waymark, gone []uint32) {
	if i := w.marksTo(at); i > 0 {
		from = w.marks[i-1]
	}
	return from, w.sums[from.at:at]
}

// marksTo counts the marks up to a place.
func (w *window) marksTo(at uint64) int {
	return sort.Search(len(w.marks), func(i int) bool { return w.marks[i].at > at })
}

// goBack makes the window begin at a place that was dropped. The names behind
// the mark before it were read again. The place is behind the latest of the names
// before it that is still there.
func (w *window) goBack(at uint64, again []names.Named) {
	from, gone := w.before(at)
	found := make(map[uint32]int, len(again))
	for i := range again {
		if s := sum(again[i].Name); found[s] == 0 { // of two alike the first: no name is left out
			found[s] = i + 1
		}
	}
	n := 0
	for i := len(gone); i > 0 && n == 0; i-- {
		n = found[gone[i-1]]
	}
	if n > 0 {
		from.after = again[n-1].Name
	}
	w.names, w.base, w.sums, w.marks = again[n:], at, w.sums[:at], w.marks[:w.marksTo(at)]
	if k := len(w.marks); k > 0 && w.marks[k-1].at == at {
		w.marks = w.marks[:k-1]
	}
	if at > 0 {
		w.marks = append(w.marks, waymark{at, from.after})
	}
}

func sum(name string) uint32 { return crc32.ChecksumIEEE([]byte(name)) }
