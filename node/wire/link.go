package wire

import (
	"bufio"
	"sync"
	"sync/atomic"
	"time"

	libp2p "github.com/libp2p/go-libp2p/core/transport"
	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/fault"
)

// readBuffer holds many small frames; bodies larger than what is in it are
// read past it, straight to where they stay.
const readBuffer = 64 << 10

// localReadBuffer is smaller, because less of a large body should be copied
// where there is no encryption that copies it anyway.
const localReadBuffer = 16 << 10

// link is one connection of one class to one peer.
type link struct {
	host     *Host
	peer     *peerState
	class    Class
	limits   *ClassLimits
	conn     *directConn
	capable  libp2p.CapableConn // the same connection with libp2p's accounting
	outbound bool
	spliced  bool   // a third host passes the bytes on
	via      string // which one, where this host dialled
	born     time.Time
	queue    *queue
	lastID   atomic.Uint64
	traffic  atomic.Uint64 // frames other than heartbeats, both ways
	welcome  atomic.Bool   // a frame came from the peer
	dead     atomic.Bool
	admitted atomic.Bool // by Options.Admit, or by who dialled
	account  atomic.Pointer[account]
	delays   delays
	stamps   stamps
	rtt      atomic.Int64 // ns, smoothed; 0: never measured
	heardAt  atomic.Int64 // host clock, ns: the last tick that found something heard

	mu      sync.Mutex // guards below; never held with the queue's
	failed  error      // why the link is dead
	pending map[uint64]*call
	serving map[uint64]*Request
	parked  int // requests in serving that Park took out of the limit
	held    int // bytes of the requests in serving
	timed   int // calls in pending that have a deadline of their own

	admitMu sync.Mutex // held while the peer is being admitted

	// The reader's own.
	strange int // bytes that came before the peer was admitted
	refused int // bytes of refusals, about, since the queue was last below its limit

	// The ticker's own.
	silent, quiet, idle int
	lastTraffic         uint64
}

func newLink(h *Host, p *peerState, c libp2p.CapableConn, d *directConn, outbound bool) *link {
	class := d.lane.class()
	limits := &h.options.Limits.Class[class]
	l := &link{host: h, peer: p, class: class, limits: limits, conn: d, capable: c, outbound: outbound, spliced: d.lane.spliced(),
		born: time.Now(), queue: newQueue(limits.Queue),
		pending: map[uint64]*call{}, serving: map[uint64]*Request{}}
	if over, ok := d.raw.Conn.(*overSplice); ok {
		l.via = over.relay
	}
	l.queue.overtake, l.queue.lends = class == Chunk && !l.local(), l.local()
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
		for err == nil && !l.admitted.Load() {
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
	defer l.queue.drop()
	for {
		b, ok := l.queue.take()
		if !ok {
			return
		}
		var err error
		if l.local() {
			err = l.queue.gather(b, l.conn.raw)
		} else {
			err = l.queue.write(b, l.conn)
		}
		if err == nil && l.queue.empty() {
			err = l.conn.raw.flush()
		}
		if err != nil {
			l.fail(&fault.Error{Kind: fault.Unreachable, Op: opLink, Subject: l.peer.id, Public: "the connection broke", Cause: err})
		}
	}
}

const opLink fault.Op = "wire.link"

func (l *link) readFrame(r *bufio.Reader) error {
	var f frame
	b, err := r.Peek(frameSize)
	if err != nil {
		return err
	}
	if !l.welcome.Load() {
		l.welcome.Store(true)
	}
	if err := f.parse(b, l.limits); err != nil {
		return err
	}
	size := frameSize
	if f.flags&flagCoordinate != 0 {
		size += coordinateSize
		if b, err = r.Peek(size); err != nil {
			return err
		}
		f.parseCoordinate(b[frameSize:])
	}
	if !l.isAdmitted() {
		return l.readStranger(r, &f, size)
	}
	if _, err := r.Discard(size); err != nil {
		return err
	}
	if f.hlc != 0 && l.host.options.OnHLC != nil {
		l.host.options.OnHLC(l.peer.id, f.hlc)
	}
	if f.kind != kindHeartbeat {
		l.traffic.Add(1)
	}
	if f.stamped() {
		l.echoed(&f)
	}
	switch f.kind {
	case kindCall:
		return l.readCall(r, &f)
	case kindAnswer, kindError:
		return l.readAnswer(r, &f)
	case kindMessage:
		return l.readMessage(r, &f)
	case kindCancel:
		l.canceled(f.id)
	}
	return nil
}

func (l *link) readMessage(r *bufio.Reader, f *frame) error {
	m := l.host.methods[f.method].Load()
	if m == nil || m.message == nil {
		return l.discard(r, int(f.header)+int(f.body))
	}
	header, err := l.readBuffer(r, f.header)
	if err != nil {
		return err
	}
	header.Release() // one-way frames have none
	body, err := l.readPayload(r, f.body)
	if err != nil {
		return err
	}
	m.message(Message{Peer: l.peer.id, Class: l.class, Method: f.method, HLC: f.hlc, Payload: body})
	return nil
}

// outgoing is one frame to send: the message is either proto or encoded.
type outgoing struct {
	frame
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
		switch v := l.filtered(*filter, o.method); {
		case v.Drop:
			o.finish()
			return sendDone, nil
		case v.Delay > 0:
			return l.sendLater(o, v.Delay)
		}
	}
	l.stamp(&o.frame)
	q := l.queue
	if !q.begin() {
		return sendDead, nil
	}
	passes := q.passes(o)
	if bounded && !q.hasRoom(passes) {
		q.mu.Unlock()
		return sendFull, nil
	}
	into := &q.batch.arena
	if passes {
		into = &q.ahead
	}
	start := len(*into)
	arena, body, err := l.encode(*into, o)
	if err != nil {
		*into = arena[:start]
		q.mu.Unlock()
		return sendBad, err
	}
	*into = arena
	n := len(arena) - start + body
	if passes {
		for _, part := range o.body {
			q.ahead = append(q.ahead, part...)
		}
	} else {
		q.attach(start, o.body, o.done)
	}
	if o.kind != kindHeartbeat {
		l.traffic.Add(1)
	}
	if !o.alone {
		q.commit(n)
	} else if b := q.lend(n); b != nil {
		q.back(b, l.conn.raw.try(b.arena))
	}
	return sendDone, nil
}

