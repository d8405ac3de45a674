package desktops

import (
	"fmt"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/placement"
)

// put places a file of the start at its owner's desk. Old files are left out:
// nothing could move them, so begin fills those disks all the same.
func (w *cartwheel) put(h Held) {
	if !h.Old {
		w.create(Event{Kind: Create, User: h.User, Machine: h.User, File: h.File, Bytes: h.Bytes}, w.home[h.User])
	}
}

func (w *cartwheel) begin() {
	for i := range fullDesktops(w.o) {
		w.disks[i].fillUp()
	}
	w.elsewhere = 0 // so far nobody wrote
}

func (w *cartwheel) counts() Counts { return Counts{Elsewhere: w.elsewhere, Slices: len(w.slices)} }

func (w *cartwheel) do(e Event) (outcome, error) {
	if e.Kind == Create || e.Kind == Replace {
		s, err := w.choose(e.Machine, w.home[e.User])
		if err != nil {
			return 0, err
		}
		if e.Kind == Replace && w.file(e.File).slice == 0 {
			return missing, nil
		}
		return w.create(e, s), nil
	}
	f := w.file(e.File)
	if f.slice == 0 {
		return missing, nil
	}
	switch e.Kind {
	case Read:
		for i, m := range w.slices[f.slice-1].members {
			if m == e.Machine && i == 0 {
				return primary, nil
			} else if m == e.Machine {
				return secondary, nil
			}
		}
		return remote, nil
	case Append:
		if !w.fits(f.slice, e.Bytes) {
			return refused, nil
		}
		w.grow(f.slice, e.Bytes, 0)
		f.bytes += e.Bytes
	case Delete:
		w.grow(f.slice, -f.bytes, -1)
		*f = sliceFile{}
	}
	return done, nil
}

// create puts a new file into a slice, where every member has room for it. The file
// that it replaces goes after that.
func (w *cartwheel) create(e Event, s ids.Slice) outcome {
	if !w.fits(s, e.Bytes) {
		return refused
	}
	f := w.file(e.File)
	if f.slice != 0 {
		w.grow(f.slice, -f.bytes, -1)
	}
	w.grow(s, e.Bytes, 1)
	*f = sliceFile{s, e.Bytes}
	if w.slices[s-1].members[0] != e.Machine {
		w.elsewhere++
	}
	return done
}

// file returns a file, which may be in no slice. It is valid until the next call.
func (w *cartwheel) file(f File) *sliceFile {
	for int(f) >= len(w.files) {
		w.files = append(w.files, sliceFile{})
	}
	return &w.files[f]
}

func (w *cartwheel) fits(s ids.Slice, bytes int64) bool {
	for _, m := range w.slices[s-1].members {
		if w.disks[m].free() < bytes {
			return false
		}
	}
	return true
}

// grow adds to what a slice holds at every member.
func (w *cartwheel) grow(s ids.Slice, bytes int64, files int) {
	x := &w.slices[s-1]
	x.bytes, x.files = x.bytes+bytes, x.files+files
	for _, m := range x.members {
		w.disks[m].used += bytes
	}
}

// maxSliceBytes closes a slice, as in node/server/upkeep; here no slice gets there.
const maxSliceBytes = 64 << 30

// check also asks placement.Next, by which nodes move slices, whether it would move
// one: none is moved here.
func (w *cartwheel) check() error {
	const op fault.Op = "desktops.check"
	bytes, files := make([]int64, len(w.slices)), make([]int, len(w.slices))
	for _, f := range w.files {
		if f.slice != 0 {
			bytes[f.slice-1] += f.bytes
			files[f.slice-1]++
		}
	}
	sums, candidates := make([]int64, len(w.disks)), w.allocators[0].Candidates()
	for i, s := range w.slices {
		name := fmt.Sprint("slice ", i+1)
		if s.bytes != bytes[i] || s.files != files[i] {
			return fault.Errorf(fault.Other, op, name, "says that it has %d bytes in %d files, and has %d in %d", s.bytes, s.files, bytes[i], files[i])
		}
		if ids.Slice(i+1) != ids.RootSlice && (s.bytes >= maxSliceBytes || uint64(s.files) >= server.DefaultConfig().MaxSliceObjects) {
			return fault.E(fault.Usage, op, name, "is so full that a node would close it, which is not simulated: give fewer months or opens")
		}
		seen := map[int]bool{}
		for _, m := range s.members {
			if seen[m] {
				return fault.Errorf(fault.Other, op, name, "has two copies on machine %d", m)
			}
			seen[m] = true
			sums[m] += s.bytes
		}
		row := w.configured.rows[i].Clone()
		if step := placement.Next(&row, candidates, nil, nil); step != (placement.Step{}) {
			return fault.Errorf(fault.Other, op, name, "would be moved, which is not simulated: %+v", step)
		}
	}
	return checkDisks(w.disks, sums)
}
