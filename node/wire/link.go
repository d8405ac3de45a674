package wire

import (
	"bufio"
	"sync"
	"sync/atomic"
	"time"

	libp2p "github.com/libp2p/go-libp2p/core/transport"
	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/wire/framing"
	"cartwheel.dev/node/wire/relay"
)

// readBuffer holds many small frames; bodies larger than what is in it are
// read past it, straight to where they stay.
const readBuffer = 64 << 10

// localReadBuffer is smaller, because less of a large body should be copied
// where there is no encryption that copies it anyway.
const localReadBuffer = 16 << 10

// link is one connection of one class to one peer. Its parts, each in the file of
// its subject, say who may use them; the fields before mu never change or are safe
// for use by many goroutines.
type link struct {
	host     *Host
	peer     *peerState
	class    Class
	limits   *ClassLimits
	conn     *directConn
	capable  libp2p.CapableConn // the same connection with libp2p's accounting
	outbound bool
	relayed  bool   // a relay passes the bytes on
	via      string // which one, where this host dialled
	born     time.Time

	queue   *framing.Queue // frames that wait to be written
	delays  delays         // frames that a filter keeps from the queue
	sampler sampler
	dead    atomic.Bool
	welcome atomic.Bool   // a frame came from the peer
	traffic atomic.Uint64 // frames other than heartbeats, both ways
	heardAt atomic.Int64  // host clock, ns: the last tick that found something heard

	admission admission

	mu      sync.Mutex // guards below; never held with the queue's
	failed  error      // why the link is dead
	calls   callTable
	serving serving

	reader reader // the reading goroutine's own
	ticks  ticks  // the ticking goroutine's own
}

func newLink(h *Host, p *peerState, c libp2p.CapableConn, d *directConn, outbound bool) *link {
	class := d.lane.class()
	limits := &h.options.Limits.Class[class]
	l := &link{host: h, peer: p, class: class, limits: limits, conn: d, capable: c, outbound: outbound, relayed: d.lane.isRelayed(),
		born: time.Now(), queue: framing.NewQueue(limits.Queue),
		calls: callTable{pending: map[uint64]*call{}}, serving: serving{requests: map[uint64]*Request{}},
		reader: reader{conn: d, buffers: &h.buffers, limit: h.options.Times.Frame}}
	l.delays.queue, l.delays.spawn = l.queue, h.spawn
	if over, ok := d.raw.Conn.(*relay.Conn); ok {
		l.via = over.Relay
	}
	l.queue.Overtake, l.queue.Inline = class == Chunk && !l.local(), l.local()
	l.heardAt.Store(h.now())
	if outbound || h.options.Admit == nil {
		l.admit()
	}
	return l
}

// local reports whether the connection is a Unix socket.
func (l *link) local() bool { return l.conn.raw.local != nil }

// run reads frames until the connection ends.
func (l *link) run() {
	size := readBuffer
	if l.local() {
		size = localReadBuffer
	}
	var err error
	if !l.isAdmitted() {
		few := bufio.NewReaderSize(l.conn, strangerBuffer)
		for err == nil && !l.admission.admitted.Load() {
			err = l.readFrame(few)
		}
		r := bufio.NewReaderSize(few, size) // what few holds comes first, then nothing is copied twice
		for err == nil {
			err = l.readFrame(r)
		}
	} else {
		r := bufio.NewReaderSize(l.conn, size)
		for err == nil {
			err = l.readFrame(r)
		}
	}
	l.fail(&fault.Error{Kind: fault.Unreachable, Op: opLink, Subject: l.peer.id, Public: "the connection ended", Cause: err})
}

// drain writes what is queued until the link fails.
func (l *link) drain() {
	defer l.queue.Drop()
	for {
		b, ok := l.queue.Take()
		if !ok {
			return
		}
		var err error
		if l.local() {
			err = l.queue.Gather(b, l.conn.raw)
		} else {
			err = l.queue.Write(b, l.conn)
		}
		if err == nil && l.queue.IsEmpty() {
			err = l.conn.raw.flush()
		}
		if err != nil {
			l.fail(&fault.Error{Kind: fault.Unreachable, Op: opLink, Subject: l.peer.id, Public: "the connection broke", Cause: err})
		}
	}
}

