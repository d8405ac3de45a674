package wire

import (
	"sort"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/wire/framing"
)

// retireAfter is for how many times Times.Silence a connection that is not the
// current one of its peer and class may carry nothing but heartbeats.
const retireAfter = 2

// maxTick bounds the time between two looks at all connections, and so the delay of
// a timeout of Start.
const maxTick = 100 * time.Millisecond

// tick sends heartbeats, cuts silent connections, ends calls whose time is up and
// dials the peers to keep. It counts silence in ticks that this process really
// ran, so that a suspended process does not take its own absence for that of its
// peers.
func (h *Host) tick() {
	defer h.wg.Done()
	t := h.options.Times
	period := min(t.Heartbeat/2, t.Silence/4, t.Suspect/3, t.Probe, maxTick)
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	lastProbe := time.Time{}
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-ticker.C:
		}
		now := h.now()
		for _, l := range h.snapshot() {
			l.tick(now, period)
		}
		if time.Since(lastProbe) >= t.Probe {
			lastProbe = time.Now()
			h.dialKept()
		}
	}
}

func (l *link) tick(now int64, period time.Duration) {
	l.expire(now)
	if !l.admission.admitted.Load() {
		l.tickStranger()
	}
	t := l.host.options.Times
	raw := l.conn.raw
	if raw.sent.Swap(false) {
		l.ticks.quiet = 0
	} else if l.ticks.quiet++; l.ticks.quiet >= int(t.Heartbeat/period) {
		l.ticks.quiet = 0
		// A full queue is the peer's silence or our own traffic: both show.
		_, _ = l.send(&outgoing{Frame: framing.Frame{Kind: framing.Heartbeat}}, true)
	}
	if raw.heard.Swap(false) {
		l.ticks.silent = 0
		l.heardAt.Store(now)
	} else if l.ticks.silent++; l.ticks.silent > int(t.Silence/period) {
		raw.abort()
		l.fail(fault.E(fault.Unreachable, opLink, l.peer.id, "nothing heard from the peer"))
		return
	}
	if l.ticks.silent > int(t.Suspect/period) && l.peer.current[l.class].Load() == l {
		l.host.relays.suspect(l)
	}
	traffic := l.traffic.Load()
	if traffic != l.ticks.lastTraffic || l.peer.current[l.class].Load() == l || l.busy() {
		l.ticks.lastTraffic, l.ticks.idle = traffic, 0
	} else if l.ticks.idle++; l.ticks.idle > int(retireAfter*t.Silence/period) {
		l.fail(fault.E(fault.Unreachable, opLink, l.peer.id, "a newer connection is in use"))
	}
}

func (l *link) busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.calls.pending)+len(l.serving.requests) > 0
}

// dialKept dials the peers to keep that are not connected, and tries the direct
// path to those that go through a relay.
func (h *Host) dialKept() {
	h.relays.restoreDirect()
	var missing []struct {
		id    string
		class Class
	}
	h.mu.RLock()
	for id, p := range h.peers {
		for _, class := range [...]Class{Beacon, Operation} {
			if p.keep && p.current[class].Load() == nil {
				missing = append(missing, struct {
					id    string
					class Class
				}{id, class})
			}
		}
	}
	h.mu.RUnlock()
	// Always in the same order, for simulations.
	sort.Slice(missing, func(i, j int) bool {
		a, b := missing[i], missing[j]
		return a.id < b.id || a.id == b.id && a.class < b.class
	})
	for _, m := range missing {
		_, _, _ = h.dial(m.id, m.class, true) // the next probe tries again
	}
}
