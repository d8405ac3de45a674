package acceptance

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// appended judges a log: every line is there once, each program's in its order,
// and what is read is what had been appended. Where somebody appends meanwhile,
// the end of what is read is judged only strictly.
func (h history) appended(log, final string, strict bool) []string {
	var wrong []string
	say := func(format string, args ...any) {
		if len(wrong) < 5 {
			wrong = append(wrong, log+": "+fmt.Sprintf(format, args...))
		}
	}
	at := map[string]int{} // where a line begins
	offset := 0
	for _, line := range strings.SplitAfter(final, "\n") {
		if _, twice := at[line]; twice && line != "" {
			say("%.60q is there twice", line)
		}
		at[line] = offset
		offset += len(line)
	}
	type span struct{ e, from, to int } // of the event's lines
	var spans []span
	next, expected := map[int]int{}, 0
	for i, e := range h {
		if e.What != didAppend {
			continue
		}
		s := span{e: i, from: len(final)}
		for _, line := range e.Lines {
			from, there := at[line]
			if !there {
				say("%.60q of program %d is lost", line, e.Program)
				continue
			}
			if from < next[e.Program] {
				say("%.60q of program %d is before what it appended earlier", line, e.Program)
			}
			next[e.Program] = from + len(line)
			s.from, s.to = min(s.from, from), max(s.to, from+len(line))
			expected += len(line)
		}
		if s.to > 0 {
			spans = append(spans, s)
		}
	}
	if expected != len(final) {
		say("it has %d bytes, %d were appended", len(final), expected)
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(h[a.e].End, h[b.e].End) })
	for _, b := range spans { // what had been appended when this began lies before
		for _, a := range spans {
			if h[a.e].End >= h[b.e].Begin {
				break
			}
			if a.from > b.from {
				say("what program %d appended lies before what program %d had appended", h[b.e].Program, h[a.e].Program)
			}
		}
	}
	for _, e := range h {
		if e.What != didRead {
			continue
		}
		size := len(e.ID)
		if !strings.HasPrefix(final, e.ID) && !h.beside(e, strict) {
			at := 0
			for at < min(size, len(final)) && e.ID[at] == final[at] {
				at++
			}
			say("program %d read %d bytes that are not its beginning: %.50q at %d, where there is %.50q", e.Program, size, e.ID[at:], at, final[at:])
		}
		for _, s := range spans {
			if h[s.e].End < e.Begin && (s.to > size || e.ID[:s.to] != final[:s.to]) {
				say("program %d read %d bytes, without what lies at %d to %d since %d us", e.Program, size, s.from, s.to, (e.Begin-h[s.e].End)/1000)
			}
			if h[s.e].Begin > e.End && s.from < size {
				say("program %d read %d bytes, with what was appended at %d to %d later", e.Program, size, s.from, s.to)
			}
		}
	}
	return wrong
}

// beside reports whether a program appended while e was read: strictly, one of
// the same mount. What is written at a mount and not synced yet is seen there at
// once, where the mount puts it; what others append meanwhile comes before it.
func (h history) beside(e *event, strict bool) bool {
	for _, x := range h {
		same := x.Program%len(checkedSites) == e.Program%len(checkedSites)
		if x.What == didAppend && (same || !strict) && x.Begin < e.End && e.Begin < x.End {
			return true
		}
	}
	return false
}

// kept judges the files that were open and are gone: that may be only where the
// mount was cut off, and lost what it held. Less strictly, also where a program of
// the same mount took the name while the file was being opened.
func (h history) kept(strict bool) []string {
	var wrong []string
	for _, e := range h {
		if e.What != didLose {
			continue
		}
		mount := e.Program % len(checkedSites)
		why := false
		for _, x := range h {
			switch {
			case x.What == wasOff:
				why = why || x.At == checkedSites[mount] && x.Begin < e.Lost && e.Begin < x.End
			case !strict && changes(x) && (x.At == e.At || x.To == e.At):
				why = why || x.Program%len(checkedSites) == mount && x.Begin < e.End && e.Begin < x.End
			}
		}
		if !why {
			wrong = append(wrong, fmt.Sprintf("file %s, which program %d opened as %s, was gone after %d ms", e.ID, e.Program, e.At, (e.Lost-e.Begin)/1e6))
		}
	}
	return wrong
}

// counted judges a counter and the lock that guards it: nobody held it beside
// an exclusive holder, and each found what the one before had left. What was
// written under a lock that was lost is not there.
func (h history) counted(name, final string) []string {
	var wrong []string
	say := func(format string, args ...any) {
		if len(wrong) < 5 {
			wrong = append(wrong, name+": "+fmt.Sprintf(format, args...))
		}
	}
	var held history
	for _, e := range h {
		if e.Result != isLost {
			held = append(held, e)
		}
	}
	sort.SliceStable(held, func(i, j int) bool { return held[i].Begin < held[j].Begin })
	for i, a := range held {
		for _, b := range held[i+1:] {
			if b.Begin >= a.End {
				break
			}
			if a.What == didCount || b.What == didCount {
				say("program %d held the lock for %d us, and program %d beside it", a.Program, (a.End-a.Begin)/1000, b.Program)
			}
		}
	}
	value := 0
	for _, e := range held {
		if e.Value != value {
			say("program %d found %d under the lock, %d had been counted", e.Program, e.Value, value)
			value = e.Value
		}
		if e.What == didCount {
			value++
		}
	}
	if got, err := strconv.Atoi(strings.TrimSpace(final)); err != nil || got != value {
		say("it is %q in the end, %d had been counted", final, value)
	}
	return wrong
}