const opLink fault.Op = "wire.link"

func (l *link) readFrame(r *bufio.Reader) error {
	var f framing.Frame
	b, err := r.Peek(framing.FixedSize)
	if err != nil {
		return err
	}
	if !l.welcome.Load() {
		l.welcome.Store(true)
	}
	if err := f.Parse(b, l.limits.frame()); err != nil {
		return err
	}
	size := framing.FixedSize
	if f.Flags&framing.HasCoordinate != 0 {
		size += framing.CoordinateSize
		if b, err = r.Peek(size); err != nil {
			return err
		}
		f.ParseCoordinate(b[framing.FixedSize:])
	}
	if !l.isAdmitted() {
		return l.readStranger(r, &f, size)
	}
	if _, err := r.Discard(size); err != nil {
		return err
	}
	if f.HLC != 0 && l.host.options.OnHLC != nil {
		l.host.options.OnHLC(l.peer.id, f.HLC)
	}
	if f.Kind != framing.Heartbeat {
		l.traffic.Add(1)
	}
	if f.IsStamped() {
		l.measured(l.sampler.read(l.host.now(), &f), &f)
	}
	switch f.Kind {
	case framing.Call:
		return l.readCall(r, &f)
	case framing.Answer, framing.Error:
		return l.readAnswer(r, &f)
	case framing.OneWay:
		return l.readMessage(r, &f)
	case framing.Cancel:
		l.canceled(f.ID)
	}
	return nil
}

func (l *link) readMessage(r *bufio.Reader, f *framing.Frame) error {
	m := l.host.methods[f.Method].Load()
	if m == nil || m.message == nil {
		return l.reader.discard(r, int(f.Header)+int(f.Body))
	}
	header, err := l.reader.readBuffer(r, f.Header)
	if err != nil {
		return err
	}
	header.Release() // one-way frames have none
	body, err := l.reader.readPayload(r, f.Body)
	if err != nil {
		return err
	}
	m.message(Message{Peer: l.peer.id, Class: l.class, Method: f.Method, HLC: f.HLC, Payload: body})
	return nil
}

// outgoing is one frame to send: the message is either proto or encoded.
type outgoing struct {
	framing.Frame
	message proto.Message
	encoded []byte
	body    [][]byte
	done    func() // called once when body is no longer needed; may be nil
	alone   bool   // nothing else is under way on the connection that more frames could come from
}

// finish calls done for a frame that will not be sent.
func (o *outgoing) finish() {
	if o.done != nil {
		o.done()
	}
}

// result of send.
type sendResult int

const (
	sendDone sendResult = iota
	sendDead
	sendFull
	sendBad
)

// send queues a frame, encoding it straight into the batch that is written
// next. With bounded, it refuses when the queue is full. On sendDone the
// link calls o.done, otherwise the caller does.
func (l *link) send(o *outgoing, bounded bool) (sendResult, error) {
	if filter := l.host.filter.Load(); filter != nil {
		switch v := l.filtered(*filter, o.Method); {
		case v.Drop:
			o.finish()
			return sendDone, nil
		case v.Delay > 0:
			return l.sendLater(o, v.Delay)
		}
	}
	l.stamp(&o.Frame)
	q := l.queue
	ahead := o.done == nil && o.Kind != framing.Cancel && q.MayOvertake(o.body)
	arena, state := q.Begin(ahead, bounded)
	switch state {
	case framing.Closed:
		return sendDead, nil
	case framing.Full:
		return sendFull, nil
	}
	arena, err := l.encode(arena, o)
	if err != nil {
		q.Abort()
		return sendBad, err
	}
	n := q.Append(ahead, arena, o.body, o.done)
	if o.Kind != framing.Heartbeat {
		l.traffic.Add(1)
	}
	if !o.alone {
		q.Commit(n)
	} else if b := q.TryInline(n); b != nil {
		q.FinishInline(b, l.conn.raw.tryWrite(b.Bytes()))
	}
	return sendDone, nil
}

