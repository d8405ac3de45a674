package wire

import (
	"bufio"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/wire/framing"
)

// call waits for one answer.
type call struct {
	id       uint64
	class    Class
	sent     int64 // host clock, ns
	deadline int64 // host clock, ns; 0: the waiting goroutine watches its context
	grace    grace // of a deadline
	header   *Buffer
	body     *Buffer
	err      error
	done     chan struct{} // capacity 1, reused with the call
	then     func(*Answer) // instead of done
	out      int           // bytes of the request's frame, where then is set
}

// callTable holds the calls of one connection that wait for an answer. All but
// lastID is guarded by the link's mutex, and pending is nil once the link is dead.
type callTable struct {
	lastID  atomic.Uint64
	pending map[uint64]*call
	timed   int // calls in pending that have a deadline of their own
}

// finish delivers the answer. The goroutine that took the call out of pending
// calls it.
func (c *call) finish(header, body *Buffer, err error) {
	if c.then != nil {
		a := Answer{header: header, Body: body, Err: err, Sizes: Sizes{c.out, framing.FixedSize + header.Len() + body.Len()}}
		c.then(&a)
		header.Release()
		return
	}
	c.header, c.body, c.err = header, body, err
	c.done <- struct{}{}
}

// Answer is what the callback of Start gets. The callback owns Body.
type Answer struct {
	Err    error
	Body   *Buffer
	Sizes  Sizes
	header *Buffer
}

// Decode reads the answer's message. It works only within the callback.
func (a *Answer) Decode(m proto.Message) error { return decode(a.header.Bytes(), m) }

func decode(b []byte, m proto.Message) error {
	if m == nil {
		return nil
	}
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(b, m); err != nil {
		return &fault.Error{Kind: fault.Corrupt, Op: framing.Op, Public: "a message that cannot be decoded", Cause: err}
	}
	return nil
}

const opCall fault.Op = "wire.Host.Call"

// Call sends a request and waits for the answer, which it decodes into answer
// unless that is nil. The caller must Release the body that it returns, which is
// nil if there was none. The context's deadline and cancellation reach the peer.
//
// The connection reads the slices of body until the call has been answered. After
// an error that is not Answered it may read them for a while longer: the caller
// leaves them to the garbage collector and does not write to them again.
func (h *Host) Call(ctx context.Context, peer string, class Class, method Method,
	request proto.Message, body [][]byte, answer proto.Message) (*Buffer, error) {
	return h.CallSized(ctx, peer, class, method, request, body, answer, nil)
}

// Sizes are the bytes of a call's frame and of its answer's, without what
// encryption and the network add.
type Sizes struct{ Out, In int }

// CallSized is Call that also sets sizes, unless that is nil.
func (h *Host) CallSized(ctx context.Context, peer string, class Class, method Method,
	request proto.Message, body [][]byte, answer proto.Message, sizes *Sizes) (*Buffer, error) {
	l, err := h.link(ctx, peer, class)
	if err != nil {
		return nil, err
	}
	return l.call(ctx, method, request, body, answer, sizes)
}

// call is Call on one connection.
func (l *link) call(ctx context.Context, method Method, request proto.Message, body [][]byte, answer proto.Message, sizes *Sizes) (*Buffer, error) {
	h := l.host
	c := h.calls.get(l.class)
	o := outgoing{Frame: framing.Frame{Kind: framing.Call, Method: method}, message: request, body: body, trace: h.outgoingTrace(ctx)}
	if deadline, ok := ctx.Deadline(); ok {
		o.Time = framing.Millis(time.Until(deadline))
	}
	if err := l.start(c, &o); err != nil {
		h.calls.put(c)
		return nil, err
	}
	if err := l.sendCall(ctx, &o); err != nil && l.abandon(c) {
		h.calls.put(c)
		return nil, err
	} // not abandoned: the link failed meanwhile and delivers that
	if sizes != nil {
		sizes.Out = framing.FixedSize + int(o.Header) + int(o.Frame.Body)
	}
	return l.await(ctx, c, answer, sizes)
}

