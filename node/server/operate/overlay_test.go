package operate

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"testing"

	"cartwheel.dev/geo-config/ids"
)

// table is a base that a test fills.
type table map[string][]byte

func (t table) Get(key []byte) ([]byte, bool, error) {
	v, ok := t[string(key)]
	return v, ok, nil
}

func (t table) Scan(from, to []byte, fn func(key, value []byte) bool) error {
	var keys []string
	for k := range t {
		if k >= string(from) && (to == nil || k < string(to)) {
			keys = append(keys, k)
		}
	}
	sort.Strings(keys)
	for _, k := range keys {
		if !fn([]byte(k), t[k]) {
			return nil
		}
	}
	return nil
}

// TestView_AnswersAsIfAllWereApplied compares the view over a base that lags
// behind with one map that had every change at once.
func TestView_AnswersAsIfAllWereApplied(t *testing.T) {
	const seed = 7
	random := rand.New(rand.NewPCG(seed, seed))
	base, all, over := table{}, table{}, newOverlay()
	type change struct {
		key, value string
		gone       bool
	}
	var pending []change
	v := view{over: over, base: base}
	first := ids.Serial(1)
	for step := range 3000 {
		key := fmt.Sprintf("k%02d", random.IntN(40))
		c := change{key: key, value: fmt.Sprint(step), gone: random.IntN(3) == 0}
		serial := first + ids.Serial(len(pending))
		if c.gone {
			delete(all, key)
			over.set([]byte(key), nil, serial)
		} else {
			all[key] = []byte(c.value)
			over.set([]byte(key), []byte(c.value), serial)
		}
		pending = append(pending, c)
		for n := random.IntN(4); n > 0 && len(pending) > 0; n-- {
			p := pending[0]
			if p.gone {
				delete(base, p.key)
			} else {
				base[p.key] = []byte(p.value)
			}
			over.applied([]byte(p.key), first)
			first, pending = first+1, pending[1:]
		}
		from, to := fmt.Sprintf("k%02d", random.IntN(40)), fmt.Sprintf("k%02d", random.IntN(40))
		limit := 1 + random.IntN(6)
		got, want := list(v, from, to, limit), list(all, from, to, limit)
		if got != want {
			t.Fatalf("step %d, [%s, %s) to %d: got %s, want %s", step, from, to, limit, got, want)
		}
		g, ok, _ := v.Get([]byte(key))
		if w, wok := all[key]; ok != wok || string(g) != string(w) {
			t.Fatalf("step %d, %s: got %q %v, want %q %v", step, key, g, ok, w, wok)
		}
	}
}

func list(b base, from, to string, limit int) string {
	out := ""
	_ = b.Scan([]byte(from), []byte(to), func(k, v []byte) bool { // the tables never fail
		out += fmt.Sprintf("%s=%s ", k, v)
		limit--
		return limit > 0
	})
	return out
}
