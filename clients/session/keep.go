package session

import (
	"context"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// Times of the keep-alive, for sessions of 3 s, the default; shorter ones are
// renewed more often.
const (
	period      = 800 * time.Millisecond
	retryPeriod = 200 * time.Millisecond
	callLimit   = 2 * time.Second
	// A client gives up a session so much before the node's time for it is over:
	// a sixteenth of it for clocks that run apart by up to 6 %, and margin for
	// the steps in which they are read.
	driftPart = 16
	margin    = 20 * time.Millisecond
)

// maxUnder bounds the keep-alives to one node that are under way at once.
const maxUnder = 8

// answer is how a keep-alive ended that was sent for a session, 0 to open one.
type answer struct {
	number uint64
	err    error
}

// keep renews one session until the Manager closes. A keep-alive does not wait
// for the answer to the one before: on a way that is long or full the answers
// take as long as a session has left.
func (m *Manager) keep(s *nodeSession) {
	answers := make(chan answer, maxUnder) // with room for all: nobody waits to put one in
	under, opening, turns, wait := 0, 0, uint64(0), period
	var sent, due time.Time // the last one, the next one
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		select {
		case <-m.ctx.Done():
			m.end(s)
			return
		case a := <-answers:
			under--
			if a.number == 0 {
				opening--
			}
			wait = s.pause(a.err)
			from := sent // what a slow answer took is gone
			if a.err != nil {
				from = time.Now()
			}
			if soon := from.Add(wait); soon.Before(due) {
				due = soon
				t.Reset(time.Until(soon))
			}
		case <-s.hurry:
			due = time.Now()
			t.Reset(0)
		case <-t.C:
			due = time.Now().Add(wait)
			t.Reset(wait)
			number := s.number.Load()
			if number == 0 && opening == 0 { // of two one would open it in vain
				opening++
			} else if number == 0 || under-opening >= maxUnder-1 {
				break
			}
			under++
			turns++
			turn := turns
			sent = time.Now()
			m.loops.Add(1)
			go func() { defer m.loops.Done(); answers <- answer{number, m.renew(s, number, turn)} }()
		}
	}
}

// pause is the time from one keep-alive to the next.
func (s *nodeSession) pause(err error) time.Duration {
	if err != nil {
		return retryPeriod
	}
	return min(period, max(time.Duration(s.left.Load())/3, retryPeriod/4)) // two may be lost
}

// renew sends one keep-alive and takes its answer in, unless a later one's was
// taken in before or the session is another one by now.
func (m *Manager) renew(s *nodeSession, number, turn uint64) error {
	ctx, cancel := context.WithTimeout(m.ctx, callLimit)
	defer cancel()
	sent := m.now()
	s.mu.Lock()
	seen := s.seen
	s.mu.Unlock()
	s.taking.Lock()
	list := s.list
	s.taking.Unlock()
	var a pb.KeepAliveResponse
	_, err := m.caller.Call(ctx, s.id, wire.Beacon, method.KeepAlive,
		&pb.KeepAliveRequest{Session: number, Client: m.caller.Client(), RevocationsSeen: seen, List: list}, nil, &a)
	s.taking.Lock()
	defer s.taking.Unlock()
	switch {
	case s.number.Load() != number || err == nil && turn < s.taken:
	case err == nil:
		s.taken = turn
		if a.Session != number {
			m.lapse(s, a.Session)
		}
		if a.List == 0 || a.List != list { // else what was taken in since is as new
			m.takeList(s, a.Session == number, &a)
		}
		m.believe(s, sent, &a)
	case number != 0 && m.now() >= time.Duration(s.expires.Load()):
		m.lapse(s, 0)
	}
	return err
}

// takeList takes in for which slices the node does not act. Where it did not
// change since the list that the keep-alive named, the answer has none.
func (m *Manager) takeList(s *nodeSession, same bool, a *pb.KeepAliveResponse) {
	excepted := make(map[ids.Slice]bool, len(a.Excepted))
	for _, id := range a.Excepted {
		excepted[ids.Slice(id)] = true
		// Of a new session nothing was granted yet.
		if old := s.excepts.Load(); same && (old == nil || !(*old)[ids.Slice(id)]) {
			m.except(s, ids.Slice(id))
		}
	}
	s.excepts.Store(&excepted)
	s.list = a.List
}

// believe takes in how long the session lives. It comes last: until then leases
// are worth what the answer before said.
func (m *Manager) believe(s *nodeSession, sent time.Duration, a *pb.KeepAliveResponse) {
	// The time counts from the sending.
	s.expires.Store(int64(sent) + a.LeftNs - a.LeftNs/driftPart - int64(margin))
	if plant.On(plant.ClientCountsFromAnswer) {
		s.expires.Store(int64(m.now()) + a.LeftNs)
	}
	s.left.Store(a.LeftNs)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isOpen {
		s.isOpen = true
		close(s.opened)
	}
}

// end tells the node that nobody will come back.
func (m *Manager) end(s *nodeSession) {
	number := s.number.Swap(0)
	if number == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	// If it does not arrive, the session runs out by itself.
	_, _ = m.caller.Call(ctx, s.id, wire.Beacon, method.KeepAlive,
		&pb.KeepAliveRequest{Session: number, Client: m.caller.Client(), Close: true}, nil, &pb.KeepAliveResponse{})
}
