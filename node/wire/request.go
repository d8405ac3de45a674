package wire

import (
	"bufio"
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/wire/framing"
)

// Message is a one-way frame. Payload is the handler's to Release.
type Message struct {
	Peer    string
	Class   Class
	Method  Method
	HLC     uint64
	Payload *Buffer
}

// Request is a call from a peer. The handler calls exactly one of Reply, ReplyOwned
// and Fail, from any goroutine, and uses nothing of the request afterwards. A second
// call does nothing.
type Request struct {
	Peer   string
	Class  Class
	Method Method
	HLC    uint64

	link     *link
	id       uint64
	received int64 // host clock, ns
	left     time.Duration
	parked   bool // guarded by the link's mutex
	header   *Buffer
	body     *Buffer
	size     int // bytes of both
	account  *account
	worker   bool            // it takes one
	base     context.Context // that of its trace; nil: it has none
	traced   func(err error) // ends its span; nil: it has none

	mu       sync.Mutex // guards below
	answered bool
	cause    error // why it is cancelled
	ctx      context.Context
	end      context.CancelCauseFunc
}

// serving holds the requests of one connection that are not answered. It is
// guarded by the link's mutex, and requests is nil once the link is dead.
type serving struct {
	requests map[uint64]*Request
	parked   int // requests that Park took out of the limit
	held     int // bytes of requests
}

// Decode reads the request's message, unless that would take far more memory
// than the message has bytes.
func (r *Request) Decode(m proto.Message) error {
	if m != nil {
		if err := framing.CheckElements(r.header.Bytes(), m); err != nil {
			return err
		}
	}
	return decode(r.header.Bytes(), m)
}

// Header returns the encoded message, valid until the request is answered.
func (r *Request) Header() []byte { return r.header.Bytes() }

// Body returns the body, valid until the request is answered.
func (r *Request) Body() []byte { return r.body.Bytes() }

// TakeBody returns the body, which the caller must Release; nil if there is none.
func (r *Request) TakeBody() *Buffer {
	b := r.body
	r.body = nil
	return b
}

// Deadline returns when the caller stops waiting, if it said so.
func (r *Request) Deadline() (time.Time, bool) {
	if r.left == 0 {
		return time.Time{}, false
	}
	return r.link.host.epoch.Add(time.Duration(r.received) + r.left), true
}

// Canceled reports whether the peer no longer waits for the answer.
func (r *Request) Canceled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cause != nil || r.left != 0 && r.link.host.now() > r.received+int64(r.left)
}

// Context ends when the caller cancels, its deadline passes, the connection breaks
// or the request has been answered. The first call makes it.
func (r *Request) Context() context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx != nil {
		return r.ctx
	}
	base := r.base
	if base == nil {
		base = context.Background()
	}
	ctx, end := context.WithCancelCause(base)
	r.ctx, r.end = ctx, end
	if deadline, ok := r.Deadline(); ok {
		timed, stop := context.WithDeadline(ctx, deadline)
		r.ctx, r.end = timed, func(cause error) { end(cause); stop() }
	}
	if r.cause != nil {
		r.end(r.cause)
	} else if r.answered {
		r.end(context.Canceled)
	}
	return r.ctx
}

func (r *Request) cancel(cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cause == nil {
		r.cause = cause
	}
	if r.end != nil {
		r.end(cause)
	}
}

// Park takes the request out of the limits of requests under way, its
// connection's and its account's: it may wait for another request of the same
// peer. The handler bounds how many requests it parks.
func (r *Request) Park() {
	l := r.link
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, waited := l.serving.requests[r.id]; waited && !r.parked {
		r.parked = true
		l.serving.parked++
		r.account.park()
	}
}

// Reply answers. The connection reads the slices of body until it has written
// them, so the caller must not write to them again; see ReplyOwned.
func (r *Request) Reply(answer proto.Message, body ...[]byte) { r.ReplyOwned(nil, answer, body...) }

// ReplyOwned answers like Reply. It calls done once, from any goroutine, when the
// slices of body are no longer needed.
func (r *Request) ReplyOwned(done func(), answer proto.Message, body ...[]byte) {
	r.answer(outgoing{Frame: framing.Frame{Kind: framing.Answer}, message: answer, body: body, done: done}, nil)
}

// Fail answers with an error: kind, op, subject and public text cross the wire.
func (r *Request) Fail(err error) {
	r.answer(outgoing{Frame: framing.Frame{Kind: framing.Error}, encoded: framing.AppendFault(nil, err)}, err)
}

