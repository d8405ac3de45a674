package cartwheel

import (
	"context"

	"cartwheel.dev/clients/cartwheel/listing"
	"cartwheel.dev/clients/cartwheel/timeouts"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
)

// OpenDir implements mount.Directories.
func (c *Client) OpenDir(_ context.Context, _ mount.Caller, id mount.Inode) (mount.Opened, error) {
	o, cues, ok := c.nodes.Find(id)
	if !ok {
		return mount.Opened{}, staleNode
	}
	return mount.Opened{Handle: c.handles.add(&handle{object: o, node: id, listing: c.lists.Open(o, cues.Terms())})}, nil
}

// ReleaseDir implements mount.Directories.
func (c *Client) ReleaseDir(_ mount.Inode, id mount.Handle) {
	if h := c.handles.remove(id); h != nil && h.listing != nil {
		h.listing.Close()
	}
}

// FsyncDir implements mount.Directories: what was done before it in the directory's
// slice is on disk before it returns.
func (c *Client) FsyncDir(ctx context.Context, _ mount.Caller, id mount.Inode, _ mount.Handle, _ bool) error {
	o, cues, ok := c.nodes.Find(id)
	if !ok {
		return staleNode
	}
	ctx, done := timeouts.Within(ctx, cues.Terms())
	defer done()
	out, cancel := c.limits.Remotely(ctx)
	defer cancel()
	if err := c.deferred.PublishDir(out, o); err != nil {
		return err
	}
	if err := c.alone.FlushSlice(out, o.Slice()); err != nil {
		return err
	}
	return c.alone.Refusal(o)
}

// ReadDir implements mount.Directories.
func (c *Client) ReadDir(ctx context.Context, who mount.Caller, id mount.Inode, hid mount.Handle, offset uint64, plus bool, sink mount.DirSink) error {
	h, err := c.handles.get(hid)
	if err != nil {
		return err
	}
	if h.listing == nil {
		return fault.E(fault.BadHandle, "cartwheel.ReadDir", "", "")
	}
	_, cues, ok := c.nodes.Find(id)
	if !ok {
		return staleNode
	}
	ctx, done := timeouts.Within(ctx, cues.Terms())
	defer done()
	if offset == 0 && cues.Only(cue.Readdir).Has(cue.WholeFile) {
		c.resolver.Whole(ctx, who, h.object)
	}
	r := reading{c: c, id: id, cues: cues, plus: plus, sink: sink, dir: h.object}
	dots := func() (bool, error) { return c.dots(ctx, h.object, offset, plus, sink) }
	return h.listing.Read(ctx, who, offset, dots, r.hand)
}

// dots hands "." and ".." over.
func (c *Client) dots(ctx context.Context, dir ids.Object, offset uint64, plus bool, sink mount.DirSink) (full bool, err error) {
	if offset >= listing.FirstName {
		return false, nil
	}
	parent := uint64(dir)
	a, err := c.calls.Attr(ctx, dir)
	switch {
	case fault.Is(err, fault.Stale):
	case err != nil:
		return true, err
	case a.Parent != 0:
		parent = a.Parent
	}
	for i, e := range []mount.DirEntry{
		{Name: ".", Ino: uint64(dir), Type: mount.TypeDir, Offset: 1}, {Name: "..", Ino: parent, Type: mount.TypeDir, Offset: listing.FirstName},
	} {
		if offset > uint64(i) {
			continue
		}
		ok := false
		if plus {
			ok = sink.AddPlus(e, &mount.Entry{})
		} else {
			ok = sink.Add(e)
		}
		if !ok {
			return true, nil
		}
	}
	return false, nil
}

// reading hands names over.
type reading struct {
	c    *Client
	id   mount.Inode
	cues cue.Set
	dir  ids.Object
	plus bool
	sink mount.DirSink
}

// hand gives the kernel one name, looked up where the attributes are at hand.
func (r *reading) hand(n *names.Named, cookie uint64) bool {
	e := mount.DirEntry{Name: n.Name, Ino: uint64(n.Object), Type: n.Type, Offset: cookie}
	if !r.plus {
		return r.sink.Add(e)
	}
	c := r.c
	if c.nodes.IsCrowded() {
		return r.sink.AddPlus(e, &mount.Entry{})
	}
	now, left, ok := c.names.Lookup(r.dir, n.Name)
	a, _, known := c.names.Attr(n.Object)
	if !ok || !known || now.Object != n.Object || !r.cues.Empty() && n.Type == mount.TypeRegular {
		return r.sink.AddPlus(e, &mount.Entry{})
	}
	looked := c.replies.Entry(a, r.cues)
	if c.replies.Believe(&looked, a, r.id, n.Name, left); r.sink.AddPlus(e, &looked) {
		return true
	}
	c.nodes.Forget(looked.Node, 1)
	return false
}
