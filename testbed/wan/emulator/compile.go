package emulator

import (
	"time"

	"cartwheel.dev/testbed/wan"
	"cartwheel.dev/testbed/wan/link"
)

const (
	leastQueue = 128 << 10 // bytes of a queue that was not given, at least
	leastRTT   = 50 * time.Millisecond
	noLimit    = 256 << 20 // bytes of a queue whose link has no rate
	reorderBy  = 10 * time.Millisecond
)

// fillSchedules gives schedules without a beginning one.
func fillSchedules(c *wan.Config, now time.Time) {
	for i := range c.Sites {
		for j := range c.Sites[i].Blackouts {
			if b := &c.Sites[i].Blackouts[j]; b.From.IsZero() {
				b.From = now
			}
		}
	}
}

// compile makes of a checked configuration what package link takes. base is
// the time that it counts from.
func compile(c *wan.Config, base time.Time) *link.State {
	n := len(c.Sites)
	s := &link.State{Sides: make([]link.Side, n), Pairs: make([]link.Params, n*n)}
	for i, from := range c.Sites {
		var longest time.Duration
		for j, to := range c.Sites {
			if i == j {
				continue
			}
			there, back := c.Pairs[wan.Pair{From: from.Name, To: to.Name}], c.Pairs[wan.Pair{From: to.Name, To: from.Name}]
			rtt := there.Delay + back.Delay
			longest = max(longest, rtt)
			s.Pairs[i*n+j] = path(there, rtt)
		}
		s.Sides[i] = link.Side{
			Up: rate(from.Up), Down: rate(from.Down), Off: from.Off,
			UpQueue: queue(from.UpQueue, from.Up, longest), DownQueue: queue(from.DownQueue, from.Down, longest),
		}
		for _, b := range from.Blackouts {
			s.Sides[i].Blackouts = append(s.Sides[i].Blackouts, link.Blackout{
				Every: int64(b.Every), For: int64(b.For), From: int64(b.From.Sub(base)),
			})
		}
	}
	return s
}

func path(p wan.Path, rtt time.Duration) link.Params {
	by := p.ReorderBy
	if by == 0 {
		by = reorderBy
	}
	return link.Params{
		Delay: int64(p.Delay), Jitter: int64(p.Jitter), Rate: rate(p.Rate), Queue: queue(p.Queue, p.Rate, rtt),
		Loss: p.Loss, Burst: p.Burst, Duplicate: p.Duplicate, Reorder: p.Reorder, ReorderBy: int64(by),
		Corrupt: p.Corrupt, Garble: p.Garble, Cut: p.Cut,
	}
}

func rate(r wan.Rate) int64 {
	if r == wan.Unlimited {
		return 0
	}
	return int64(r)
}

// queue returns a queue's bytes: what was given, or three times what is under
// way on the path when it is full: a connection of BBR begins with up to 3.5
// times that (its gain of 2.9, and what it adds for late acknowledgements).
func queue(given int, r wan.Rate, rtt time.Duration) int64 {
	if given > 0 {
		return int64(given)
	}
	if r == wan.Unlimited {
		return noLimit
	}
	return max(leastQueue, int64(3*float64(r)/8*max(rtt, leastRTT).Seconds()))
}
