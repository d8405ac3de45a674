package link

import "slices"

// Set puts another state in force, of the same sites. Packets that wait for a
// rate go on at the new one, from the part of them that is not sent yet; those
// under way arrive as they would have.
func (l *Net) Set(now int64, s *State) {
	old := l.state
	for i := range s.Sides {
		if s.Sides[i].Off && !old.Sides[i].Off {
			l.sides[i].offAt = now
		}
	}
	l.state = s
	if !sameRates(old, s) {
		l.retime(now)
	}
}

func sameRates(a, b *State) bool {
	for i := range a.Sides {
		if a.Sides[i].Up != b.Sides[i].Up || a.Sides[i].Down != b.Sides[i].Down {
			return false
		}
	}
	for i := range a.Pairs {
		if a.Pairs[i].Rate != b.Pairs[i].Rate {
			return false
		}
	}
	return true
}

// retime sends again, in the order in which they came, all packets that wait.
func (l *Net) retime(now int64) {
	for i := range l.sides {
		l.sides[i].up.busy = min(l.sides[i].up.busy, now)
		l.sides[i].down.busy = min(l.sides[i].down.busy, now)
	}
	for i := range l.pairs {
		l.pairs[i].busy = min(l.pairs[i].busy, now)
		l.pairs[i].last = 0
	}
	slices.SortFunc(l.heap, func(a, b event) int { return int(a.order - b.order) })
	for i := range l.heap {
		e := &l.heap[i]
		f := &l.flights[e.flight]
		if f.arrived {
			continue
		}
		pr := &l.pairs[f.From*l.n+f.To]
		if f.end > now {
			l.resend(now, f, pr)
			e.at = f.end + f.after
		}
		if !f.held {
			e.at = max(e.at, pr.last)
			pr.last = e.at
		}
	}
	l.retimeDownlinks(now)
	l.heap.order()
}

// resend puts what is left of a packet through the queues on its side.
func (l *Net) resend(now int64, f *flight, pr *pair) {
	if f.upEnd > now {
		part := left(now, f.upStart, f.upEnd)
		f.upStart, f.upEnd = l.sides[f.From].up.send(now, l.state.Sides[f.From].Up, f.Bytes, part)
	}
	part := left(now, f.start, f.end)
	f.start, f.end = pr.send(max(f.upEnd, now), l.state.Pairs[f.From*l.n+f.To].Rate, f.Bytes, part)
}

// left returns the part of a packet that is still to be sent.
func left(now, start, end int64) float64 {
	if start >= now || end <= start {
		return 1
	}
	return float64(end-now) / float64(end-start)
}

// retimeDownlinks does the same for those that wait on the far side, in the
// order in which they were to leave.
func (l *Net) retimeDownlinks(now int64) {
	var waiting []*event
	for i := range l.heap {
		if f := &l.flights[l.heap[i].flight]; f.arrived && f.end > now {
			waiting = append(waiting, &l.heap[i])
		}
	}
	slices.SortFunc(waiting, func(a, b *event) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return int(a.order - b.order)
	})
	for _, e := range waiting {
		f := &l.flights[e.flight]
		f.start, f.end = l.sides[f.To].down.send(now, l.state.Sides[f.To].Down, f.Bytes, left(now, f.start, f.end))
		e.at = f.end
	}
}

// jitter returns how far the delay of a path is from its middle at a time. It
// goes in straight lines between points drawn evenly from -Jitter to Jitter,
// four jitters apart, so that it falls at most half as fast as time goes: what
// is sent later arrives later. Packets further apart than that see independent
// delays.
func (l *Net) jitter(at int, p *Params, t int64) int64 {
	if p.Jitter == 0 {
		return 0
	}
	step := 4 * p.Jitter
	k := t / step
	a, b := l.point(at, k), l.point(at, k+1)
	return int64(float64(p.Jitter) * (a + (b-a)*float64(t-k*step)/float64(step)))
}

// point is the k-th point of a path's jitter, from -1 to 1.
func (l *Net) point(at int, k int64) float64 {
	r := random(mix(mix(l.seed, ^uint64(at)), uint64(k)))
	return 2*r.share() - 1
}