// answer sends an answer, or err as one.
func (r *Request) answer(o outgoing, err error) {
	waited, alone := r.settle(err)
	if !waited {
		o.finish()
		return
	}
	if seen := r.link.host.options.OnAnswer; seen != nil {
		seen(r.Method, time.Duration(r.link.host.now()-r.received), fault.KindOf(err))
	}
	o.alone = alone
	r.link.respond(r.id, r.Method, r.received, &o)
}

// settle ends the request, and its span with what is answered. Waited is false if no answer is to be sent, because the
// request was answered before or the connection is gone. Alone means that it was
// the connection's only request.
func (r *Request) settle(err error) (waited, alone bool) {
	r.mu.Lock()
	if r.answered {
		r.mu.Unlock()
		return false, false
	}
	r.answered = true
	end := r.end
	r.mu.Unlock()
	if end != nil {
		end(context.Canceled)
	}
	if r.traced != nil {
		r.traced(err)
	}
	l := r.link
	l.mu.Lock()
	if _, waited = l.serving.requests[r.id]; waited {
		delete(l.serving.requests, r.id)
		l.serving.held -= r.size
		if r.parked {
			l.serving.parked--
		}
		alone = len(l.serving.requests) == 0
	}
	parked := r.parked
	l.mu.Unlock()
	r.account.release(r.size, r.worker, parked)
	r.header.Release()
	r.body.Release()
	r.header, r.body = nil, nil
	return waited, alone
}

// respond sends an answer. If it cannot be sent, respond sends the reason.
func (l *link) respond(id uint64, method Method, received int64, o *outgoing) {
	o.ID, o.Method = id, method
	o.Time = framing.Micros(time.Duration(l.host.now() - received))
	result, err := l.send(o, false)
	if result == sendDone {
		if l.queue.IsOverfull() || l.admission.account.Load().isOverfull() {
			l.fail(fault.E(fault.Overloaded, opServe, l.peer.id, "the peer does not take its answers"))
		}
		return
	}
	o.finish()
	if result == sendBad {
		l.respond(id, method, received, &outgoing{Frame: framing.Frame{Kind: framing.Error}, encoded: framing.AppendFault(nil, err)})
	}
}

// canceled ends the context of a request whose caller gave up.
func (l *link) canceled(id uint64) {
	l.mu.Lock()
	r := l.serving.requests[id]
	l.mu.Unlock()
	if r != nil {
		r.cancel(context.Canceled)
	}
}

// unknown is the refusal of a method without a handler. A host that is to listen
// and does not yet is starting: it may have dialled the caller already.
func (l *link) unknown() error {
	if h := l.host; len(h.options.Listen) > 0 && !h.listens.Load() {
		return fault.E(fault.Unreachable, opServe, "", "the host is starting; try again")
	}
	return fault.E(fault.NotSupported, opServe, "", "no such method")
}

// readCall reads a request and hands it to its handler, or refuses it.
func (l *link) readCall(r *bufio.Reader, f *framing.Frame) error {
	now := l.host.now()
	m := l.host.methods[f.Method].Load()
	if m == nil || m.message != nil {
		return l.refuse(r, f, now, l.unknown())
	}
	size, account, worker := int(f.Header)+int(f.Body), l.admission.account.Load(), m.inline == nil
	if !l.hasRoom(size) {
		return l.refuse(r, f, now, fault.E(fault.Overloaded, opServe, "", "too many requests of this peer are under way"))
	}
	if err := account.acquire(size, worker); err != nil {
		return l.refuse(r, f, now, err)
	}
	header, body, err := l.reader.readBuffers(r, f)
	if err != nil {
		account.release(size, worker, false)
		return err
	}
	q := &Request{Peer: l.peer.id, Class: l.class, Method: f.Method, HLC: f.HLC, link: l, id: f.ID, received: now,
		left: time.Duration(f.Time) * time.Millisecond, header: header, body: body, size: size, account: account, worker: worker}
	l.mu.Lock()
	_, twice := l.serving.requests[f.ID]
	ended := l.failed != nil
	if !ended && !twice {
		l.serving.requests[f.ID] = q
		l.serving.held += q.size
	}
	l.mu.Unlock()
	if twice || ended {
		account.release(size, worker, false)
	}
	if !twice && !ended {
		q.follow(l.host.options.Tracer)
	}
	switch {
	case twice:
		return fault.E(fault.Invalid, opServe, l.peer.id, "a request number used twice")
	case ended:
		return fault.E(fault.Closed, opServe, l.peer.id, "")
	case m.inline != nil:
		m.inline(q)
	case !l.host.pool(l.class, l.peer.id).submit(work{q, m.spawn}):
		q.Fail(fault.E(fault.Overloaded, opServe, "", "too many requests are waiting"))
	}
	return nil
}

