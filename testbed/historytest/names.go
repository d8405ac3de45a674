package historytest

import "slices"

// names takes one step on the names, and reports whether the outcome fits.
func (e *event) names(s *cells) bool {
	switch e.what {
	case batch:
		return e.together(s)
	case lookup:
		return s[e.at] == e.ino
	case list:
		from, to := e.at*namesEach, (e.at+1)*namesEach
		for i := from; i < to; i++ {
			if s[i] != e.cells[i] {
				return false
			}
		}
		return true
	case create:
		return e.put(s, e.at, e.ino)
	case link:
		there := false
		for _, ino := range s {
			there = there || ino == e.ino
		}
		if e.result == missing {
			return !there
		}
		if !there && e.result == done {
			return false
		}
		return e.put(s, e.at, e.ino)
	case unlink:
		return e.take(s)
	case rename:
		moved := s[e.at]
		if moved != 0 && moved == s[e.to] && e.result != missing {
			return true // two names of one object: nothing happens
		}
		if !e.take(s) {
			return false
		}
		if moved != 0 && e.result != missing {
			s[e.to] = moved
		}
		return true
	}
	return false
}

// put gives a cell an object, if it is free.
func (e *event) put(s *cells, at int, ino uint64) bool {
	free := s[at] == 0
	switch {
	case e.result == exists:
		return !free
	case e.result == done && !free:
		return false
	}
	if free {
		s[at] = ino
	}
	return true
}

// take empties the cell, if there is something in it.
func (e *event) take(s *cells) bool {
	there := s[e.at] != 0
	switch {
	case e.result == missing:
		return !there
	case e.result == done && !there:
		return false
	}
	s[e.at] = 0
	return true
}

// together takes the operations of a batch as steps of one.
func (e *event) together(s *cells) bool {
	for _, p := range e.parts {
		if !p.names(s) {
			return false
		}
	}
	return true
}

// mask says which names an operation of known outcome looks at or changes.
func (e *event) mask() (mask uint64) {
	switch e.what {
	case list:
		for at := e.at * namesEach; at < (e.at+1)*namesEach; at++ {
			mask |= 1 << at
		}
	case link: // it looks for its object everywhere
		mask = 1<<(dirs*namesEach) - 1
	case rename:
		mask = 1<<e.at | 1<<e.to
	case batch:
		for _, p := range e.parts {
			mask |= p.mask()
		}
	default:
		mask = 1 << e.at
	}
	return mask
}

// onlyLooks reports whether an operation of known outcome changed no name.
func (e *event) onlyLooks() bool {
	if e.what == batch {
		return !slices.ContainsFunc(e.parts, func(p *event) bool { return !p.onlyLooks() })
	}
	return e.what == lookup || e.what == list || e.result != done
}

// mentions calls f with the objects that an event names.
func (e *event) mentions(f func(uint64)) {
	for _, p := range e.parts {
		p.mentions(f)
	}
	for _, ino := range append(slices.Clone(e.cells[:]), e.ino) {
		if ino != 0 {
			f(ino)
		}
	}
}

// sighting is an object that nobody says to have made.
type sighting struct {
	ino   uint64
	at    int // where it was seen
	until int64
}

// seen lists the objects that an event shows.
func (e *event) seen() []sighting {
	switch {
	case e.result == done && e.what == lookup:
		return []sighting{{e.ino, e.at, e.ret}}
	case e.result == done && e.what == list:
		out := make([]sighting, len(e.cells))
		for at, ino := range e.cells {
			out[at] = sighting{ino, at, e.ret}
		}
		return out
	}
	return nil
}

// strangers lists the objects that were seen and that nobody is known to have made.
func strangers(events []*event) (out []sighting) {
	made := map[uint64]bool{0: true}
	for _, e := range events {
		for _, ino := range e.makes() {
			made[ino] = true
		}
	}
	for _, e := range events {
		for _, s := range e.seen() {
			if !made[s.ino] {
				made[s.ino] = true
				out = append(out, s)
			}
		}
	}
	return out
}

// makes lists the objects that an event is known to make, if it happened.
func (e *event) makes() (out []uint64) {
	for _, p := range e.parts {
		out = append(out, p.makes()...)
	}
	if e.what == create && (e.result == done || e.ino != 0) {
		out = append(out, e.ino)
	}
	return out
}
