package desktops

import (
	"context"

	"cartwheel.dev/geo-config/fault"
)

// Result is what came of one trace.
type Result struct {
	Seed     uint64    `json:"seed"`
	Move     float64   `json:"move"`
	Facts    Facts     `json:"trace"`
	Outcomes []Outcome `json:"policies"`
}

// Outcome is what one policy made of the trace.
type Outcome struct {
	Policy Policy `json:"policy"`
	// Weeks are the reads of each week, All those of all.
	Weeks []Reads `json:"weeks"`
	All   Reads   `json:"all"`
	// Writes are creates, replacements and appends; Refused those without room.
	Writes  int `json:"writes"`
	Refused int `json:"writes_refused"`
	Counts
}

// Reads are counted by where the file was.
type Reads struct {
	Primary   int `json:"from_local_primary"`
	Secondary int `json:"from_local_secondary"`
	Remote    int `json:"from_remote"`
	// Missing are reads of files whose creation was refused.
	Missing int `json:"missing"`
}

// Served is how many reads found their file.
func (r Reads) Served() int { return r.Primary + r.Secondary + r.Remote }

// Local is the share of the served reads that found the primary on the reader's
// machine, Near that which found any current copy there. NaN of no reads.
func (r Reads) Local() float64 { return float64(r.Primary) / float64(r.Served()) }

// Near is Local for any current copy.
func (r Reads) Near() float64 { return float64(r.Primary+r.Secondary) / float64(r.Served()) }

func (r *Reads) add(o outcome) {
	switch o {
	case primary:
		r.Primary++
	case secondary:
		r.Secondary++
	case remote:
		r.Remote++
	case missing:
		r.Missing++
	}
}

// policyRun is a world with what came of it.
type policyRun struct {
	world
	outcome Outcome
}

// Run makes one trace, which all policies serve. It may take seconds, and ends with
// ctx. Errors: Usage for options that cannot be simulated; Other where an invariant
// is broken.
func Run(ctx context.Context, o Options, policies []Policy) (Result, error) {
	if err := o.Validate(); err != nil {
		return Result{}, err
	}
	t := NewTrace(o)
	worlds, err := begin(o, t, policies)
	if err != nil {
		return Result{}, err
	}
	watch := newObserver(o)
	looked := -1 // the last month whose end was checked
	for e, ok := t.Next(); ok; e, ok = t.Next() {
		if watch.see(e); e.Kind == Login || e.Kind == Stat {
			continue
		}
		if month := int(e.At / (4 * week)); month != looked {
			looked = month
			if err := checkAll(ctx, worlds); err != nil {
				return Result{}, err
			}
		}
		for _, w := range worlds {
			if err := w.take(e); err != nil {
				return Result{}, err
			}
		}
	}
	if err := checkAll(ctx, worlds); err != nil {
		return Result{}, err
	}
	r := Result{Seed: o.Seed, Move: o.Move, Facts: watch.done()}
	for _, w := range worlds {
		w.outcome.Counts = w.counts()
		r.Outcomes = append(r.Outcomes, w.outcome)
	}
	return r, nil
}

// begin makes the worlds, with what is there at the start.
func begin(o Options, t *Trace, policies []Policy) ([]*policyRun, error) {
	var worlds []*policyRun
	for _, p := range policies {
		w, err := newWorld(o, p)
		if err != nil {
			return nil, err
		}
		for _, h := range t.held {
			w.put(h)
		}
		w.begin()
		worlds = append(worlds, &policyRun{w, Outcome{Policy: p, Weeks: make([]Reads, o.weeks())}})
	}
	t.held = nil
	return worlds, nil
}

func newWorld(o Options, p Policy) (world, error) {
	switch p {
	case BeeRandom, BeeLRU, Random:
		return newBeeFS(o, p), nil
	case CartwheelSites, CartcartwheelOffice:
		return newCartwheel(o, p)
	}
	return nil, fault.E(fault.Usage, "desktops.newWorld", string(p), "is no policy")
}

// checkAll looks at the invariants of every world, and whether ctx has ended.
func checkAll(ctx context.Context, worlds []*policyRun) error {
	for _, w := range worlds {
		if err := w.check(); err != nil {
			return fault.Wrap(fault.Other, "desktops.checkAll", string(w.outcome.Policy), err)
		}
	}
	return ctx.Err()
}

// take does an event and notes what came of it.
func (w *policyRun) take(e Event) error {
	got, err := w.do(e)
	if err != nil {
		return err
	}
	switch o := &w.outcome; e.Kind {
	case Read:
		o.All.add(got)
		o.Weeks[e.At/week].add(got)
	case Create, Replace, Append:
		o.Writes++
		if got == refused {
			o.Refused++
		}
	}
	return nil
}
