package acceptance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// judgeLimit bounds the search for an order. What is not found out by then is
// wrong.
const judgeLimit = 2 * time.Minute

// namespace is what the names name. It is not changed in place.
type namespace map[string]string

func (s namespace) with(name, id string) namespace {
	out := namespace{}
	for n, i := range s {
		out[n] = i
	}
	if delete(out, name); id != "" {
		out[name] = id
	}
	return out
}

func (s namespace) String() string {
	var out []string
	for n, i := range s {
		out = append(out, n+"="+i)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// in returns the names of one directory.
func (s namespace) in(dir string) []string {
	var out []string
	for n := range s {
		if strings.HasPrefix(n, dir+"/") {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// step takes one step on the names, and reports whether the answer fits.
// Directories replace nothing.
func (s namespace) step(e *event, directories bool) (bool, namespace) {
	has := s[e.At]
	switch e.What {
	case didPut:
		return e.Result == "", s.with(e.At, e.ID)
	case didLink:
		if e.Result == isTaken {
			return has != "", s
		}
		return has == "", s.with(e.At, e.ID)
	case didTake:
		if e.Result == isMissing {
			return has == "", s
		}
		return has != "" && (e.ID == "" || e.ID == has), s.with(e.At, "")
	case didFind:
		return e.ID == has, s
	case didList:
		got := slices.Clone(e.Names)
		slices.Sort(got)
		return slices.Equal(got, s.in(e.At)), s
	case didMove:
		taken := directories && s[e.To] != ""
		switch e.Result {
		case isMissing:
			return has == "", s
		case isTaken:
			return has != "" && taken, s
		}
		return has != "" && !taken, s.with(e.At, "").with(e.To, has)
	}
	return false, s
}

func namesModel(directories bool) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return namespace{} },
		Step: func(state, input, _ any) (bool, any) {
			ok, s := state.(namespace).step(input.(*event), directories)
			return ok, s
		},
		Equal: func(a, b any) bool { return a.(namespace).String() == b.(namespace).String() },
	}
}

var registerModel = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, _ any) (bool, any) {
		if e := input.(*event); e.What == didGet {
			return e.ID == state, state
		}
		return true, input.(*event).ID
	},
}

// history is all that the programs did.
type history []*event

