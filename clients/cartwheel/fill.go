package cartwheel

import (
	"context"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// The content of a small file goes to the kernel with the answer to its first
// open, so that the kernel need not ask for it, nor, as it does after each read
// that it sent, for the attributes at the next open. Only where it is here, or
// a node that is near has it; and once in the life of a node, before anybody
// else has it open: then the kernel has no other pages of it, nobody writes to
// them, and no read of them is under way. Whoever opens it meanwhile, or sets
// its size, waits.
const (
	// fillMost bounds the bytes of such a file.
	fillMost = 64 << 10
	// fillPatience bounds the wait for a near node; the kernel asks by itself
	// then.
	fillPatience = time.Second
)

// filler is the notifier, where it takes content.
func (c *Client) filler() mount.Filler {
	if n := c.notifier.Load(); n != nil {
		f, _ := (*n).(mount.Filler)
		return f
	}
	return nil
}

// toFill returns the content of a file for the kernel; nil: nothing is to be
// filled.
func (c *Client) toFill(ctx context.Context, h *handle, a *pb.Attr) []byte {
	if h.flags.Writes() || h.flags&(mount.OpenDirect|mount.OpenTruncate) != 0 || a.Size == 0 || a.Size > fillMost || c.filler() == nil {
		return nil
	}
	data, ok := h.content.Whole(ctx, a.Version, fillMost, false)
	if !ok && c.nearContent(h.object.Slice()) {
		out, cancel := c.remotely(ctx)
		defer cancel()
		short, stop := context.WithTimeout(out, fillPatience)
		defer stop()
		data, _ = h.content.Whole(short, a.Version, fillMost, true)
	}
	return data
}

// nearContent reports whether the node that is asked for a slice's content is
// near.
func (c *Client) nearContent(slice ids.Slice) bool {
	row, ok := c.router.Known(slice)
	limit := c.opt.AheadFrom
	if limit < 0 {
		limit = DefaultAheadFrom
	}
	return ok && !c.beyond(c.cluster.Closest(row.Active, row.Normals()), limit)
}

// page notes that the kernel may have pages of a node from now on, and reports
// whether the caller is to fill them, who may if he is the first. Else filling
// is what to wait for, if it is not nil. The mutex is held.
func (t *nodes) page(n *node, may bool) (first bool, filling chan struct{}) {
	first = may && !n.paged && n.untold == 0
	n.paged = true
	if first {
		n.filling = make(chan struct{})
	}
	return first, n.filling
}

// fill gives the kernel the content of a version, unless it is not the current
// one any more, and reports whether the kernel has it.
func (c *Client) fill(n *node, a *pb.Attr, data []byte) bool {
	t := &c.nodes
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		close(n.filling)
		n.filling = nil
	}()
	f := c.filler()
	return f != nil && f.Fill(n.id, data, func() bool {
		now, ok := c.names.Own(n.object)
		t.mu.Lock()
		defer t.mu.Unlock()
		return ok && now.Version == a.Version && n.untold == 0
	})
}

func (t *nodes) paged(id mount.Inode) (filling chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.byID[id]; n != nil {
		_, filling = t.page(n, false)
	}
	return filling
}

// noFill has nothing filled any more, when it returns, of a node whose content
// is about to be changed through the kernel.
func (t *nodes) noFill(id mount.Inode) {
	if filling := t.paged(id); filling != nil {
		<-filling
	}
}
