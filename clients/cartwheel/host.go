package cartwheel

import "cartwheel.dev/node/wire"

// Host returns the client's connections, for tests that disturb them.
func (c *Client) Host() *wire.Host { return c.cluster.Host() }