// of returns the events about what begins so.
func (h history) of(prefix string) history {
	var out history
	for _, e := range h {
		if strings.HasPrefix(e.At, prefix) {
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, func(a, b *event) int { return cmp.Compare(a.Begin, b.Begin) })
	return out
}

// ordered finds an order of events that the model explains.
func (h history) ordered(what string, m porcupine.Model) []string {
	var ops []porcupine.Operation
	for _, e := range h {
		ops = append(ops, porcupine.Operation{ClientId: e.Program, Input: e, Call: e.Begin, Return: e.End})
	}
	switch porcupine.CheckOperationsTimeout(m, ops, judgeLimit) {
	case porcupine.Illegal:
		return []string{fmt.Sprintf("%s: no order explains what %d operations answered%s", what, len(h), h.impossible(m))}
	case porcupine.Unknown:
		return []string{fmt.Sprintf("%s: no order of %d operations was found in %v", what, len(h), judgeLimit)}
	}
	return nil
}

// impossible looks for the first answer without which there is an order, and
// prints what was under way around it.
func (h history) impossible(m porcupine.Model) string {
	low, high := 0, len(h) // the first low events have an order, the first high none
	ends := slices.Clone(h)
	slices.SortStableFunc(ends, func(a, b *event) int { return cmp.Compare(a.End, b.End) })
	for high-low > 1 {
		middle := (low + high) / 2
		var ops []porcupine.Operation
		until := ends[middle-1].End
		for _, e := range h {
			switch {
			case e.End <= until:
				ops = append(ops, porcupine.Operation{ClientId: e.Program, Input: e, Call: e.Begin, Return: e.End})
			case e.Begin < until && changes(e): // it may have taken effect
				ops = append(ops, porcupine.Operation{ClientId: e.Program, Input: e, Call: e.Begin, Return: e.End})
			}
		}
		if porcupine.CheckOperationsTimeout(m, ops, judgeLimit) == porcupine.Ok {
			low = middle
		} else {
			high = middle
		}
	}
	var out strings.Builder
	last := ends[high-1]
	for _, e := range ends[max(0, high-12):min(len(ends), high+6)] {
		mark := " "
		if e == last {
			mark = "*"
		}
		fmt.Fprintf(&out, "\n %s %d..%d us: program %d: %s %s %s %s %v %s", mark, (e.Begin-last.End)/1000, (e.End-last.End)/1000, e.Program, e.What, e.At, e.To, e.ID, e.Names, e.Result)
	}
	return out.String()
}

func changes(e *event) bool {
	return e.Result == "" && slices.Contains([]string{didPut, didLink, didTake, didMove, didSet}, e.What)
}

// judge returns what is wrong with a history; final has what the logs and the
// counters hold in the end. Strictly, it also judges what is known to fail.
func judge(h history, final map[string]string, strict bool) []string {
	var wrong []string
	open := map[string]bool{} // of what an operation's outcome is not known
	for _, e := range h {
		if e.What == didError {
			wrong = append(wrong, fmt.Sprintf("program %d got an error that is not promised, of %s, after %d ms: %s", e.Program, e.At, (e.End-e.Begin)/1e6, e.Result))
			open[e.At] = true
		}
	}
	wrong = append(wrong, h.kept(strict)...)
	one := func(kind, name string, by func(history) []string) {
		if !open[kind] {
			wrong = append(wrong, by(h.of(name))...)
		}
	}
	one("names", "names", func(h history) []string { return h.ordered("files", namesModel(false)) })
	one("dirs", "dirs", func(h history) []string { return h.ordered("directories", namesModel(true)) })
	for i := range registers {
		name := fmt.Sprint("register", i)
		one("register", name, func(h history) []string { return h.ordered(name, registerModel) })
	}
	for _, log := range logs {
		one("log", log, func(h history) []string { return h.appended(log, final[log], strict) })
	}
	for name, value := range final {
		if kind := strings.TrimRight(name, "0123456789"); kind == "count" || kind == "range" {
			one(kind, name, func(h history) []string { return h.counted(name, value) })
		}
	}
	return wrong
}

// TestJudge_FindsWhatIsWrong plants one fault after the other in a history
// that is right.
func TestJudge_FindsWhatIsWrong(t *testing.T) {
	right := func() (history, map[string]string) {
		log := "1 0 x\n2 0 \n1 1 y\n"
		return history{
			{Program: 1, What: didPut, At: "names0/a", ID: "1.1", Begin: 10, End: 20},
			{Program: 2, What: didMove, At: "names0/a", To: "names1/a", Begin: 30, End: 40},
			{Program: 1, What: didFind, At: "names1/a", ID: "1.1", Begin: 50, End: 60},
			{Program: 1, What: didList, At: "names0", Begin: 50, End: 60},
			{Program: 1, What: didLink, At: "dirs0/a", ID: "7", Begin: 10, End: 20},
			{Program: 2, What: didLink, At: "dirs0/a", ID: "8", Result: isTaken, Begin: 30, End: 40},
			{Program: 1, What: didTake, At: "dirs0/a", ID: "7", Begin: 50, End: 60},
			{Program: 1, What: didSet, At: "register0", ID: "1.2", Begin: 10, End: 20},
			{Program: 2, What: didGet, At: "register0", ID: "1.2", Begin: 30, End: 40},
			{Program: 1, What: didAppend, At: "log0", Lines: []string{"1 0 x\n"}, Begin: 10, End: 20},
			{Program: 2, What: didAppend, At: "log0", Lines: []string{"2 0 \n"}, Begin: 15, End: 30},
			{Program: 1, What: didAppend, At: "log0", Lines: []string{"1 1 y\n"}, Begin: 40, End: 50},
			{Program: 3, What: didRead, At: "log0", ID: log[:11], Begin: 32, End: 45},
			{Program: 1, What: didCount, At: "count0", Value: 0, Begin: 10, End: 20},
			{Program: 2, What: didCount, At: "count0", Value: 1, Begin: 30, End: 40},
			{Program: 2, What: didLook, At: "count0", Value: 2, Begin: 50, End: 60},
			{Program: 3, What: didLook, At: "count0", Value: 2, Begin: 55, End: 65},
		}, map[string]string{"log0": log, "count0": "2"}
	}
	if h, final := right(); len(judge(h, final, true)) > 0 {
		t.Fatalf("what is right is judged wrong: %q", judge(h, final, true))
	}
	for what, plant := range map[string]func(h history, final map[string]string){
		"a name that did not move":           func(h history, _ map[string]string) { h[2].ID, h[2].Result = "", isMissing },
		"a list with an old name":            func(h history, _ map[string]string) { h[3].Names = []string{"names0/a"} },
		"a directory that was replaced":      func(h history, _ map[string]string) { h[5].Result = "" },
		"another directory":                  func(h history, _ map[string]string) { h[6].ID = "8" },
		"an old register":                    func(h history, _ map[string]string) { h[8].ID = "" },
		"a line that was lost":               func(_ history, final map[string]string) { final["log0"] = "1 0 x\n1 1 y\n" },
		"a line that is there twice":         func(_ history, final map[string]string) { final["log0"] += "1 1 y\n" },
		"lines in another order":             func(_ history, final map[string]string) { final["log0"] = "1 0 x\n1 1 y\n2 0 \n" },
		"a line that was overwritten":        func(_ history, final map[string]string) { final["log0"] = "1 0 x\n2 0 \n\x00\x00\x00\x00\x00\n" },
		"a reader that lacks what was there": func(h history, _ map[string]string) { h[12].ID = "1 0 x\n" },
		"a reader of what came later":        func(h history, _ map[string]string) { h[12].End, h[12].ID = 35, "1 0 x\n2 0 \n1 1 y\n" },
		"a reader of something else":         func(h history, _ map[string]string) { h[12].ID = "1 0 x\n2 1" },
		"an update that was lost":            func(h history, _ map[string]string) { h[14].Value = 0 },
		"a count that is too small":          func(_ history, final map[string]string) { final["count0"] = "1" },
		"two that held a lock":               func(h history, _ map[string]string) { h[14].Begin = 15 },
		"a shared and an exclusive lock":     func(h history, _ map[string]string) { h[15].Begin = 35 },
		"an open file that was gone": func(h history, _ map[string]string) {
			h[2].What, h[2].Lost = didLose, 70
		},
		"zeros where another mount appends": func(h history, _ map[string]string) { h[12].ID += "\x00\x00" },
		"an error":                          func(h history, _ map[string]string) { h[0].What = didError },
	} {
		h, final := right()
		if plant(h, final); len(judge(h, final, true)) == 0 {
			t.Errorf("%s is judged right", what)
		}
	}
}
