package wire

import (
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/wire/framing"
)

const opSend fault.Op = "wire.Host.Send"

// Send queues a one-way frame whose payload is the slices end to end, and never
// waits. Small slices are copied; large ones are read later and must not be
// written to again. Nil means queued, not arrived. Unreachable: there is no
// connection, and one is dialled meanwhile. Overloaded: the queue to this peer
// is full. TooLarge: more than Limits allow in one frame.
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

// MaxPayload returns how many bytes one frame of a class may carry as its body.
func (h *Host) MaxPayload(class Class) int { return int(h.options.Limits.Class[class].Body) }

// Queued returns how many bytes wait to be sent to a peer in a class.
func (h *Host) Queued(peer string, class Class) int {
	l := h.currentLink(peer, class)
	if l == nil {
		return 0
	}
	return l.queue.Size()
}
