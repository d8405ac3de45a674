package desktops

import (
	"slices"
	"time"
)

// Facts are what a trace turned out to be, beside what is known of the paper's.
type Facts struct {
	Events  int            `json:"events"`
	ByKind  map[string]int `json:"by_kind"` // calls of stat counted one by one
	Opens   int            `json:"opens"`
	Written int64          `json:"written_bytes"` // by creates, replacements and appends
	// Followed is the share of calls of stat that the user's next call of stat
	// follows with nothing between. Brief is the share of opens under 1 ms.
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
	runs, stats, logins, away int
	reads, own                int
	open                      []time.Duration
	sizes                     []int64
	since                     []time.Duration // the last login, by user
	written                   map[File]time.Duration
}

func newObserver(o Options) *observer {
	return &observer{facts: Facts{ByKind: map[string]int{}}, since: make([]time.Duration, o.Desktops), written: map[File]time.Duration{}}
}

func (w *observer) see(e Event) {
	w.facts.Events++
	w.facts.ByKind[e.Kind.String()] += max(1, e.Calls)
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
		delete(w.written, e.File)
		return
	case Read:
		w.reads++
		if at, ok := w.written[e.File]; ok && at >= w.since[e.User] {
			w.own++
		}
	case Create, Replace:
		w.sizes = append(w.sizes, e.Bytes)
		w.written[e.File] = e.At
	case Append, Overwrite:
		w.written[e.File] = e.At
	}
	w.facts.Written += e.Bytes
	w.open = append(w.open, e.Open)
}

// done returns the facts.
func (w *observer) done() Facts {
	f := w.facts
	f.Opens = len(w.open)
	share := func(n, of int) float64 { return float64(n) / float64(max(1, of)) }
	// Something else comes behind every row of calls.
	f.Followed, f.Away, f.Own = share(w.stats-w.runs, w.stats), share(w.away, w.logins), share(w.own, w.reads)
	slices.Sort(w.open)
	slices.Sort(w.sizes)
	if n := len(w.open); n > 0 {
		f.MedianOpen = w.open[n/2]
		brief, _ := slices.BinarySearch(w.open, time.Millisecond)
		f.Brief = share(brief, n)
	}
	if n := len(w.sizes); n > 0 {
		f.MedianSize = w.sizes[n/2]
	}
	return f
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
