package historytest

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/anishathalye/porcupine"
)

// mostSteps bounds the search for an order of one object's operations; a search
// that needs more says nothing. Steps are counted and not time, so that a
// history has one verdict, however busy the machine is.
const mostSteps = 20_000_000

// step is what a model takes: the event is both question and answer.
func step(fn func(state any, e *event) (bool, any)) func(state, input, output any) (bool, any) {
	return func(state, input, _ any) (bool, any) { return fn(state, input.(*event)) }
}

// register is one range of a file, zeros at first: a write sets it, a read
// gives the last.
var register = porcupine.Model{
	Init: func() any { return "0" },
	Step: step(func(state any, e *event) (bool, any) {
		if e.what == write {
			return true, e.value
		}
		return state == e.value, state
	}),
}

// namespace is the names of all directories together, since a rename changes
// two at once. An operation of unknown outcome takes effect where it can; one
// that never did has its place at the end.
var namespace = porcupine.Model{
	Init: func() any { return cells{} },
	Step: step(func(state any, e *event) (bool, any) {
		s := state.(cells)
		ok := e.names(&s)
		return ok, s
	}),
	Hash: func(state any) uint64 {
		h := uint64(14695981039346656037)
		for _, ino := range state.(cells) {
			h = (h ^ ino) * 1099511628211
		}
		return h
	},
}

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

func modelOf(object string) porcupine.Model {
	if object == namesObject || object == onceObject {
		return namespace
	}
	return register
}

// search looks for an order of the events that the model takes, for at most so
// many steps.
func search(model porcupine.Model, events []*event, most int) (porcupine.CheckResult, porcupine.LinearizationInfo) {
	ops := make([]porcupine.Operation, 0, len(events))
	for _, e := range events {
		ops = append(ops, porcupine.Operation{ClientId: e.client, Input: e, Call: e.call, Return: e.ret})
	}
	steps, one := 0, model.Step
	model.Step = func(state, input, output any) (bool, any) {
		if steps++; steps > most {
			return false, state // nothing fits any more: the search ends soon
		}
		return one(state, input, output)
	}
	result, info := porcupine.CheckOperationsVerbose(model, ops, 0)
	if result == porcupine.Illegal && steps > most {
		result = porcupine.Unknown
	}
	return result, info
}

// check judges a history: what is wrong, and what could not be said.
func check(events []*event) (wrong, open []string) {
	by := map[string][]*event{}
	for _, e := range events {
		if e.result == unknown && (e.what == read || e.what == lookup || e.what == list || e.what == create && e.object != onceObject) {
			continue // it changed nothing; or made what nobody can name by itself
		}
		if e.result == unknown && e.what == batch {
			by[e.object] = append(by[e.object], e.apart()...)
			continue
		}
		by[e.object] = append(by[e.object], e)
	}
	objects := make([]string, 0, len(by))
	for o := range by {
		objects = append(objects, o)
	}
	sort.Strings(objects)
	for _, o := range objects {
		why, decided := judge(o, by[o], events)
		switch {
		case !decided:
			open = append(open, o)
		case why != "":
			wrong = append(wrong, fmt.Sprintf("LIN: no order explains what was seen of %s:\n%s", o, why))
		}
	}
	return wrong, open
}

// judge says why no order explains one object's operations, "" where one does.
func judge(object string, list, all []*event) (why string, decided bool) {
	if strings.HasPrefix(object, logName) {
		return logOrder(list), true
	}
	var tried []*event
	var result porcupine.CheckResult
	var info porcupine.LinearizationInfo
	adopted(list, all, func(with []*event) bool {
		tried = slices.Clone(with)
		result, info = search(modelOf(object), with, mostSteps)
		return result != porcupine.Illegal
	})
	if result == porcupine.Illegal {
		why = explain(tried, info)
	}
	return why, result != porcupine.Unknown
}

// mostWays bounds the ways to explain what creations of unknown outcome made.
const mostWays = 20

// adopted adds the creations of unknown outcome to a history of names, one way
// after the other until try is content: what they made is among the IDs that
// were seen and that nobody says to have made. Most often it was seen in its
// place; it may have been renamed before anybody saw it.
func adopted(list, all []*event, try func([]*event) bool) {
	if len(list) == 0 || list[0].object != namesObject {
		try(list)
		return
	}
	var strange []sighting
	made := map[uint64]bool{0: true}
	for _, e := range list {
		for _, ino := range e.makes() {
			made[ino] = true
		}
	}
	for _, e := range list {
		for _, s := range e.seen() {
			if !made[s.ino] {
				made[s.ino] = true
				strange = append(strange, s)
			}
		}
	}
	ways := 0
	var explain func(list []*event, rest []sighting) bool
	explain = func(list []*event, rest []sighting) bool {
		if len(rest) == 0 {
			ways++
			return try(list) || ways >= mostWays
		}
		found := false
		for _, inPlace := range []bool{true, false} {
			for _, c := range all {
				if c.what != create || c.result != unknown || c.ino != 0 || (c.at == rest[0].at) != inPlace || c.call >= rest[0].until {
					continue
				}
				found = true
				c.ino = rest[0].ino
				if explain(append(slices.Clip(list), c), rest[1:]) {
					return true
				}
				c.ino = 0
			}
		}
		return !found && explain(list, rest[1:])
	}
	explain(list, strange)
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

// explain shows the end of the longest order that fits, and what follows it.
func explain(list []*event, info porcupine.LinearizationInfo) string {
	var longest []porcupine.Operation
	for _, part := range info.PartialLinearizationsOperations() {
		for _, order := range part {
			if len(order) > len(longest) {
				longest = order
			}
		}
	}
	fits := map[*event]bool{}
	var b strings.Builder
	for i, op := range longest {
		e := op.Input.(*event)
		fits[e] = true
		if i >= len(longest)-12 {
			fmt.Fprintf(&b, "  fits  %v\n", e)
		}
	}
	rest := 0
	sort.Slice(list, func(i, j int) bool { return list[i].call < list[j].call })
	for _, e := range list {
		if fits[e] || e.ret == never {
			continue
		}
		if rest++; rest > 12 {
			fmt.Fprintf(&b, "  and more\n")
			break
		}
		fmt.Fprintf(&b, "  then? %v\n", e)
	}
	return b.String()
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

// apart gives the operations of a batch of unknown outcome places of their own:
// how far it went is not known.
func (e *event) apart() []*event {
	out := make([]*event, len(e.parts))
	for i, p := range e.parts {
		one := *p
		one.call, one.ret, one.result = e.call, never, unknown
		out[i] = &one
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