// follow begins the span of a request that carries a trace.
func (r *Request) follow(tracer Tracer) {
	if tracer == nil {
		return
	}
	if t, ok := framing.TraceOf(r.header.Bytes()); ok {
		r.base, r.traced = tracer.Serve(context.Background(), r.Peer, r.Method, t)
	}
}

// hasRoom reports whether the connection may read another request of that size. It
// may not while answers pile up that the peer does not take.
func (l *link) hasRoom(size int) bool {
	if l.queue.IsFull() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.serving.requests)-l.serving.parked < l.limits.Calls && (l.serving.held == 0 || l.serving.held+size <= l.limits.Held)
}

// refusals bounds the bytes of refusals to a peer that takes no answers.
const refusals = 1 << 20

// refuse answers a request without reading it. It cuts a peer that goes on to ask
// and takes no answers, because refusals pile up too.
func (l *link) refuse(r *bufio.Reader, f *framing.Frame, now int64, why error) error {
	if err := l.reader.discard(r, int(f.Header)+int(f.Body)); err != nil {
		return err
	}
	if !l.queue.IsFull() {
		l.reader.refused = 0
	} else if l.reader.refused += strangerFrame; l.reader.refused > refusals {
		return fault.E(fault.Overloaded, opServe, l.peer.id, "the peer does not take its answers")
	}
	l.respond(f.ID, f.Method, now, &outgoing{Frame: framing.Frame{Kind: framing.Error}, encoded: framing.AppendFault(nil, why)})
	return nil
}

// settled reports whether the request was answered.
func (r *Request) settled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answered
}

// work is a request for a handler that may block.
type work struct {
	request *Request
	handler func(context.Context, *Request)
}

// serve runs a spawned handler. A request that the handler left unanswered fails,
// unless its caller no longer waits: then the caller's own deadline ends it, since
// an answer would make the outcome look known.
func (w work) serve(pool *workers[work]) {
	w.handler(lazyContext{w.request, pool}, w.request)
	switch {
	case w.request.settled():
	case w.request.Canceled():
		w.request.settle(context.Canceled)
	default:
		w.request.Fail(fault.E(fault.Other, opServe, fmt.Sprintf("method %d", w.request.Method), "the handler gave no answer"))
	}
}

// lazyContext is the Context of a request. It makes the real one when the handler
// first waits for its end or derives another from it. Most handlers are done
// before.
type lazyContext struct {
	r    *Request
	pool *workers[work] // whose worker runs the handler
}

var _ context.Context = lazyContext{}

// Deadline implements context.Context.
func (l lazyContext) Deadline() (time.Time, bool) { return l.r.Deadline() }

// Done implements context.Context.
func (l lazyContext) Done() <-chan struct{} { return l.r.Context().Done() }

// Value implements context.Context.
func (l lazyContext) Value(key any) any {
	if key == (poolKey{}) {
		return l.pool
	}
	return l.r.Context().Value(key)
}

// Err implements context.Context.
func (l lazyContext) Err() error {
	l.r.mu.Lock()
	fresh := l.r.ctx == nil && !l.r.answered
	l.r.mu.Unlock()
	if fresh && !l.r.Canceled() {
		return nil
	}
	return l.r.Context().Err() // it stays what it is now
}

// poolKey is the key of the pool in a handler's context.
type poolKey struct{}

// Yield gives the worker of a Spawn handler back while the handler waits for
// another request, a client or another host. These may need a worker of the same
// pool, here or, in a circle, elsewhere. The handler must call resume before it
// returns or yields again. Ctx is the handler's or one derived from it. For any
// other context Yield does nothing.
//
// At most Limits.Waiting handlers of a pool wait at once. A further one gets
// Overloaded and must fail instead of waiting.
func Yield(ctx context.Context) (resume func(), err error) {
	w, ok := ctx.Value(poolKey{}).(*workers[work])
	if !ok {
		return func() {}, nil
	}
	if !w.yield() {
		return nil, fault.E(fault.Overloaded, "wire.Yield", "", "too many requests wait for others")
	}
	return w.resume, nil
}
