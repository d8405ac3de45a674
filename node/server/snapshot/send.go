package snapshot

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

// opSend is the operation in the errors of what a sender answers.
const opSend fault.Op = "snapshot.Send"

// Snapshots is what a sender asks of the loop.
type Snapshots interface {
	// Ask runs a function between two turns of the loop, and waits for it.
	Ask(context.Context, func(*replica.Node, replica.Time)) error
	// Snapshot says what a slice's state stands for; on the loop's goroutine.
	Snapshot(ids.Slice) (replica.Snapshot, bool)
}

// SenderOptions are what a Sender is made of. Every field is needed.
type SenderOptions struct {
	Loop Snapshots
	Meta *meta.DB
	// Node answers Unauthorized unless a peer is a node of the cluster.
	Node func(peer string) error
	// PageBytes is about how many bytes of rows one answer holds.
	PageBytes int
	Random    func() uint64
	// Wait returns once so many bytes of a slice's state may go to a peer.
	Wait func(ctx context.Context, peer string, slice ids.Slice, bytes int) error
}

// Sender sends slices' states to juniors. It owns the states that the copies are
// compared with, until Close. It is safe for concurrent use. The mutex of a kept
// state may be taken under the sender's, never the other way about.
type Sender struct {
	o SenderOptions

	mu   sync.Mutex // guards below
	kept map[uint64]*keptState
}

// NewSender returns a sender that keeps no state.
func NewSender(o SenderOptions) *Sender { return &Sender{o: o, kept: map[uint64]*keptState{}} }

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
)

// Send answers a junior's TransferRequest: with a page of rows, with a state that
// is kept from now on, or with the sum of one.
func (s *Sender) Send(ctx context.Context, r *wire.Request) {
	var req pb.TransferRequest
	if err := s.o.Node(r.Peer); err != nil {
		r.Fail(err)
		return
	}
	if err := r.Decode(&req); err != nil {
		r.Fail(err)
		return
	}
	answer := &pb.TransferResponse{}
	var body []byte
	var err error
	switch {
	case req.Token != 0:
		err = s.sendSum(r.Peer, req.Token, answer)
	case req.Compare:
		err = s.keepState(ctx, r.Peer, &req, answer)
	default:
		body, err = s.page(ctx, &req, r.Body(), answer)
	}
	if err != nil {
		r.Fail(err)
		return
	}
	if err := s.o.Wait(ctx, r.Peer, ids.Slice(req.Slice), len(body)); err != nil {
		r.Fail(err)
		return
	}
	r.Reply(answer, body)
}

// freeze keeps a slice's state of one turn of the loop, which has at least what
// the request says. describe is called in the same turn.
func (s *Sender) freeze(ctx context.Context, req *pb.TransferRequest, answer *pb.TransferResponse, describe func()) (frozen *meta.Frozen, err error) {
	id := ids.Slice(req.Slice)
	var refused error = fault.E(fault.NotFound, opSend, "", "this node has no whole copy of the slice")
	err = s.o.Loop.Ask(ctx, func(core *replica.Node, _ replica.Time) {
		at, known := core.Applied(id)
		switch {
		case !known || !core.MayGive(id):
			return
		case at.Serial < ids.Serial(req.AtLeast):
			refused = fault.Errorf(fault.Again, opSend, "", "this node has applied %d, not yet %d", at.Serial, req.AtLeast)
			return
		}
		refused = nil
		answer.Serial, answer.Epoch = uint64(at.Serial), uint64(at.Epoch)
		if describe != nil {
			describe()
		}
		frozen = s.o.Meta.Freeze()
	})
	if err == nil {
		err = refused
	}
	return frozen, err
}

// page returns the rows behind the one that the body of the request names, or behind those
// of its ranges that are alike.
func (s *Sender) page(ctx context.Context, req *pb.TransferRequest, behind []byte, answer *pb.TransferResponse) ([]byte, error) {
	from, more := rowNamed(behind)
	var describe func()
	if !more {
		describe = func() {
			if at, known := s.o.Loop.Snapshot(ids.Slice(req.Slice)); known {
				answer.Time, answer.Clients = uint64(at.Time), at.Clients
			}
		}
	}
	frozen, err := s.freeze(ctx, req, answer, describe)
	if err != nil {
		return nil, err
	}
	rows, err := s.behind(frozen, req, from, answer)
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
	answer.Last = len(rows) == 0 && answer.End == nil
	return body, nil
}

