package desktops

import (
	"slices"
	"time"
)

// Facts are what a trace turned out to be, beside what is known of the paper's.
type Facts struct {
	Events  int            `json:"events"`
	ByKind  map[string]int `json:"by_kind"` // with every call of stat
	Opens   int            `json:"opens"`
	Written int64          `json:"written_bytes"` // by creates, replacements and appends
	// Followed is the share of calls of stat that the user's next call of stat
	// follows with nothing between. MedianOpen is that of every eighth open, Brief the
	// share of all that are under 1 ms.
	Followed   float64       `json:"stats_followed"`
	MedianOpen time.Duration `json:"median_open_ns"`
	Brief      float64       `json:"opens_under_1ms"`
	MedianSize int64         `json:"median_new_bytes"`
	// Away is the share of logins at another machine than the user's desk.
	Away float64 `json:"logins_away"`
	// Own is the share of reads of files that were written since the same login.
	Own float64 `json:"reads_of_this_login"`
}

// String names the kind.
func (k Kind) String() string {
	return [...]string{"none", "login", "stat", "read", "create", "replace", "append", "overwrite", "delete"}[k]
}

// observer gathers the facts of a trace, event by event.
type observer struct {
	facts                     Facts
	byKind                    [Delete + 1]int
	runs, stats, logins, away int
	own, brief                int
	open                      []time.Duration // every eighth
	sizes                     []int64
	since                     []time.Duration // the last login, by user
	written                   []time.Duration // the last write, by file; 0: none
}

func newObserver(o Options) *observer {
	return &observer{facts: Facts{ByKind: map[string]int{}}, since: make([]time.Duration, o.Desktops)}
}

func (w *observer) see(e Event) {
	w.facts.Events++
	w.byKind[e.Kind] += max(1, e.Calls)
	for int(e.File) >= len(w.written) {
		w.written = append(w.written, 0)
	}
	switch e.Kind {
	case Login:
		w.logins++
		w.since[e.User] = e.At
		if e.Machine != e.User {
			w.away++
		}
		return
	case Stat:
		w.runs, w.stats = w.runs+1, w.stats+e.Calls
		return
	case Delete:
		return
	case Read:
		if at := w.written[e.File]; at > 0 && at >= w.since[e.User] {
			w.own++
		}
	case Create, Replace:
		w.sizes = append(w.sizes, e.Bytes)
		w.written[e.File] = e.At
	case Append, Overwrite:
		w.written[e.File] = e.At
	}
	w.facts.Written += e.Bytes
	if e.Open < time.Millisecond {
		w.brief++
	}
	if w.facts.Opens%8 == 0 {
		w.open = append(w.open, e.Open)
	}
	w.facts.Opens++
}

// done returns the facts.
func (w *observer) done() Facts {
	f := w.facts
	for k, n := range w.byKind {
		if n > 0 {
			f.ByKind[Kind(k).String()] = n
		}
	}
	share := func(n, of int) float64 { return float64(n) / float64(max(1, of)) }
	// Something else comes behind every row of calls.
	f.Followed, f.Away = share(w.stats-w.runs, w.stats), share(w.away, w.logins)
	f.Brief, f.Own = share(w.brief, f.Opens), share(w.own, w.byKind[Read])
	f.MedianOpen, f.MedianSize = middle(w.open), middle(w.sizes)
	return f
}

// middle is the median of what it puts in order; 0 of nothing.
func middle[T time.Duration | int64](v []T) T {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return v[len(v)/2]
}

// Observe makes a trace and returns its facts.
func Observe(o Options) (Facts, error) {
	if err := o.Validate(); err != nil {
		return Facts{}, err
	}
	t, w := NewTrace(o), newObserver(o)
	for e, ok := t.Next(); ok; e, ok = t.Next() {
		w.see(e)
	}
	return w.done(), nil
}