// encode appends the frame and its message to the arena, not the body, whose
// length it returns.
func (l *link) encode(arena []byte, o *outgoing) ([]byte, int, error) {
	body := 0
	for _, part := range o.body {
		body += len(part)
	}
	if body > int(l.limits.Body) {
		return arena, 0, fault.Errorf(fault.TooLarge, opFrame, l.peer.id, "a body of %d bytes; at most %d", body, l.limits.Body)
	}
	start := len(arena)
	o.frame.body = uint32(body)
	arena = o.frame.append(arena)
	head := len(arena)
	if o.message != nil {
		var err error
		if arena, err = (proto.MarshalOptions{}).MarshalAppend(arena, o.message); err != nil {
			return arena, 0, &fault.Error{Kind: fault.Invalid, Op: opFrame, Public: "a message that cannot be encoded", Cause: err}
		}
	} else {
		arena = append(arena, o.encoded...)
	}
	n := len(arena) - head
	if n > int(l.limits.Header) {
		return arena, 0, fault.Errorf(fault.TooLarge, opFrame, l.peer.id, "a message of %d bytes; at most %d", n, l.limits.Header)
	}
	o.header = uint32(n)
	patchHeader(arena[start:], uint32(n))
	return arena, body, nil
}

// stamp adds what every frame carries.
func (l *link) stamp(f *frame) {
	if l.host.options.HLC != nil {
		f.hlc = l.host.options.HLC()
	}
	carries := f.kind == kindCall || f.kind == kindAnswer
	if f.stamped() && l.class != Chunk {
		carries = l.stampTime(f)
	}
	if c := l.host.coordinate.Load(); c != nil && carries {
		f.flags |= flagCoordinate
		f.coordinate = *c
	}
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
	pending, serving := l.pending, l.serving
	l.pending, l.serving, l.parked, l.held, l.timed = nil, nil, 0, 0, 0
	l.mu.Unlock()

	// Nobody waits for a socket: its goroutines see it closed, and what a
	// silent peer did not take is thrown away.
	if closeErr := l.capable.Close(); closeErr != nil {
		l.host.options.Logger.Debug("closing a connection", "peer", l.peer.id, "error", closeErr)
	}
	l.queue.close()
	l.delays.stop()
	l.host.drop(l, err)
	l.host.accounts.leave(l.account.Load(), l)
	for _, c := range pending {
		c.finish(nil, nil, err)
	}
	for _, r := range serving {
		r.cancel(err)
	}
}
