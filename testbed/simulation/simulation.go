package simulation

import (
	"testing"
	"testing/synctest"
)

// Run runs one seed.
func Run(t *testing.T, o Options) (r Result) {
	var w *world
	synctest.Test(t, func(*testing.T) {
		w = newWorld(o)
		if err := w.begin(); err != nil {
			w.problem("BEGIN: %v", err)
		} else {
			w.live()
			w.settle()
		}
		w.end()
		r = w.result()
	})
	// The search for an order has a limit, which only real time reaches.
	n, wrong, open := w.load.Judge()
	r.Operations, r.Problems = n, append(r.Problems, wrong...)
	for _, o := range open {
		r.Problems = append(r.Problems, "UNDECIDED: "+o)
	}
	return r
}
