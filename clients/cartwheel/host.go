package cartwheel

import (
	"cartwheel.dev/clients/content"
	"cartwheel.dev/node/wire"
)

// Host returns the client's connections, for tests that disturb them.
func (c *Client) Host() *wire.Host { return c.cluster.Host() }

// Chunks is the cluster's chunk service as this client's files use it, for
// measurements of what files cost above it.
func (c *Client) Chunks() content.Remote { return c.chunks }
