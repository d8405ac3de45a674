package historytest

import (
	"fmt"
	"sort"
	"strings"

	"github.com/anishathalye/porcupine"
)

// mostSteps bounds the search for an order of one register's operations; a search
// that needs more says nothing. Steps are counted and not time, so that a
// history has one verdict, however busy the machine is.
const mostSteps = 20_000_000

// mostWays bounds the search for an order of the operations on names, as mostSteps
// bounds those of registers.
const mostWays = 200_000

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
		if e.result == unknown && (e.what == read || e.what == lookup || e.what == list) {
			continue // it changed nothing
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
		why, decided := judge(o, by[o])
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
func judge(object string, list []*event) (why string, decided bool) {
	if strings.HasPrefix(object, logName) {
		return logOrder(list), true
	}
	if object == namesObject || object == onceObject {
		o := newOrder(list, mostWays)
		switch o.find() {
		case porcupine.Illegal:
			return explain(o.best.path(), list), true
		case porcupine.Unknown:
			return "", false
		}
		return "", true
	}
	result, info := search(register, list, mostSteps)
	if result == porcupine.Illegal {
		why = explain(longest(info), list)
	}
	return why, result != porcupine.Unknown
}

// longest returns the longest order that the search found.
func longest(info porcupine.LinearizationInfo) (out []*event) {
	var most []porcupine.Operation
	for _, part := range info.PartialLinearizationsOperations() {
		for _, order := range part {
			if len(order) > len(most) {
				most = order
			}
		}
	}
	for _, op := range most {
		out = append(out, op.Input.(*event))
	}
	return out
}

// explain shows the end of the longest order that fits, and what follows it.
func explain(longest, list []*event) string {
	fits := map[*event]bool{}
	var b strings.Builder
	for i, e := range longest {
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
