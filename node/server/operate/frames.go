package operate

import (
	"slices"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/method"
)

// frames gathers the messages of one flush into one frame for each peer and
// class.
type frames struct {
	to map[frameKey][]byte
	// order keeps the keys as they came, so that sends do not depend on the map.
	order []frameKey
}

type frameKey struct {
	peer  geoconfig.NodeID
	class wire.Class
}

func newFrames() frames { return frames{to: map[frameKey][]byte{}} }

// frameRoom is the size at first of a frame that carries entries.
const frameRoom = 4 << 10

func (f *frames) send(l *Loop, messages []replica.Outgoing) {
	for i := range messages {
		m := &messages[i]
		key := frameKey{m.To, wire.Operation}
		if m.Message.Control() {
			key.class = wire.Beacon
		}
		buffer, ok := f.to[key]
		if !ok {
			f.order = append(f.order, key)
			buffer = make([]byte, 0, frameRoom)
		}
		buffer = slices.Grow(buffer, roomFor(m.Message))
		before := len(buffer)
		buffer = replica.AppendMessage(buffer, m.Message)
		if limit := l.o.Network.MaxPayload(key.class); len(buffer) > limit && before > 0 {
			l.sendFrame(key, buffer[:before:before])
			buffer = append(make([]byte, 0, max(frameRoom, len(buffer)-before)), buffer[before:]...)
		}
		f.to[key] = buffer
	}
	for _, key := range f.order {
		l.sendFrame(key, f.to[key])
	}
	clear(f.to)
	f.order = f.order[:0]
}

// roomFor is about what a message's encoding takes, so that a buffer grows once.
func roomFor(m *replica.Message) int {
	n := 0
	for _, e := range m.Entries {
		n += len(e.Data) + len(e.Result) + len(e.Chunks) + 96
	}
	return n
}

// sendFrame sends without waiting. What cannot be sent is lost, which the core
// expects: it sends again, or takes the silent member out.
func (l *Loop) sendFrame(key frameKey, frame []byte) {
	m := method.Replica
	if key.class == wire.Beacon {
		m = method.Beacon
	}
	err := l.o.Network.Send(string(key.peer), key.class, m, frame)
	if err != nil && !fault.Is(err, fault.Unreachable) {
		l.o.Logger.Debug("a frame to a peer was lost", "node", key.peer, "error", err)
	}
}

// DecodeFrame reads the messages of a frame, which they share memory with.
func DecodeFrame(frame []byte) ([]*replica.Message, error) {
	var out []*replica.Message
	for len(frame) > 0 {
		m, rest, err := replica.DecodeMessage(frame)
		if err != nil {
			return nil, err
		}
		out, frame = append(out, m), rest
	}
	return out, nil
}
