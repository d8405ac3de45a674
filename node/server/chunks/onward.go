package chunks

import (
	"context"
	"slices"
	"sync"

	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// mostPieces bounds the pieces that are on their way to one node. What comes beyond
// goes in one piece, so that the node's limit of requests is not used up.
const mostPieces = 256

// onward counts the pieces that are on their way to each node.
type onward struct {
	mu     sync.Mutex     // guards below
	pieces map[string]int // no node has 0
}

// take counts so many more pieces to a node, unless that are too many.
func (o *onward) take(peer string, n int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.pieces[peer]+n > mostPieces {
		return false
	}
	if o.pieces == nil {
		o.pieces = map[string]int{}
	}
	o.pieces[peer] += n
	return true
}

func (o *onward) done(peer string, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.pieces[peer] -= n; o.pieces[peer] == 0 {
		delete(o.pieces, peer)
	}
}

// await waits for the rest of a chain without a worker: the next node may be
// waiting for this one at the same time. Where too many wait, the chain is cut
// here, and the rest fetches later.
func await(ctx context.Context, next <-chan passed, cut func()) passed {
	resume, err := wire.Yield(ctx)
	if err != nil {
		cut()
		return <-next
	}
	defer resume()
	return <-next
}

// passed is what the rest of a chain answered.
type passed struct {
	stored []string
	spent  *pb.Spent
}

// passedBy adds the way to the next node to what it spent itself.
func (s *Server) passedBy(peer string, a *pb.PutResponse, size int) passed {
	out := passed{stored: a.Stored, spent: &pb.Spent{Wan: a.Spent.GetWan(), Local: a.Spent.GetLocal(), Bytes: a.Spent.GetBytes()}}
	if s.Far != nil && s.Far(peer) {
		out.spent.Wan++
		out.spent.Bytes += uint64(size)
	} else {
		out.spent.Local++
	}
	return out
}

// passOn sends the chunks to the next node of the chain. The channel gives the
// nodes that stored them; where the chain breaks, the rest fetches later. To another
// site they go in pieces: the node there passes the first ones on while the last
// ones still travel, so that the lines of a chain are busy at the same time.
func (s *Server) passOn(ctx context.Context, asker string, req *pb.PutRequest, body []byte) <-chan passed {
	done := make(chan passed, 1)
	if len(req.Chain) == 0 {
		done <- passed{}
		return done
	}
	peer := req.Chain[0]
	pieces := []chunk.Piece{{Chunks: len(req.Sizes), Bytes: len(body)}}
	taken := 0
	if s.Far != nil && s.Far(peer) {
		if parts := chunk.Pieces(req.Sizes); len(parts) > 1 && s.onward.take(peer, len(parts)) {
			pieces, taken = parts, len(parts)
		}
	}
	answers := make(chan passed, len(pieces))
	for _, p := range pieces {
		onward := &pb.PutRequest{Slice: req.Slice, Addresses: req.Addresses[p.First*chunk.AddressSize:][:p.Chunks*chunk.AddressSize],
			Sizes: req.Sizes[p.First:][:p.Chunks], Chain: req.Chain[1:], Client: req.Client}
		go func() { answers <- s.passPiece(ctx, peer, asker, onward, body[p.At:][:p.Bytes]) }()
	}
	go func() {
		all := <-answers
		for range len(pieces) - 1 {
			all.join(<-answers)
		}
		if taken > 0 {
			s.onward.done(peer, taken)
		}
		done <- all
	}()
	return done
}

// passPiece sends some of the chunks to the next node.
func (s *Server) passPiece(ctx context.Context, peer, asker string, req *pb.PutRequest, body []byte) passed {
	if s.Push != nil {
		if err := s.Push(ctx, peer, asker, len(body)); err != nil {
			return passed{}
		}
	}
	var answer pb.PutResponse
	b, err := s.Caller.Call(ctx, peer, wire.Chunk, method.Put, req, [][]byte{body}, &answer)
	b.Release()
	if err != nil {
		return passed{}
	}
	return s.passedBy(peer, &answer, len(body))
}

// join adds what became of another piece: only a node that stored all pieces counts.
// The pieces travelled at the same time.
func (p *passed) join(q passed) {
	p.stored = slices.DeleteFunc(p.stored, func(n string) bool { return !slices.Contains(q.stored, n) })
	p.spent = &pb.Spent{Wan: max(p.spent.GetWan(), q.spent.GetWan()), Local: max(p.spent.GetLocal(), q.spent.GetLocal()),
		Bytes: p.spent.GetBytes() + q.spent.GetBytes()}
}
