package server

import (
	"context"
	"sync"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/store/meta"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/pb"
)

// giving keeps the states that are being copied to juniors.
type giving struct {
	mu     sync.Mutex // guards below
	copies map[uint64]*givenCopy
}

// givenCopy is one copy under way; its pages are asked for in order.
type givenCopy struct {
	mu     sync.Mutex // guards what follows; one page at a time
	slice  geoconfig.SliceID
	peer   string
	frozen *meta.Frozen
	behind meta.Row
	page   uint64
	sum    *copySum // of the pages so far
	last   []byte   // the page sent last, for a repeated question
	ended  bool
	done   bool // closed
	idle   *time.Timer
}

const (
	// maxCopies bounds the copies given at once: each keeps old data alive.
	maxCopies = 4
	// copyIdle is how long a copy is kept between two pages.
	copyIdle = 5 * time.Minute
	// pageBytes is about how much a page holds.
	pageBytes = 1 << 20
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
	var c *givenCopy
	var err error
	if req.Token == 0 {
		c, err = s.beginCopy(ctx, r.Peer, geoconfig.SliceID(req.Slice), answer)
	} else {
		c, err = s.giving.find(req.Token, r.Peer)
		answer.Token = req.Token
	}
	if err != nil {
		r.Fail(err)
		return
	}
	body, last, err := c.next(req.Page)
	if err != nil {
		r.Fail(err)
		return
	}
	if answer.Last = last; last {
		answer.Sum = c.sum.bytes()
		s.giving.drop(answer.Token)
	}
	r.Reply(answer, body)
}

// beginCopy keeps the slice's state of one turn of the loop.
func (s *Server) beginCopy(ctx context.Context, peer string, id geoconfig.SliceID, answer *pb.TransferResponse) (*givenCopy, error) {
	const op fault.Op = "server.Transfer"
	var snapshot replica.Snapshot
	var known bool
	c := &givenCopy{slice: id, peer: peer}
	err := s.loop.Ask(ctx, func(core *replica.Node, _ replica.Time) {
		if snapshot, known = s.loop.Snapshot(id); known && !core.MayGive(id) {
			known = false
		}
		if known {
			c.frozen = s.store.Meta().Freeze()
		}
	})
	if err != nil {
		return nil, err
	}
	if !known {
		return nil, fault.E(fault.NotFound, op, "", "this node has no whole copy of the slice")
	}
	answer.Serial, answer.Epoch, answer.Time, answer.Clients = uint64(snapshot.Serial), uint64(snapshot.Epoch), uint64(snapshot.Time), snapshot.Clients
	answer.Token = s.random() | 1
	c.sum = newCopySum(snapshot)
	if err := s.giving.add(answer.Token, c); err != nil {
		return nil, err
	}
	return c, nil
}

func (g *giving) add(token uint64, c *givenCopy) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for other, old := range g.copies { // a new copy of the same takes the place of the old
		if old.peer == c.peer && old.slice == c.slice {
			delete(g.copies, other)
			go old.close()
		}
	}
	if len(g.copies) >= maxCopies {
		c.close()
		return fault.E(fault.Overloaded, "server.Transfer", "", "enough copies are under way")
	}
	g.copies[token] = c
	c.idle = time.AfterFunc(copyIdle, func() { g.drop(token) })
	return nil
}

func (g *giving) find(token uint64, peer string) (*givenCopy, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.copies[token]
	if c == nil || c.peer != peer {
		return nil, fault.E(fault.Expired, "server.Transfer", "", "the copy is no longer kept: begin again")
	}
	c.idle.Reset(copyIdle)
	return c, nil
}

func (g *giving) drop(token uint64) {
	g.mu.Lock()
	c := g.copies[token]
	delete(g.copies, token)
	g.mu.Unlock()
	if c != nil {
		c.close()
	}
}

// close ends all copies.
func (g *giving) close() {
	g.mu.Lock()
	copies := g.copies
	g.copies = map[uint64]*givenCopy{}
	g.mu.Unlock()
	for _, c := range copies {
		c.close()
	}
}

func (c *givenCopy) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done {
		return
	}
	c.done = true
	if c.idle != nil {
		c.idle.Stop()
	}
	_ = c.frozen.Close() // it was only read
}

// next encodes a page: the one behind the last, or the last again.
func (c *givenCopy) next(page uint64) (body []byte, last bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if page != 0 && page == c.page {
		return c.last, c.ended, nil
	}
	if c.done || page != c.page+1 {
		return nil, false, fault.E(fault.Invalid, "server.Transfer", "", "pages come one after the other")
	}
	rows, err := c.frozen.Rows(c.slice, c.behind, pageBytes)
	if err != nil {
		return nil, false, err
	}
	for i := range rows {
		body = appendRow(body, &rows[i])
		c.sum.add(&rows[i])
	}
	c.page, c.last = page, body
	if c.ended = len(rows) == 0; !c.ended {
		c.behind = rows[len(rows)-1]
		c.behind.Value = nil
	}
	return body, c.ended, nil
}
