package historytest

import (
	"sync"
	"sync/atomic"
	"time"

	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/wire"
)

// manner is what happens to frames on their way.
type manner uint8

const (
	lose    manner = iota // lost, and dials fail
	hold                  // delivered when the fault ends, as TCP does
	slow                  // delivered a little later
	answers               // answers to operations are lost
)

// pair is a direction between two hosts, by their IDs.
type pair struct{ from, to string }

type rule struct {
	how   manner
	until time.Time     // of hold
	delay time.Duration // of slow
}

// network disturbs what hosts send each other. It is safe for concurrent use.
type network struct {
	some atomic.Int64 // rules in force
	// entries is how long messages of replica groups take, where no rule says more.
	entries time.Duration

	mu    sync.RWMutex // guards below
	rules map[pair]rule
	hosts map[string]*wire.Host
}

func newNetwork() *network { return &network{rules: map[pair]rule{}, hosts: map[string]*wire.Host{}} }

// join puts a host under the rules, in the place of one with the same ID.
func (n *network) join(h *wire.Host) {
	from := h.KeyID()
	n.mu.Lock()
	n.hosts[from] = h
	n.mu.Unlock()
	h.SetFilter(func(to string, _ wire.Class, m wire.Method) (usual wire.Verdict) {
		if m == method.Replica {
			usual.Delay = n.entries
		}
		if n.some.Load() == 0 {
			return usual
		}
		n.mu.RLock()
		r, ok := n.rules[pair{from, to}]
		n.mu.RUnlock()
		if !ok {
			return usual
		}
		switch r.how {
		case lose:
			return wire.Verdict{Drop: true}
		case hold:
			return wire.Verdict{Drop: m == wire.MethodDial, Delay: max(0, time.Until(r.until))}
		case slow:
			return wire.Verdict{Delay: max(r.delay, usual.Delay)}
		}
		return wire.Verdict{Drop: m == method.Operate}
	})
}

// disturb puts rules in force, until the returned function lifts them. Where
// frames were lost, their connections end then: a stream that lives has no gap.
func (n *network) disturb(pairs []pair, r rule) (lift func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range pairs {
		n.rules[p] = r
	}
	n.some.Add(int64(len(pairs)))
	return func() {
		n.mu.Lock()
		hosts := map[pair]*wire.Host{}
		for _, p := range pairs {
			delete(n.rules, p)
			hosts[p] = n.hosts[p.from]
		}
		n.mu.Unlock()
		n.some.Add(-int64(len(pairs)))
		if r.how != lose && r.how != answers {
			return
		}
		for p, h := range hosts {
			if h != nil {
				h.Disconnect(p.to)
			}
		}
	}
}