// filtered asks the filter about a frame.
func (l *link) filtered(f Filter, m Method) Verdict {
	switch {
	case !l.relayed:
		return f(l.peer.id, l.class, m)
	case l.via != "":
		return f(l.via, l.class, m)
	}
	return Verdict{}
}

// sendLater encodes the frame with its body and sends it after a while.
func (l *link) sendLater(o *outgoing, delay time.Duration) (sendResult, error) {
	l.stamp(&o.Frame)
	encoded, err := l.encode(nil, o)
	if err != nil {
		return sendBad, err
	}
	for _, part := range o.body {
		encoded = append(encoded, part...)
	}
	if !l.delays.add(encoded, delay) {
		return sendDead, nil
	}
	o.finish()
	return sendDone, nil
}

// encode appends the frame and its message to the arena, without the body.
func (l *link) encode(arena []byte, o *outgoing) ([]byte, error) {
	body := 0
	for _, part := range o.body {
		body += len(part)
	}
	if body > int(l.limits.Body) {
		return arena, fault.Errorf(fault.TooLarge, framing.Op, l.peer.id, "a body of %d bytes; at most %d", body, l.limits.Body)
	}
	start := len(arena)
	o.Frame.Body = uint32(body)
	arena = o.Frame.Append(arena)
	head := len(arena)
	if o.message != nil {
		var err error
		if arena, err = (proto.MarshalOptions{}).MarshalAppend(arena, o.message); err != nil {
			return arena, &fault.Error{Kind: fault.Invalid, Op: framing.Op, Public: "a message that cannot be encoded", Cause: err}
		}
	} else {
		arena = append(arena, o.encoded...)
	}
	n := len(arena) - head
	if n > int(l.limits.Header) {
		return arena, fault.Errorf(fault.TooLarge, framing.Op, l.peer.id, "a message of %d bytes; at most %d", n, l.limits.Header)
	}
	o.Header = uint32(n)
	framing.SetHeader(arena[start:], uint32(n))
	return arena, nil
}

// stamp adds what every frame carries.
func (l *link) stamp(f *framing.Frame) {
	if l.host.options.HLC != nil {
		f.HLC = l.host.options.HLC()
	}
	carries := f.Kind == framing.Call || f.Kind == framing.Answer
	if f.IsStamped() && l.class != Chunk {
		carries = l.sampler.fill(l.host.now(), f)
	}
	if c := l.host.coordinate.Load(); c != nil && carries {
		f.Flags |= framing.HasCoordinate
		f.Coordinate = *c
	}
}

// measured takes a round trip in and passes it on, with the coordinate that came
// with it. A relayed round trip says nothing of the distance.
func (l *link) measured(rtt time.Duration, f *framing.Frame) {
	if rtt <= 0 {
		return
	}
	l.sampler.add(rtt)
	on := l.host.options.OnSample
	if on == nil || l.relayed {
		return
	}
	var at *Coordinate
	if f.Flags&framing.HasCoordinate != 0 && finite(f.Coordinate) {
		at = &f.Coordinate
	}
	on(l.peer.id, rtt, at)
}

// fail ends the link, once: calls under way get err, requests under way lose
// their caller.
func (l *link) fail(err error) {
	l.mu.Lock()
	if l.failed != nil {
		l.mu.Unlock()
		return
	}
	if l.wasRefused() && !fault.Is(err, fault.Closed) {
		err = unreachable(l.peer.id, errRefused)
	}
	l.failed = err
	l.dead.Store(true)
	pending, requests := l.calls.pending, l.serving.requests
	l.calls.pending, l.calls.timed, l.serving = nil, 0, serving{}
	l.mu.Unlock()

	// Nobody waits for a socket: its goroutines see it closed, and what a
	// silent peer did not take is thrown away.
	if closeErr := l.capable.Close(); closeErr != nil {
		l.host.options.Logger.Debug("closing a connection", "peer", l.peer.id, "error", closeErr)
	}
	l.queue.Close()
	l.delays.stop()
	l.host.drop(l, err)
	l.host.accounts.leave(l.admission.account.Load(), l.queue)
	for _, c := range pending {
		c.finish(nil, nil, err)
	}
	for _, r := range requests {
		r.cancel(err)
	}
}
