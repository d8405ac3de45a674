package knot

func (c *Client) resolve() int { return c.local() + c.seen.size() }
