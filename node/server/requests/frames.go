package requests

import (
	"log/slog"
	"slices"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/wire"
)

// Frames takes the replica messages of other nodes in. Every field is needed.
type Frames struct {
	// IsNode answers nil where a peer is a node of the cluster.
	IsNode  func(peer string) error
	Receive func(from ids.Node, messages []*replica.Message)
	Logger  *slog.Logger
}

// Take decodes a frame and passes its messages on. Entries and leases share the
// payload's memory, which is then left to the garbage collector.
func (f *Frames) Take(m wire.Message) {
	if f.IsNode(m.Peer) != nil {
		m.Payload.Release()
		return
	}
	messages, err := operate.DecodeFrame(m.Payload.Bytes())
	if err != nil {
		f.Logger.Warn("a frame of a peer makes no sense", logattr.Peer(m.Peer), logattr.Err(err))
		return
	}
	shared := slices.ContainsFunc(messages, func(m *replica.Message) bool { return len(m.Entries)+len(m.Leases) > 0 })
	if !shared {
		m.Payload.Release()
	}
	f.Receive(ids.Node(m.Peer), messages)
}
