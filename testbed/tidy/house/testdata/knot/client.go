// Package knot has two files that need each other, and two below them.
package knot

// Client is declared here and has a method elsewhere.
type Client struct{ seen table }

// Lookup goes to resolve.go, back here, and down.
func (c *Client) Lookup() int { return c.resolve() }

func (c *Client) local() int { return len(c.seen) }