// outgoingTrace returns the trace of a call of this host, nil if it has none.
func (h *Host) outgoingTrace(ctx context.Context) *Trace {
	if h.options.Tracer == nil {
		return nil
	}
	if t, ok := h.options.Tracer.Outgoing(ctx); ok {
		return &t
	}
	return nil
}

// sendCall queues a call's frame, waiting for room.
func (l *link) sendCall(ctx context.Context, o *outgoing) error {
	for {
		result, err := l.send(o, true)
		switch result {
		case sendDone:
			return nil
		case sendBad:
			return err
		case sendDead:
			return unreachable(l.peer.id, nil)
		}
		if err := l.queue.Wait(ctx); err != nil {
			return ctxFault(l.peer.id, err)
		}
	}
}

// await waits for the answer of a call that was sent.
func (l *link) await(ctx context.Context, c *call, answer proto.Message, sizes *Sizes) (*Buffer, error) {
	select {
	case <-c.done:
	case <-ctx.Done():
		if l.abandon(c) {
			l.cancelRemote(c.id)
			l.host.calls.put(c)
			return nil, ctxFault(l.peer.id, ctx.Err())
		}
		<-c.done // the answer is just being delivered
	}
	header, body, err := c.header, c.body, c.err
	l.host.calls.put(c)
	if sizes != nil {
		sizes.In = framing.FixedSize + len(header.Bytes()) + len(body.Bytes())
	}
	if err == nil {
		err = decode(header.Bytes(), answer)
	}
	header.Release()
	if err != nil {
		body.Release()
		return nil, err
	}
	return body, nil
}

// Start sends a request and returns at once. The host calls then exactly once,
// with the answer, or with an error when the timeout or the connection ends. Then
// must not block. Of class Chunk, time that brings other bytes does not count: the
// answer is on its way behind them. An error of Start itself means that nothing was sent and that
// then is not called. If there is no connection yet, the host dials one meanwhile.
// Bodies are as in Call: the caller may write to them again once then has an
// Answered error or none.
func (h *Host) Start(peer string, class Class, method Method, request proto.Message, body [][]byte,
	timeout time.Duration, then func(*Answer)) error {
	l := h.linkNow(peer, class)
	if l == nil {
		return unreachable(peer, nil)
	}
	c := &call{class: class, then: then}
	o := outgoing{Frame: framing.Frame{Kind: framing.Call, Method: method}, message: request, body: body}
	c.out = framing.FixedSize + proto.Size(request)
	for _, part := range body {
		c.out += len(part)
	}
	if timeout > 0 {
		o.Time = framing.Millis(timeout)
		c.deadline = h.now() + int64(timeout)
		if class == Chunk {
			c.grace = grace{each: int64(timeout), left: mostGrace, came: l.conn.raw.came.Load()}
		}
	}
	if err := l.start(c, &o); err != nil {
		return err
	}
	result, err := l.send(&o, true)
	if result == sendDone || !l.abandon(c) {
		return nil
	}
	switch result {
	case sendFull:
		return overloaded(peer)
	case sendDead:
		return unreachable(peer, nil)
	}
	return err
}

const opSend fault.Op = "wire.Host.Send"

// Send queues a one-way frame whose payload is the slices end to end, and never
// waits. It copies small slices. It reads large ones later, and the caller must
// not write to them again. Nil means queued, not arrived. Unreachable: there is no
// connection, and the host dials one meanwhile. Overloaded: the queue to this peer
// is full. TooLarge: the payload is more than Limits allow in one frame.
func (h *Host) Send(peer string, class Class, method Method, payload ...[]byte) error {
	l := h.linkNow(peer, class)
	if l == nil {
		return fault.E(fault.Unreachable, opSend, peer, "")
	}
	o := outgoing{Frame: framing.Frame{Kind: framing.OneWay, Method: method}, body: payload}
	result, err := l.send(&o, true)
	switch result {
	case sendDead:
		return fault.E(fault.Unreachable, opSend, peer, "")
	case sendFull:
		return fault.E(fault.Overloaded, opSend, peer, "too much waits to be sent to this peer")
	}
	return err
}

