//go:build linux

package cartwheel

import (
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/node/wire"
)

// CutOff loses everything that the client sends to a node.
func (c *Client) CutOff(id geoconfig.NodeID) {
	c.cluster.Host().SetFilter(func(peer string, _ wire.Class, _ wire.Method) wire.Verdict {
		return wire.Verdict{Drop: peer == string(id)}
	})
}
