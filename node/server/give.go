package server

import (
	"context"
	"sync"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/store/meta"
	"cartwheel.dev/node/wire"
)

// giving keeps the states that copies of them are compared with.
type giving struct {
	mu   sync.Mutex // guards below
	kept map[uint64]*keptState
}

// keptState is a slice's state of one moment, which is being summed up.
type keptState struct {
	mu     sync.Mutex // guards what follows; one call at a time
	slice  ids.Slice
	peer   string
	frozen *meta.Frozen
	sum    *copySum
	behind meta.Row // what is summed up so far
	done   bool     // closed
	idle   *time.Timer
}

const (
	// maxKept bounds the states kept at once: each keeps old data alive.
	maxKept = 4
	// keptIdle is how long a state is kept between two calls.
	keptIdle = 5 * time.Minute
	// sumBytes is about how much is summed up at a time.
	sumBytes = 16 << 20
)

// giveTransfer answers a junior's TransferRequest.
func (s *Server) giveTransfer(ctx context.Context, r *wire.Request) {
	var req pb.TransferRequest
	if err := s.who.Node(r.Peer); err != nil {
		r.Fail(err)
		return
	}
	if !decoded(r, &req) {
		return
	}
	answer := &pb.TransferResponse{}
	var body []byte
	var err error
	switch {
	case req.Token != 0:
		err = s.giveSum(r.Peer, req.Token, answer)
	case req.Compare:
		err = s.keepState(ctx, r.Peer, &req, answer)
	default:
		body, err = s.givePage(ctx, &req, r.Body(), answer)
	}
	if err != nil {
		r.Fail(err)
		return
	}
	r.Reply(answer, body)
}

// freeze keeps a slice's state of one turn of the loop, which has at least what
// the request says. describe is called in the same turn.
func (s *Server) freeze(ctx context.Context, req *pb.TransferRequest, answer *pb.TransferResponse, describe func()) (frozen *meta.Frozen, err error) {
	const op fault.Op = "server.Transfer"
	id := ids.Slice(req.Slice)
	var refused error = fault.E(fault.NotFound, op, "", "this node has no whole copy of the slice")
	err = s.loop.Ask(ctx, func(core *replica.Node, _ replica.Time) {
		at, known := core.Applied(id)
		switch {
		case !known || !core.MayGive(id):
			return
		case at.Serial < ids.Serial(req.AtLeast):
			refused = fault.Errorf(fault.Again, op, "", "this node has applied %d, not yet %d", at.Serial, req.AtLeast)
			return
		}
		refused = nil
		answer.Serial, answer.Epoch = uint64(at.Serial), uint64(at.Epoch)
		if describe != nil {
			describe()
		}
		frozen = s.store.Meta().Freeze()
	})
	if err == nil {
		err = refused
	}
	return frozen, err
}

// givePage gives the rows behind the one that the body of the request names.
func (s *Server) givePage(ctx context.Context, req *pb.TransferRequest, behind []byte, answer *pb.TransferResponse) ([]byte, error) {
	var from meta.Row
	var describe func()
	if len(behind) > 0 {
		from.Area, from.Key = behind[0], behind[1:]
	} else {
		describe = func() {
			if at, known := s.loop.Snapshot(ids.Slice(req.Slice)); known {
				answer.Time, answer.Clients = uint64(at.Time), at.Clients
			}
		}
	}
	frozen, err := s.freeze(ctx, req, answer, describe)
	if err != nil {
		return nil, err
	}
	rows, err := frozen.Rows(ids.Slice(req.Slice), from, s.config.TransferPageBytes)
	if e := frozen.Close(); err == nil {
		err = e
	}
	if err != nil {
		return nil, err
	}
	var body []byte
	for i := range rows {
		body = appendRow(body, &rows[i])
	}
	answer.Last = len(rows) == 0
	return body, nil
}

// keepState keeps a slice's state for calls with the token that it answers.
func (s *Server) keepState(ctx context.Context, peer string, req *pb.TransferRequest, answer *pb.TransferResponse) error {
	k := &keptState{slice: ids.Slice(req.Slice), peer: peer}
	frozen, err := s.freeze(ctx, req, answer, func() {
		if at, known := s.loop.Snapshot(k.slice); known {
			k.sum = newCopySum(at)
		}
	})
	if err != nil {
		return err
	}
	k.frozen = frozen
	answer.Token = s.chance.Uint64() | 1
	return s.giving.add(answer.Token, k)
}

// giveSum goes on summing up a kept state, and answers the sum at its end.
func (s *Server) giveSum(peer string, token uint64, answer *pb.TransferResponse) error {
	k, err := s.giving.find(token, peer)
	if err != nil {
		return err
	}
	answer.Token = token
	if answer.Sum, err = k.next(); answer.Sum != nil || err != nil {
		s.giving.drop(token)
	}
	return err
}

// next sums up some more rows, and returns the sum once there are no more.
func (k *keptState) next() ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.done {
		return nil, fault.E(fault.Expired, "server.Transfer", "", "the state is no longer kept: begin again")
	}
	rows, err := k.frozen.Rows(k.slice, k.behind, sumBytes)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return k.sum.bytes(), nil
	}
	for i := range rows {
		k.sum.add(&rows[i])
	}
	k.behind = rows[len(rows)-1]
	k.behind.Value = nil
	return nil, nil
}

func (g *giving) add(token uint64, k *keptState) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for other, old := range g.kept { // a new state of the same takes the place of the old
		if old.peer == k.peer && old.slice == k.slice {
			delete(g.kept, other)
			go old.close()
		}
	}
	if len(g.kept) >= maxKept {
		k.close()
		return fault.E(fault.Overloaded, "server.Transfer", "", "enough states are kept to be compared")
	}
	g.kept[token] = k
	k.idle = time.AfterFunc(keptIdle, func() { g.drop(token) })
	return nil
}

func (g *giving) find(token uint64, peer string) (*keptState, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	k := g.kept[token]
	if k == nil || k.peer != peer {
		return nil, fault.E(fault.Expired, "server.Transfer", "", "the state is no longer kept: begin again")
	}
	k.idle.Reset(keptIdle)
	return k, nil
}

func (g *giving) drop(token uint64) {
	g.mu.Lock()
	k := g.kept[token]
	delete(g.kept, token)
	g.mu.Unlock()
	if k != nil {
		k.close()
	}
}

// close lets all states go.
func (g *giving) close() {
	g.mu.Lock()
	kept := g.kept
	g.kept = map[uint64]*keptState{}
	g.mu.Unlock()
	for _, k := range kept {
		k.close()
	}
}

func (k *keptState) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.done {
		return
	}
	k.done = true
	if k.idle != nil {
		k.idle.Stop()
	}
	_ = k.frozen.Close() // it was only read
}
