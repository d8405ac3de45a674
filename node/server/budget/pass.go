package budget

import (
	"context"
	"time"

	"cartwheel.dev/node/wire"
)

const (
	// pieceTime is about how long one answer of many chunks may keep a line, and
	// leastPiece how many bytes it has at least: of a lower class, so that a higher
	// one does not wait long behind it.
	pieceTime  = 100 * time.Millisecond
	leastPiece = 256 << 10
)

// Answer waits until so many bytes may go to a peer that asked for them. It gives
// the handler's worker back meanwhile, and tells the peer that the answer comes.
// Errors: that of ctx, Overloaded and Closed.
func (k *Keeper) Answer(ctx context.Context, peer string, c Class, bytes int) error {
	if c == Repair || c == Rebalancing {
		k.moved.Add(int64(bytes))
	}
	p := k.between(peer)
	if p == nil {
		return nil
	}
	return k.handle(ctx, p.out.line, peer, c, bytes)
}

// Take waits until bytes count as come that a client of another site sent. It works
// like Answer; the peer does not send more than it may have under way.
func (k *Keeper) Take(ctx context.Context, peer string, bytes int) error {
	p := k.between(peer)
	if p == nil {
		return nil
	}
	return k.handle(ctx, p.in.line, peer, Foreground, bytes)
}

// handle passes a line in a handler of requests.
func (k *Keeper) handle(ctx context.Context, l *line, peer string, c Class, bytes int) error {
	w, err := l.enter(peer, c, bytes)
	if w == nil {
		return err
	}
	defer k.signs.hold(peer)()
	resume, err := wire.Yield(ctx)
	if err != nil {
		if !l.leave(w, c) {
			<-w.ready
		}
		return err
	}
	defer resume()
	return l.await(ctx, w, c)
}

// Push waits until so many bytes may go to another node, for the sake of a peer
// whose request waits for that. The caller is no handler, or has given its worker
// back. Errors: as of Answer.
func (k *Keeper) Push(ctx context.Context, to, asker string, c Class, bytes int) error {
	p := k.between(to)
	if p == nil {
		return nil
	}
	w, err := p.out.line.enter(to, c, bytes)
	if w == nil {
		return err
	}
	if asker != "" {
		defer k.signs.hold(asker)()
	}
	return p.out.line.await(ctx, w, c)
}

// Piece returns how many bytes an answer to a peer should have at most that may be
// cut short; 0: as many as it likes.
func (k *Keeper) Piece(peer string) int {
	p := k.between(peer)
	if p == nil {
		return 0
	}
	if perSecond := p.out.line.rate(); perSecond > 0 {
		return max(int(perSecond*pieceTime.Seconds()), leastPiece)
	}
	return 0
}

// signed counts a sign of life.
func (k *Keeper) signed(peer string, bytes int) {
	if p := k.between(peer); p != nil {
		p.out.line.charge(int64(bytes), divideEvery)
	}
}
