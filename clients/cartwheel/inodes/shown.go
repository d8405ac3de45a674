package inodes

import (
	"sync"
	"time"

	"cartwheel.dev/clients/mount"
)

// A kernel looks both names of a rename up, asks for it by these names, and
// afterwards moves what it took the first to mean to the place of the second,
// whose object it takes for removed. So a rename says which objects the kernel
// was shown, and the active refuses it where the names mean others by then.

// maxShown bounds the names that are remembered: two generations of so many. A
// rename of a forgotten name is not checked.
const maxShown = 1 << 12

// Meaning is what a name was shown to mean (0: that it is not there), and until
// when the kernel believes it without asking.
type Meaning struct {
	Child mount.Inode
	Until time.Duration
}

// Shown remembers what the kernel was told last that names mean, whether it may
// believe them or is to ask each time. Its zero value is empty.
type Shown struct {
	mu           sync.Mutex // guards below
	young, older map[Name]Meaning
	// refused are the threads whose last rename was refused because of what a name
	// means. The kernel looks both up again then, and asks once more.
	refused map[uint32]Rename
}

// Rename tells a thread's renames apart. The directories do not: looked up
// again, they may be others.
type Rename struct{ Name, NewName string }

// Note remembers what a name was shown to mean.
func (s *Shown) Note(at Name, means Meaning) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setLocked(at, means)
}

// setLocked is Note with the mutex held.
func (s *Shown) setLocked(at Name, means Meaning) {
	if s.young == nil || len(s.young) >= maxShown {
		s.older, s.young = s.young, make(map[Name]Meaning)
	}
	s.young[at] = means
	delete(s.older, at)
}

// getLocked is what a name was shown to mean, the zero Meaning where that is not known;
// the mutex is held.
func (s *Shown) getLocked(at Name) Meaning {
	if means, ok := s.young[at]; ok {
		return means
	}
	return s.older[at]
}

// Pair returns what the kernel takes two names to mean.
func (s *Shown) Pair(from, to Name) (source, target Meaning) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.getLocked(from), s.getLocked(to)
}

// Move follows the kernel, which moved a name, or exchanged two.
func (s *Shown) Move(from, to Name, exchange bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	source, target := s.getLocked(from), s.getLocked(to)
	if !exchange {
		target = Meaning{}
	}
	s.setLocked(from, target)
	s.setLocked(to, source)
}

// WasRefused reports whether a thread's rename is the one that was refused just
// before, and forgets that.
func (s *Shown) WasRefused(pid uint32, r Rename) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, ok := s.refused[pid]
	delete(s.refused, pid)
	return ok && was == r
}

// Refuse notes that a thread's rename is refused.
func (s *Shown) Refuse(pid uint32, r Rename) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused == nil || len(s.refused) >= maxRefused {
		s.refused = map[uint32]Rename{}
	}
	s.refused[pid] = r
}
