package historytest

import (
	"cmp"
	"slices"

	"github.com/anishathalye/porcupine"
)

// order is the search for an order of the operations on names. Those whose outcome
// is known have a place each. Those of unknown outcome are put in only where one of
// the others needs it: right before it, and where they change something that it
// looks at or changes. Every order that the model takes can be brought to that form,
// because an operation that changes nothing for the next one can trade places with
// it, and one at the end can be left out.
//
// Two ways that did the same known operations, and came to the same names, differ
// only in what they used of those of unknown outcome. The one that used less can go
// on as the other one can, so the other one ends there. The search takes the ways in
// the order of how many they used.
type order struct {
	sure    []*event   // of known outcome, in the order in which they began
	open    []alike    // of unknown outcome
	strange []sighting // made by creations of unknown outcome that do not know what they made
	most    int        // ways that the search may go on with
	steps   int        // those that it went on with

	gone map[standing][]string // what ways used that stood there
	// now are the ways to go on with, the last one first. later use one operation of
	// unknown outcome more.
	now, later []*way
	best       *way // the one that did most of sure
}

// alike are operations of unknown outcome that do the same. Each may happen as late
// as need be, so the one that began first is as good as any other.
type alike struct {
	what   what
	at, to int
	ino    uint64 // unseen: one that is seen nowhere; 0: one that is strange or unseen
	of     []*event
}

// way is a beginning of an order.
type way struct {
	standing
	left int // of sure
	// used counts what is used of each of open, and behind them which of strange were made.
	used string
	from *way   // the way without its last operation
	last *event // nil: it is at the start, or only decided what is next
}

// standing is where a way stands.
type standing struct {
	done  string // a bit for each of sure
	names cells
	next  int // the one of sure that is next, behind operations of unknown outcome that it needs; -1: not decided
}

// unseen marks the objects that no known operation names: one is like another. The
// low bits number them in the order of the names that have them.
const unseen = uint64(1) << 63

// newOrder sorts the events.
func newOrder(events []*event, most int) *order {
	o := &order{most: most, gone: map[standing][]string{}, strange: strangers(events)}
	named := map[uint64]bool{}
	var unsure []*event
	for _, e := range events {
		if e.result == unknown {
			unsure = append(unsure, e)
		} else {
			o.sure = append(o.sure, e)
		}
		if e.result != unknown || e.what == link {
			e.mentions(func(ino uint64) { named[ino] = true })
		}
	}
	byCall := func(a, b *event) int { return cmp.Compare(a.call, b.call) }
	slices.SortStableFunc(o.sure, byCall)
	slices.SortStableFunc(unsure, byCall)
	for _, e := range unsure {
		o.group(e, named)
	}
	start := &way{standing: standing{done: string(make([]byte, (len(o.sure)+7)/8)), next: -1},
		left: len(o.sure), used: string(make([]byte, len(o.open)+len(o.strange)))}
	o.now, o.best = []*way{start}, start
	return o
}

// group adds an operation of unknown outcome to those that do the same.
func (o *order) group(e *event, named map[uint64]bool) {
	k := alike{what: e.what, at: e.at, to: e.to, ino: e.ino}
	if e.what == create && e.ino != 0 && !named[e.ino] {
		k.ino = unseen
	}
	i := slices.IndexFunc(o.open, func(other alike) bool {
		return other.what == k.what && other.at == k.at && other.to == k.to && other.ino == k.ino && len(other.of) < 255
	})
	if i < 0 {
		o.open, i = append(o.open, k), len(o.open)
	}
	o.open[i].of = append(o.open[i].of, e)
}

// find says whether there is an order, if it can.
func (o *order) find() porcupine.CheckResult {
	for len(o.now) > 0 {
		w := o.now[len(o.now)-1]
		o.now = o.now[:len(o.now)-1]
		if w.left < o.best.left {
			o.best = w
		}
		if w.left == 0 {
			return porcupine.Ok
		}
		if !o.wasHere(w) {
			if o.steps++; o.steps > o.most {
				return porcupine.Unknown
			}
			o.gone[w.standing] = append(o.gone[w.standing], w.used)
			o.goOn(w)
		}
		if len(o.now) == 0 {
			o.now, o.later = o.later, nil
		}
	}
	return porcupine.Illegal
}

