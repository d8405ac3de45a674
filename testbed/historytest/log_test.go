package historytest

import (
	"math/rand/v2"
	"testing"

	"github.com/anishathalye/porcupine"
)

// appended is a log as a model that a search goes through: a read gives all of
// it.
var appended = porcupine.Model{
	Init: func() any { return "" },
	Step: step(func(state any, e *event) (bool, any) {
		if e.what == add {
			return true, state.(string) + e.value
		}
		return state == e.value, state
	}),
}

// aLog draws a history of a few appends and reads, most of which fit.
func aLog(r *rand.Rand) (events []*event) {
	content, left := "", []byte("abcdef")
	for i := range 3 + r.IntN(6) {
		effect := int64(10 * i)
		call, ret := effect-r.Int64N(25), effect+r.Int64N(25)
		e := event{object: logName, what: read, client: r.IntN(3), value: content}
		if r.IntN(2) == 0 && len(left) > 0 {
			e.what, e.value, left = add, string(left[:1]), left[1:]
			if r.IntN(4) == 0 {
				ret = never
			}
			if ret != never || r.IntN(2) == 0 {
				content += e.value
			}
		} else if r.IntN(2) == 0 && content != "" {
			at := r.IntN(len(content)) // what is wrong
			e.value = content[:at] + content[at+1:]
		}
		events = append(events, at(call, ret, e))
	}
	return events
}

func TestLogOrder_EqualsASearch(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	good := 0
	const rounds = 20_000
	for range rounds {
		h := aLog(r)
		want, _ := search(appended, h, mostSteps)
		why := logOrder(h)
		if (want == porcupine.Ok) != (why == "") {
			t.Fatalf("the search says %v, want %q of %v", want, why, h)
		}
		if why == "" {
			good++
		}
	}
	if good < rounds/10 || good > rounds*9/10 {
		t.Errorf("%d of %d histories are good: they say little", good, rounds)
	}
}

func TestSearch_SaysNothingBeyondItsSteps(t *testing.T) {
	var h []*event
	for i := range 6 {
		h = append(h, at(1, 1000, event{object: "r0[0]", what: write, client: i, value: string(rune('a' + i))}))
	}
	h = append(h, at(2000, 2001, event{object: "r0[0]", what: read, value: "z"})) // nobody wrote it
	if got, _ := search(register, h, 10); got != porcupine.Unknown {
		t.Errorf("got %v behind ten steps, want that nothing is known", got)
	}
	if got, _ := search(register, h, mostSteps); got != porcupine.Illegal {
		t.Errorf("got %v, want that nothing fits", got)
	}
}
