package survey

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/wire"
)

const (
	// measureTimeout bounds the measurements before a choice that lasts: more than
	// any round trip on Earth, less than a client waits.
	measureTimeout = time.Second
	// measureKept is how long what they found is believed, so that a choice that
	// has to be made again costs nothing, nor does a node that does not answer.
	measureKept = 10 * time.Second
)

// Measure measures the round trips from a node to others for a choice that lasts,
// as placement.Probe says. Where from is another node, that one is asked to
// measure. It takes a second at most.
func (s *Surveyor) Measure(ctx context.Context, from ids.Node, to []ids.Node) map[ids.Node]time.Duration {
	limit, cancel := context.WithTimeout(ctx, measureTimeout)
	defer cancel()
	var mu sync.Mutex // guards out
	out := map[ids.Node]time.Duration{}
	var all sync.WaitGroup
	for _, id := range to {
		all.Go(func() {
			way := way{from, id}
			rtt, known := s.measured.get(way, s.o.Clock())
			if !known {
				if rtt, known = s.measure(limit, way); !known || ctx.Err() != nil {
					return
				}
				s.measured.put(way, rtt, s.o.Clock())
			}
			mu.Lock()
			defer mu.Unlock()
			out[id] = rtt
		})
	}
	all.Wait()
	return out
}

// measure returns the round trip of one way, 0 where its end does not answer.
// False: nobody knows.
func (s *Surveyor) measure(ctx context.Context, w way) (time.Duration, bool) {
	if w.from == s.o.Self {
		rtt, err := s.o.Host.Ping(ctx, string(w.to))
		if err == nil {
			return max(rtt, 1), true
		}
		return 0, fault.Is(err, fault.Unreachable) || fault.Is(err, fault.TimedOut)
	}
	var a pb.NetResponse
	body, err := s.o.Host.Call(ctx, string(w.from), wire.Operation, method.Net, &pb.NetRequest{Probes: 1, Nodes: []string{string(w.to)}}, nil, &a)
	body.Release()
	var told status.Net
	if err != nil || json.Unmarshal(a.Net, &told) != nil {
		return 0, false
	}
	i := slices.IndexFunc(told.Links, func(l status.Link) bool { return l.To == w.to })
	switch {
	case i < 0:
		return 0, false
	case len(told.Links[i].ProbeNS) > 0:
		return max(slices.Min(told.Links[i].ProbeNS), 1), true
	}
	return 0, told.Links[i].Error != ""
}

// way is from one node to another.
type way struct{ from, to ids.Node }

// measurements remembers what was measured lately.
type measurements struct {
	mu sync.Mutex // guards by
	by map[way]measurement
}

type measurement struct {
	rtt time.Duration // 0: no answer
	at  time.Duration
}

func (m *measurements) get(w way, now time.Duration) (time.Duration, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	x, ok := m.by[w]
	return x.rtt, ok && now-x.at < measureKept
}

func (m *measurements) put(w way, rtt, now time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.by, func(_ way, x measurement) bool { return now-x.at >= measureKept })
	if m.by == nil {
		m.by = map[way]measurement{}
	}
	m.by[w] = measurement{rtt, now}
}
