package operate

import (
	"log/slog"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/wire"
)

// frames gathers the messages of one flush into one frame for each peer and
// class.
type frames struct {
	network Network
	logger  *slog.Logger
	encode  replica.Pieces
	to      map[frameKey]*gathered
	// order keeps the keys as they came, so that sends do not depend on the map.
	order []frameKey
}

type frameKey struct {
	peer  ids.Node
	class wire.Class
}

// gathered is a frame that grows.
type gathered struct {
	pieces [][]byte
	size   int
}

func newFrames(network Network, logger *slog.Logger) frames {
	return frames{network: network, logger: logger, to: map[frameKey]*gathered{}}
}

func (f *frames) send(messages []replica.Outgoing) {
	for i := range messages {
		m := &messages[i]
		key := frameKey{m.To, wire.Operation}
		if m.Message.Control() {
			key.class = wire.Beacon
		}
		frame := f.to[key]
		if frame == nil {
			frame = &gathered{}
			f.to[key] = frame
		}
		if frame.size == 0 {
			f.order = append(f.order, key)
		}
		f.encode.Message(m.Message)
		pieces, size := f.encode.Take()
		if frame.size > 0 && frame.size+size > f.network.MaxPayload(key.class) {
			f.sendFrame(key, frame.pieces)
			frame.pieces, frame.size = frame.pieces[:0], 0
		}
		frame.pieces, frame.size = append(frame.pieces, pieces...), frame.size+size
	}
	for _, key := range f.order {
		frame := f.to[key]
		f.sendFrame(key, frame.pieces)
		clear(frame.pieces)
		frame.pieces, frame.size = frame.pieces[:0], 0
	}
	f.order = f.order[:0]
}

// sendFrame sends without waiting. What cannot be sent is lost, which the core
// expects: it sends again, or takes the silent member out.
func (f *frames) sendFrame(key frameKey, frame [][]byte) {
	m := method.Replica
	if key.class == wire.Beacon {
		m = method.Beacon
	}
	err := f.network.Send(string(key.peer), key.class, m, frame...)
	if err != nil && !fault.Is(err, fault.Unreachable) {
		f.logger.Debug("a frame to a peer was lost", logattr.Node(key.peer), logattr.Err(err))
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
