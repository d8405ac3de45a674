package wire

import (
	"bufio"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/wire/framing"
)

const (
	// strangerBuffer is what a connection reads at once while its peer is not
	// admitted.
	strangerBuffer = 4 << 10
	// maxHello bounds the message of a hello.
	maxHello = 8 << 10
)

// isAdmitted reports whether the peer may use this host. It asks Options.Admit
// again while the peer may not, because the peer may have said hello on another
// connection. The reading and the ticking goroutine call it.
func (l *link) isAdmitted() bool {
	if l.admission.admitted.Load() {
		return true
	}
	name, ok := l.host.options.Admit(l.peer.id)
	if !ok {
		return false
	}
	l.admission.mu.Lock()
	defer l.admission.mu.Unlock()
	if l.admission.admitted.Load() {
		return true
	}
	if name != "" {
		account, err := l.host.accounts.join(name, l.peer.id, l.queue)
		if err != nil {
			l.fail(err)
			return false
		}
		if l.admission.account.Store(account); l.dead.Load() {
			l.host.accounts.leave(account, l.queue)
		}
	}
	l.admit()
	return true
}

// admit lifts the bounds on strangers.
func (l *link) admit() {
	l.conn.raw.gatherWrites()
	l.conn.raw.stranger.leave()
	l.admission.admitted.Store(true)
}

// readStranger takes a frame of a peer that is not admitted. It serves a hello and
// discards all other frames unread. It ignores the peer's clock and coordinate.
func (l *link) readStranger(r *bufio.Reader, f *framing.Frame, head int) error {
	size := head + int(f.Header) + int(f.Body)
	if l.reader.strange += max(size, strangerFrame); l.reader.strange > l.host.options.Limits.StrangerBytes {
		return fault.E(fault.Unauthorized, opAdmit, l.peer.id, "the peer sent too much before it was admitted")
	}
	if _, err := r.Discard(head); err != nil {
		return err
	}
	f.HLC = 0
	hello := f.Method == l.host.options.Hello && l.class == Operation && f.Header <= maxHello && f.Body == 0
	switch {
	case f.Kind == framing.Call && hello:
		if err := l.readCall(r, f); err != nil {
			return err
		}
		l.isAdmitted()
		return nil
	case f.Kind == framing.Call:
		return l.refuse(r, f, l.host.now(), fault.E(fault.Unauthorized, opAdmit, l.peer.id, "say hello first"))
	}
	return l.reader.discard(r, size-head)
}

// tickStranger cuts the connection of a peer that is not admitted in time.
func (l *link) tickStranger() {
	if !l.isAdmitted() && time.Since(l.born) > l.host.options.Times.Hello {
		l.fail(fault.E(fault.Unauthorized, opAdmit, l.peer.id, "the peer did not say hello in time"))
	}
}