// behind returns the rows of a page, and says in the answer which ranges before it are
// alike, and where it ends if that is not its last row.
func (s *Sender) behind(frozen *meta.Frozen, req *pb.TransferRequest, from meta.Row, answer *pb.TransferResponse) ([]meta.Row, error) {
	id := ids.Slice(req.Slice)
	same, from, err := alike(frozen, id, from, req.Have)
	if err != nil {
		return nil, err
	}
	answer.Same = uint32(same)
	if same == len(req.Have) && req.More {
		answer.End = nameOf(&from) // what follows is asked for with more ranges
		return nil, nil
	}
	rows, err := frozen.Rows(id, from, s.o.PageBytes)
	if err != nil || same == len(req.Have) {
		return rows, err
	}
	end, _ := rowNamed(req.Have[same].End) // alike has looked at it
	for i := range rows {
		if rows[i].Compare(end) > 0 {
			answer.End = req.Have[same].End
			return rows[:i], nil
		}
	}
	if left, err := frozen.Rows(id, lastOf(rows, from), 1); err != nil || len(left) > 0 && left[0].Compare(end) <= 0 {
		return rows, err // the page is full
	}
	answer.End = req.Have[same].End
	return rows, nil
}

// lastOf is the last of some rows, or another one where there are none.
func lastOf(rows []meta.Row, none meta.Row) meta.Row {
	if len(rows) == 0 {
		return none
	}
	return rows[len(rows)-1]
}

// keepState keeps a slice's state for calls with the token that it answers.
func (s *Sender) keepState(ctx context.Context, peer string, req *pb.TransferRequest, answer *pb.TransferResponse) error {
	k := &keptState{slice: ids.Slice(req.Slice), peer: peer}
	frozen, err := s.freeze(ctx, req, answer, func() {
		if at, known := s.o.Loop.Snapshot(k.slice); known {
			k.sum = newCopySum(at)
		}
	})
	if err != nil {
		return err
	}
	k.frozen = frozen
	answer.Token = s.o.Random() | 1
	return s.add(answer.Token, k)
}

// sendSum goes on summing up a kept state, and answers the sum at its end.
func (s *Sender) sendSum(peer string, token uint64, answer *pb.TransferResponse) error {
	k, err := s.find(token, peer)
	if err != nil {
		return err
	}
	answer.Token = token
	if answer.Sum, err = k.next(); answer.Sum != nil || err != nil {
		s.drop(token)
	}
	return err
}

// next sums up some more rows, and returns the sum once there are no more.
func (k *keptState) next() ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.done {
		return nil, fault.E(fault.Expired, opSend, "", "the state is no longer kept: begin again")
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

func (s *Sender) add(token uint64, k *keptState) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other, old := range s.kept { // a new state of the same takes the place of the old
		if old.peer == k.peer && old.slice == k.slice {
			delete(s.kept, other)
			go old.close()
		}
	}
	if len(s.kept) >= maxKept {
		k.close()
		return fault.E(fault.Overloaded, opSend, "", "enough states are kept to be compared")
	}
	s.kept[token] = k
	k.idle = time.AfterFunc(keptIdle, func() { s.drop(token) })
	return nil
}

func (s *Sender) find(token uint64, peer string) (*keptState, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kept[token]
	if k == nil || k.peer != peer {
		return nil, fault.E(fault.Expired, opSend, "", "the state is no longer kept: begin again")
	}
	k.idle.Reset(keptIdle)
	return k, nil
}

func (s *Sender) drop(token uint64) {
	s.mu.Lock()
	k := s.kept[token]
	delete(s.kept, token)
	s.mu.Unlock()
	if k != nil {
		k.close()
	}
}

// Close frees all kept states.
func (s *Sender) Close() {
	s.mu.Lock()
	kept := s.kept
	s.kept = map[uint64]*keptState{}
	s.mu.Unlock()
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
