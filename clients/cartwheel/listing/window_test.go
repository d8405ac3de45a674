package listing

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"cartwheel.dev/clients/names"
)

// numbered are names of a directory, in the order of nodes.
func numbered(n int) []names.Named {
	out := make([]names.Named, n)
	for i := range out {
		out[i].Name = fmt.Sprintf("file-%07d", i)
	}
	return out
}

// readAll reads on in a window as ReadDir does, page by page, to the end.
func readAll(w *window, all []names.Named, each func()) {
	for rest := all[w.end():]; len(rest) > 0; {
		n := min(pageEntries, len(rest))
		w.add(rest[:n])
		rest = rest[n:]
		each()
	}
}

// TestListing_KeepsFewNames reads a directory of a million names to its end.
func TestListing_KeepsFewNames(t *testing.T) {
	const size = 1_000_000
	var w window
	most := 0
	readAll(&w, numbered(size), func() { most = max(most, cap(w.names)) })
	if w.end() != size || most > 4*pageEntries {
		t.Errorf("%d of %d names were read, and room was kept for %d, want %d at most", w.end(), size, most, 4*pageEntries)
	}
	if len(w.sums) > size || len(w.marks) > size/pageEntries {
		t.Errorf("%d checksums and %d marks are kept", len(w.sums), len(w.marks))
	}
}

// TestListing_FindsAPlaceThatItDropped goes back to places all over a directory
// in which names have come and gone since: no name behind the place that stayed
// is left out, and no other that was before it comes again.
func TestListing_FindsAPlaceThatItDropped(t *testing.T) {
	all := numbered(20 * pageEntries)
	cases := map[string]func(i int) bool{
		"as it was":           func(int) bool { return true },
		"a third went":        func(i int) bool { return i%3 != 0 },
		"a page and more did": func(i int) bool { return i < 4*pageEntries || i >= 6*pageEntries },
		"all went":            func(int) bool { return false },
	}
	for name, stays := range cases {
		t.Run(name, func(t *testing.T) {
			var left []names.Named
			for i, n := range all {
				if stays(i) {
					left = append(left, n)
				}
				if i%500 == 7 {
					left = append(left, names.Named{Name: n.Name + "-new"})
				}
			}
			for _, at := range []uint64{0, 1, pageEntries - 1, pageEntries, pageEntries + 1, 5 * pageEntries, 5*pageEntries + 77, 9*pageEntries - 1} {
				var w window
				readAll(&w, all, func() {})
				from, gone := w.before(at)
				first, _ := slices.BinarySearchFunc(left, from.after+"\x00", byName)
				w.goBack(at, left[first:min(len(left), first+len(gone)+pageEntries)])
				want := left[sinceLatest(left, all[:at]):]
				if w.base != at || len(want) > 0 && len(w.names) > 0 && w.at(at).Name != want[0].Name {
					t.Errorf("at %d the listing goes on with %q at %d, want %q", at, w.names[0].Name, w.base, want[0].Name)
				}
				if got := w.last(); len(w.names) > 0 && got != w.names[len(w.names)-1].Name || got == "" && at > 0 {
					t.Errorf("at %d it reads on behind %q", at, got)
				}
			}
		})
	}
}

func byName(n names.Named, name string) int { return strings.Compare(n.Name, name) }

// sinceLatest is where the names begin that come behind the latest of some names
// that is still there. The search ends at the mark: names that are older than
// that were all read.
func sinceLatest(left, read []names.Named) int {
	mark := len(read) / pageEntries * pageEntries
	for i := len(read) - 1; i >= mark; i-- {
		if at := slices.IndexFunc(left, func(n names.Named) bool { return n.Name == read[i].Name }); at >= 0 {
			return at + 1
		}
	}
	if mark == 0 {
		return 0
	}
	at, _ := slices.BinarySearchFunc(left, read[mark-1].Name+"\x00", byName)
	return at
}
