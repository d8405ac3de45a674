package wire

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	libp2p "github.com/libp2p/go-libp2p/core/transport"
	ma "github.com/multiformats/go-multiaddr"
	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/wire/framing"
	"cartwheel.dev/node/wire/relay"
)

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
	// readsWide says that the peer's program reads wide coordinates.
	readsWide atomic.Bool

	admission admission

	mu      sync.Mutex // guards below; never held with the queue's
	failed  error      // why the link is dead
	calls   callTable
	serving serving

	reader reader // the reading goroutine's own
	ticks  ticks  // the ticking goroutine's own
}

// ticks counts the ticks of one connection.
type ticks struct {
	silent      int // since something was heard
	quiet       int // since something was sent
	idle        int // since the connection was in use
	lastTraffic uint64
}

// peerState is what the host knows of one peer. Fields other than current are
// guarded by Host.mu.
type peerState struct {
	id        string
	peer      peer.ID
	current   [classes]atomic.Pointer[link] // where new frames go
	links     [classes][]*link              // all live ones, oldest first
	addresses []ma.Multiaddr
	keep      bool
	dials     [classes]*dial
	looking   [classes]bool // for another path
	looked    [classes]time.Time
	failures  [classes]failure
}

// failure is the last dial that failed.
type failure struct {
	at  time.Time
	err error
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
	l.queue.Overtake, l.queue.Inline = class == Chunk && !l.isLocal(), l.isLocal()
	l.heardAt.Store(h.now())
	return l
}

// isLocal reports whether the connection is a Unix socket.
func (l *link) isLocal() bool { return l.conn.raw.local != nil }

// drain writes what is queued until the link fails.
func (l *link) drain() {
	defer l.queue.Drop()
	for {
		b, ok := l.queue.Take()
		if !ok {
			return
		}
		var err error
		if l.isLocal() {
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

// outgoing is one frame to send: the message is either proto or encoded.
type outgoing struct {
	framing.Frame
	message proto.Message
	encoded []byte
	trace   *Trace // sent behind the message; nil: none
	body    [][]byte
	done    func() // called once when body is no longer needed; may be nil
	alone   bool   // no other call or request of the connection may send more frames soon
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

// send queues a frame. It encodes the frame straight into the batch that is
// written next. With bounded, it refuses when the queue is full. On sendDone the
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

// sendLater encodes the frame with its body and delays it.
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
	if o.trace != nil {
		arena = framing.AppendTrace(arena, *o.trace)
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
	if c := l.host.coordinate.Load(); c != nil && carries && l.canRead(c) {
		f.Carry(c)
	}
}

// canRead reports whether the peer's program reads the form that a coordinate
// needs. Where that is not known, the frame goes without.
func (l *link) canRead(c *Coordinate) bool {
	if !c.IsWide() || l.readsWide.Load() {
		return true
	}
	known := l.host.options.ReadsWide
	if known == nil || !known(l.peer.id) {
		return false
	}
	l.readsWide.Store(true)
	return true
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
	if f.Flags&framing.HasCoordinate != 0 && f.Coordinate.IsFinite() {
		at = &f.Coordinate
	}
	on(l.peer.id, rtt, at)
}

// fail ends the link, once. Calls in flight get err, and requests in service lose
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

	// Close does not wait. The goroutines of the link see the socket closed, and
	// bytes that a silent peer did not take are lost.
	if closeErr := l.capable.Close(); closeErr != nil {
		l.host.options.Logger.Debug("closing a connection", logattr.Peer(l.peer.id), logattr.Err(closeErr))
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
