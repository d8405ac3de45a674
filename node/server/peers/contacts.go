package peers

import (
	"log/slog"
	"sync"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/logattr"
)

// Host is what contacts ask of the node's connections.
type Host interface {
	AddPeer(peer string, addresses []string) error
	Keep(peer string, keep bool) error
	Forget(peer string) error
}

// Contacts keeps the node connected to the other nodes of the roster.
type Contacts struct {
	Self   ids.Node
	Host   Host
	Logger *slog.Logger

	mu sync.Mutex // guards met; held while the host is told
	// met are the other nodes of the last roster. The host keeps connections to
	// these and no others.
	met map[ids.Node]bool
}

// Update tells the host where the other nodes are, keeps connections up, and cuts
// those to nodes that are not on the roster any more.
func (c *Contacts) Update(roster []geoconfig.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.met
	c.met = map[ids.Node]bool{}
	for _, n := range roster {
		if n.ID == c.Self {
			continue
		}
		c.met[n.ID] = true
		err := c.Host.AddPeer(string(n.ID), n.Addresses)
		if err == nil {
			err = c.Host.Keep(string(n.ID), true)
		}
		if err != nil {
			c.Logger.Warn("a node's row names no usable address", logattr.Peer(string(n.ID)), logattr.Err(err))
		}
	}
	for id := range before {
		if c.met[id] {
			continue
		}
		c.Logger.Info("a node left the roster", logattr.Peer(string(id)))
		if err := c.Host.Forget(string(id)); err != nil {
			c.Logger.Warn("a node that left cannot be forgotten", logattr.Peer(string(id)), logattr.Err(err))
		}
	}
}