// goOn adds the ways that are one operation longer, or where it is decided what is
// next. What only looks, and saw what is there, may come at once: it is in no way.
func (o *order) goOn(w *way) {
	next, limit := o.next(w)
	if w.next >= 0 {
		next = []int{w.next}
	}
	for _, i := range next {
		if after, fits := o.take(w, i); fits && o.sure[i].onlyLooks() {
			o.now = append(o.now, after)
			return
		}
	}
	for _, i := range next {
		if w.next < 0 {
			decided := *w
			decided.next, decided.from, decided.last = i, w, nil
			o.now = append(o.now, &decided)
			continue
		}
		o.enable(w, i, limit)
		if after, fits := o.take(w, i); fits {
			o.now = append(o.now, after)
		}
	}
}

// next lists the known operations that could be next: they began before any that is
// not done ended. limit is when that was.
func (o *order) next(w *way) (next []int, limit int64) {
	limit = never
	for i, e := range o.sure {
		if w.done[i/8]&(1<<(i%8)) != 0 {
			continue
		}
		if e.call > limit {
			break
		}
		limit = min(limit, e.ret)
		next = append(next, i)
	}
	return next, limit
}

// take does a known operation, if its outcome fits.
func (o *order) take(w *way, i int) (after *way, fits bool) {
	names := w.names
	if !o.sure[i].names(&names) {
		return nil, false
	}
	done := []byte(w.done)
	done[i/8] |= 1 << (i % 8)
	return &way{standing{string(done), renumbered(names), -1}, w.left - 1, w.used, w, o.sure[i]}, true
}

// enable does one operation of unknown outcome, for a known one to come later.
func (o *order) enable(w *way, i int, limit int64) {
	mask := o.reach(w, o.sure[i].mask(), limit)
	for k := range o.open {
		if o.open[k].mask()&mask == 0 || !o.has(w, k, limit) {
			continue
		}
		o.put(w, k, -1)
		if o.open[k].what != create || o.open[k].ino != 0 {
			continue
		}
		for s := range o.strange {
			o.put(w, k, s)
		}
	}
}

// put does one of open. The object of a creation is the strange one s; -1: it is not.
func (o *order) put(w *way, k, s int) {
	used := []byte(w.used)
	e := *o.open[k].of[used[k]]
	used[k]++
	switch made := len(o.open) + s; {
	case s >= 0 && used[made] > 0:
		return
	case s >= 0:
		e.ino = o.strange[s].ino
		used[made] = 1
	case e.what == create && (e.ino == 0 || o.open[k].ino == unseen):
		e.ino = unseen | 1<<32 // no number of others
	}
	after := &way{w.standing, w.left, string(used), w, &e}
	e.names(&after.names)
	if after.names == w.names {
		return
	}
	after.names = renumbered(after.names)
	if !o.wasHere(after) {
		o.later = append(o.later, after)
	}
}

// has reports whether a way has not used all operations of a kind that began by limit.
func (o *order) has(w *way, k int, limit int64) bool {
	n := int(w.used[k])
	return n < len(o.open[k].of) && o.open[k].of[n].call <= limit
}

// reach widens names to all that operations of unknown outcome can bring there.
func (o *order) reach(w *way, mask uint64, limit int64) uint64 {
	for wider := true; wider; {
		wider = false
		for k := range o.open {
			if m := o.open[k].mask(); m&mask != 0 && m&^mask != 0 && o.has(w, k, limit) {
				mask, wider = mask|m, true
			}
		}
	}
	return mask
}

// wasHere reports whether another way reached the same standing before, and had used no
// more operations of unknown outcome.
func (o *order) wasHere(w *way) bool {
	return slices.ContainsFunc(o.gone[w.standing], func(used string) bool { return noMore(used, w.used) })
}

// noMore reports whether a way used no more of anything than another one.
func noMore(a, b string) bool {
	for i := range len(a) {
		if a[i] > b[i] {
			return false
		}
	}
	return true
}

// renumbered gives the unseen objects their numbers.
func renumbered(names cells) cells {
	var met []uint64
	for i, ino := range names {
		if ino&unseen == 0 {
			continue
		}
		n := slices.Index(met, ino)
		if n < 0 {
			met, n = append(met, ino), len(met)
		}
		names[i] = unseen | uint64(n)
	}
	return names
}

// mask says which names an operation looks at or changes, as bits.
func (k *alike) mask() uint64 {
	if k.what == rename {
		return 1<<k.at | 1<<k.to
	}
	return 1 << k.at
}

// path lists a way's operations.
func (w *way) path() (out []*event) {
	for ; w != nil; w = w.from {
		if w.last != nil {
			out = append(out, w.last)
		}
	}
	slices.Reverse(out)
	return out
}
