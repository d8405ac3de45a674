// Package requests answers the calls whose messages need more than decoding:
// operations, chunks, listings, a client's hello, and the frames of other nodes.
// It checks through package access what a request may do, has another part do the
// work, and puts leases and tickets into the answer. Client and Node make
// handlers of the parts that answer by themselves. The handlers have no state of
// their own and run on the goroutines of their connections and requests, many at
// once.
package requests

import (
	"context"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/node/server/access"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/wire"
)

// message is one that a handler decodes.
type message[T any] interface {
	*T
	proto.Message
}

// Client makes a handler for clients that said hello, and for nodes, which act
// as the system.
func Client[T any, M message[T]](c *access.Control, f func(context.Context, *identity.Who, M) (proto.Message, error)) func(context.Context, *wire.Request) {
	return func(ctx context.Context, r *wire.Request) {
		m := M(new(T))
		if w, ok := admit(c, r, m); ok {
			answer, err := f(ctx, w, m)
			reply(r, answer, err)
		}
	}
}

// Node makes a handler for nodes alone. isNode answers nil for those.
func Node[T any, M message[T]](isNode func(peer string) error, f func(context.Context, M) (proto.Message, error)) func(context.Context, *wire.Request) {
	return func(ctx context.Context, r *wire.Request) {
		if err := isNode(r.Peer); err != nil {
			r.Fail(err)
			return
		}
		m := M(new(T))
		if decode(r, m) {
			answer, err := f(ctx, m)
			reply(r, answer, err)
		}
	}
}

// admit decodes a request of a peer that said hello or is a node. Where ok is
// false, it has refused the request.
func admit(c *access.Control, r *wire.Request, m proto.Message) (w *identity.Who, ok bool) {
	w, err := c.Caller(r.Peer)
	if err != nil {
		r.Fail(err)
		return nil, false
	}
	return w, decode(r, m)
}

// decode decodes a request, and refuses it where it cannot.
func decode(r *wire.Request, m proto.Message) bool {
	if err := r.Decode(m); err != nil {
		r.Fail(err)
		return false
	}
	return true
}

// reply ends a request with an answer or an error.
func reply(r *wire.Request, answer proto.Message, err error) {
	if err != nil {
		r.Fail(err)
		return
	}
	r.Reply(answer)
}
