package cartwheel

import (
	"context"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/ids"
)

var _ mount.NamelessCreator = (*Client)(nil)

// CreateNameless implements mount.NamelessCreator.
func (c *Client) CreateNameless(ctx context.Context, who mount.Caller, id mount.Inode, mode uint32, flags mount.OpenFlags) (mount.Entry, mount.Opened, error) {
	dir, cues, ok := c.nodes.Find(id)
	if !ok {
		return mount.Entry{}, mount.Opened{}, staleNode
	}
	a, err := c.maker.MakeNameless(ctx, who, dir, cues, mode)
	if err != nil {
		return mount.Entry{}, mount.Opened{}, err
	}
	e := c.replies.Entry(a, cues)
	opened := c.opened(ctx, who, c.nodes.CountOpen(ids.Object(a.Object), flags), a, flags, cues)
	c.nodes.MarkHeld(ids.Object(a.Object)) // since it was made
	return e, opened, nil
}