// start registers a call before the peer can answer its frame.
func (l *link) start(c *call, o *outgoing) error {
	c.id = l.calls.lastID.Add(1)
	c.sent = l.host.now()
	o.ID = c.id
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return l.failed
	}
	l.calls.pending[c.id] = c
	o.alone = len(l.calls.pending) == 1
	if c.deadline != 0 {
		l.calls.timed++
	}
	return nil
}

// abandon takes a call back. False means that another goroutine is about to finish
// it.
func (l *link) abandon(c *call) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls.pending[c.id] != c {
		return false
	}
	l.forget(c)
	return true
}

func (l *link) forget(c *call) {
	delete(l.calls.pending, c.id)
	if c.deadline != 0 {
		l.calls.timed--
	}
}

// cancelRemote tells the peer that the caller no longer waits. If the queue is
// closed, the end of the connection tells it.
func (l *link) cancelRemote(id uint64) {
	_, _ = l.send(&outgoing{Frame: framing.Frame{Kind: framing.Cancel, ID: id}}, false)
}

// expire fails the calls of Start whose time is up.
func (l *link) expire(now int64) {
	l.mu.Lock()
	if l.calls.timed == 0 {
		l.mu.Unlock()
		return
	}
	var over []*call
	for _, c := range l.calls.pending {
		if c.deadline != 0 && c.deadline <= now && !c.grace.extend(&c.deadline, l.conn.raw.came.Load()) {
			over = append(over, c)
		}
	}
	for _, c := range over {
		l.forget(c)
	}
	l.mu.Unlock()
	for _, c := range over {
		l.cancelRemote(c.id)
		c.finish(nil, nil, ctxFault(l.peer.id, context.DeadlineExceeded))
	}
}

// readAnswer reads an answer and delivers it to its call, if that still waits. The
// call stays pending while the body comes in, so that its context can end it even
// if the body never comes.
func (l *link) readAnswer(r *bufio.Reader, f *framing.Frame) error {
	l.mu.Lock()
	waiting := l.calls.pending[f.ID] != nil
	l.mu.Unlock()
	if !waiting { // gave up, or never asked
		return l.reader.discard(r, int(f.Header)+int(f.Body))
	}
	header, body, err := l.reader.readBuffers(r, f)
	if err != nil {
		return err
	}
	l.mu.Lock()
	c := l.calls.pending[f.ID]
	if c != nil {
		l.forget(c)
	}
	l.mu.Unlock()
	if c == nil { // gave up while it came in
		header.Release()
		body.Release()
		return nil
	}
	l.sample(c, f)
	if f.Kind == framing.Error {
		err = framing.ParseFault(header.Bytes(), l.peer.id)
		header.Release()
		body.Release()
		header, body = nil, nil
	}
	c.finish(header, body, err)
	return nil
}

// sample reports the round trip, except of chunks, which measure bandwidth.
func (l *link) sample(c *call, f *framing.Frame) {
	if c.class != Chunk {
		l.measured(roundTrip(c.sent, l.host.now(), f.Time), f)
	}
}

// callPool pools calls with their channels.
type callPool struct{ pool sync.Pool }

func (p *callPool) get(class Class) *call {
	c, ok := p.pool.Get().(*call)
	if !ok {
		c = &call{done: make(chan struct{}, 1)}
	}
	c.class = class
	return c
}

func (p *callPool) put(c *call) {
	*c = call{done: c.done}
	p.pool.Put(c)
}

func ctxFault(peer string, err error) error {
	return &fault.Error{Kind: fault.KindOf(err), Op: opCall, Subject: peer, Cause: err}
}

func unreachable(peer string, cause error) error {
	return &fault.Error{Kind: fault.Unreachable, Op: opCall, Subject: peer, Cause: cause}
}

func overloaded(peer string) error {
	return fault.E(fault.Overloaded, opCall, peer, "too much waits to be sent to this peer")
}
