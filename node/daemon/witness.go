package daemon

import (
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/people"
	"cartwheel.dev/node/server/cluster"
	"cartwheel.dev/node/wire"
)

// witness signs with a node's key, and believes the nodes that the configuration
// lists. The ID of a node is that of its key.
type witness struct {
	key   wire.Key
	self  ids.Node
	known *cluster.Directory
}

var _ people.Witness = witness{}

// Self implements people.Witness.
func (w witness) Self() ids.Node { return w.self }

// Sign implements people.Witness.
func (w witness) Sign(data []byte) ([]byte, error) { return w.key.Sign(data) }

// Verify implements people.Witness. Error: Unauthorized.
func (w witness) Verify(by ids.Node, data, signature []byte) error {
	if _, ok := w.known.Node(by); !ok {
		return fault.E(fault.Unauthorized, "daemon.witness", string(by), "is no node of this cluster")
	}
	return wire.VerifyID(string(by), data, signature)
}
