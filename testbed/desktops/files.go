package desktops

import "cartwheel.dev/geo-config/fault"

// replica is a file's copy on one disk.
type replica struct {
	bytes   int64 // that it takes there, which for one that is not current may be fewer than the file's
	at      int32 // its place in the disk's list
	machine int16
	current bool
}

// file is a file of a beeFS world. The first copy is the primary, which is always
// current.
type file struct {
	copies [maxCopies]replica
	n      int8  // copies; 0: there is no such file
	waits  bool  // for its secondaries to be made or brought up to date
	used   int32 // seconds from the start to the last open
}

// store has the disks with the files on them, and moves copies between them. It
// decides nothing.
type store struct {
	disks []disk
	files []file
	// primaries and secondaries list the files of each disk, in no order.
	primaries, secondaries [][]File
}

func newStore(o Options) store {
	return store{disks: newDisks(o), primaries: make([][]File, o.Desktops), secondaries: make([][]File, o.Desktops)}
}

// file returns a file, which may not be there.
func (s *store) file(f File) *file {
	for int(f) >= len(s.files) {
		s.files = append(s.files, file{})
	}
	return &s.files[f]
}

// list is where a disk notes a file's i-th copy.
func (s *store) list(machine int16, i int) *[]File {
	if i == 0 {
		return &s.primaries[machine]
	}
	return &s.secondaries[machine]
}

// enlist notes the i-th copy at its disk.
func (s *store) enlist(f File, i int) {
	c := &s.files[f].copies[i]
	l := s.list(c.machine, i)
	c.at = int32(len(*l))
	*l = append(*l, f)
}

// unlist forgets the i-th copy at its disk.
func (s *store) unlist(f File, i int) {
	c := &s.files[f].copies[i]
	l := s.list(c.machine, i)
	last := (*l)[len(*l)-1]
	(*l)[c.at] = last
	*l = (*l)[:len(*l)-1]
	if last == f {
		return
	}
	moved := &s.files[last]
	for j := range moved.n {
		if moved.copies[j].machine == c.machine {
			moved.copies[j].at = c.at
		}
	}
}

// add gives a file one more current copy. The caller knows that there is room.
func (s *store) add(f File, machine int, bytes int64) {
	x := s.file(f)
	x.copies[x.n] = replica{bytes: bytes, machine: int16(machine), current: true}
	x.n++
	s.disks[machine].used += bytes
	s.enlist(f, int(x.n)-1)
}

// drop takes the i-th copy away: a secondary, or the only copy.
func (s *store) drop(f File, i int) {
	x := &s.files[f]
	s.unlist(f, i)
	s.disks[x.copies[i].machine].used -= x.copies[i].bytes
	last := int(x.n) - 1
	x.copies[i], x.copies[last] = x.copies[last], replica{}
	x.n--
}

// promote makes the i-th copy the primary, and takes the one that was it away.
func (s *store) promote(f File, i int) {
	x := &s.files[f]
	s.unlist(f, i)
	s.unlist(f, 0)
	x.copies[0], x.copies[i] = x.copies[i], x.copies[0]
	s.enlist(f, 0)
	s.enlist(f, i)
	s.drop(f, i)
}

// resize changes what the i-th copy takes.
func (s *store) resize(f File, i int, bytes int64) {
	c := &s.files[f].copies[i]
	s.disks[c.machine].used += bytes - c.bytes
	c.bytes = bytes
}

// remove takes all copies away.
func (s *store) remove(f File) {
	x := &s.files[f]
	for x.n > 0 {
		s.drop(f, int(x.n)-1)
	}
	*x = file{waits: x.waits}
}

// on returns which copy a machine has; -1: none.
func (x *file) on(machine int) int {
	for i := range int(x.n) {
		if int(x.copies[i].machine) == machine {
			return i
		}
	}
	return -1
}

// backup returns a secondary that is current; -1: there is none.
func (x *file) backup() int {
	for i := 1; i < int(x.n); i++ {
		if x.copies[i].current {
			return i
		}
	}
	return -1
}

// check looks at every file and every byte.
func (s *store) check() error {
	const op fault.Op = "desktops.check"
	sums := make([]int64, len(s.disks))
	for f := range s.files {
		x := &s.files[f]
		for i := range int(x.n) {
			c := x.copies[i]
			sums[c.machine] += c.bytes
			if x.on(int(c.machine)) != i {
				return fault.Errorf(fault.Other, op, "", "file %d has two copies on machine %d", f, c.machine)
			}
			if l := *s.list(c.machine, i); int(c.at) >= len(l) || l[c.at] != File(f) {
				return fault.Errorf(fault.Other, op, "", "machine %d does not list file %d", c.machine, f)
			}
			if c.current && c.bytes != x.copies[0].bytes {
				return fault.Errorf(fault.Other, op, "", "file %d has %d bytes, and a current copy of %d", f, x.copies[0].bytes, c.bytes)
			}
		}
		if x.n > 0 && !x.copies[0].current {
			return fault.Errorf(fault.Other, op, "", "file %d has a primary that is not current", f)
		}
	}
	return checkDisks(s.disks, sums)
}
