package wire

import (
	"context"
	"sync"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/wire/framing"
)

// A large answer on a slow way takes long, and asking again makes the way slower:
// the bytes that are on it come all the same. So whoever waits for content gives up
// when nothing comes, not when it takes long.

// lifeSign is how many bytes must come for a connection to be moving. Heartbeats
// are fewer.
const lifeSign = 2 << 10

// methodAlive is wire's own: nothing answers it.
const methodAlive Method = MaxMethod - 3

// SignLife sends a peer what keeps its calls of a class waiting, and nothing else:
// whoever has an answer held back calls it more often than the peer's stall. It
// never waits. It sends nothing where there is no connection, or where frames wait
// to be sent anyway. It returns how many bytes it sent.
func SignLife(h *Host, peer string, class Class) int {
	l := h.currentLink(peer, class)
	if l == nil || l.queue.IsWaiting() {
		return 0
	}
	o := outgoing{Frame: framing.Frame{Kind: framing.OneWay, Method: methodAlive}, body: [][]byte{make([]byte, lifeSign)}}
	if result, err := l.send(&o, true); result != sendDone || err != nil {
		return 0
	}
	return lifeSign
}

// mostGrace is how often the time of a call of Start begins anew, at the most.
const mostGrace = 60

// grace is what a call of Start may take beyond its time.
type grace struct {
	each int64  // ns
	left int    // how often
	came uint64 // bytes of the connection when the time began
}

// extend moves a deadline where the connection has brought something since the
// time began.
func (g *grace) extend(deadline *int64, came uint64) bool {
	if g.left == 0 || came-g.came < lifeSign {
		return false
	}
	g.left--
	g.came = came
	*deadline += g.each
	return true
}

// Patient returns a context for one call, which ends when the peer's connection of
// that class has brought next to nothing for stall, and not because the answer is
// large or others come before it. It ends after most in any case, and with ctx. The
// caller calls cancel.
func Patient(ctx context.Context, h *Host, peer string, class Class, stall, most time.Duration) (context.Context, context.CancelFunc) {
	return patient(ctx, func() uint64 { return Came(h, peer, class) }, stall, most)
}

// Came returns how many bytes the present connection of a class to a peer has brought,
// heartbeats and all; 0: there is none.
func Came(h *Host, peer string, class Class) uint64 {
	if l := h.currentLink(peer, class); l != nil {
		return l.conn.raw.came.Load()
	}
	return 0
}

// patient is Patient over a counter.
func patient(ctx context.Context, came func() uint64, stall, most time.Duration) (context.Context, context.CancelFunc) {
	ctx, end := context.WithTimeout(ctx, most)
	out, cancel := context.WithCancelCause(ctx)
	var mu sync.Mutex // guards below
	var timer *time.Timer
	last := came()
	check := func() {
		mu.Lock()
		defer mu.Unlock()
		now := came()
		if now >= last && now-last < lifeSign { // a new connection begins at 0
			cancel(fault.E(fault.TimedOut, opCall, "", "nothing comes from the peer"))
		}
		last = now
		if out.Err() == nil {
			timer.Reset(stall)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(stall, check)
	return out, func() {
		cancel(context.Canceled)
		end()
		timer.Stop()
	}
}
