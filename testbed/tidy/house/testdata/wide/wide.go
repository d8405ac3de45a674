// Package wide has types of known sizes.
package wide

import "sync"

// Wide has five fields.
type Wide struct {
	sync.Mutex
	a, b int
	c    struct{ inner int }
	_    string
}

// Long has more than one statement.
func (w *Wide) Long() int {
	w.a++
	return w.a
}

// Short is one of two own methods; Lock is promoted and does not count.
func (w *Wide) Short() int { return w.b }

// Front only forwards.
type Front struct{ w *Wide }

// Long forwards.
func (f Front) Long() int { return f.w.Long() }
