package cartwheel

import (
	"context"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
)

// Pages of listings.
const (
	pageEntries = 2048
	// eagerPages bounds what is read of a directory ahead of being asked for.
	eagerPages = 8
	// maxSorted bounds the names of a known directory that are listed in their
	// order, as nodes list them: who reads on file by file is run ahead of so.
	maxSorted = 1 << 14
)

// firstName is the cookie of the first name: "." and ".." are before it.
const firstName = 2

// OpenDir implements mount.Directories.
func (c *Client) OpenDir(_ context.Context, _ mount.Caller, id mount.Inode) (mount.Opened, error) {
	o, _, ok := c.nodes.find(id)
	if !ok {
		return mount.Opened{}, staleNode
	}
	return mount.Opened{Handle: c.handles.add(&handle{object: o, node: id, listing: &listing{}})}, nil
}

// ReleaseDir implements mount.Directories.
func (c *Client) ReleaseDir(_ mount.Inode, id mount.Handle) {
	if h := c.handles.remove(id); h != nil && h.listing != nil {
		h.listing.mu.Lock()
		defer h.listing.mu.Unlock()
		h.listing.stop()
	}
}

// FsyncDir implements mount.Directories: what changes a directory is on disk
// before it returns.
func (c *Client) FsyncDir(ctx context.Context, _ mount.Caller, id mount.Inode, _ mount.Handle, _ bool) error {
	o, _, ok := c.nodes.find(id)
	if !ok {
		return staleNode
	}
	out, cancel := c.remotely(ctx)
	defer cancel()
	return c.settleDir(out, o)
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
	_, cues, ok := c.nodes.find(id)
	if !ok {
		return staleNode
	}
	l := h.listing
	l.mu.Lock()
	defer l.mu.Unlock()
	if offset == 0 {
		l.stop()
		l.window, l.more, l.begun = window{}, false, false
	}
	if full, err := c.dots(ctx, h.object, offset, plus, sink); full || err != nil {
		return err
	}
	r := reading{c: c, id: id, cues: cues, plus: plus, sink: sink, dir: h.object}
	at := max(offset, firstName) - firstName
	if at < l.base {
		if err := c.goBack(ctx, who, h.object, l, at); err != nil {
			return l.ended(err)
		}
	}
	for ; ; at++ {
		for at >= l.end() {
			if l.begun && !l.more {
				return nil
			}
			if err := c.nextPage(ctx, who, h.object, l); err != nil {
				return l.ended(err)
			}
		}
		if !r.hand(l.at(at), at+firstName+1) {
			return nil
		}
	}
}

// dots hands "." and ".." over.
func (c *Client) dots(ctx context.Context, dir ids.Object, offset uint64, plus bool, sink mount.DirSink) (full bool, err error) {
	if offset >= firstName {
		return false, nil
	}
	parent := uint64(dir)
	a, err := c.attr(ctx, dir)
	switch {
	case fault.Is(err, fault.Stale):
	case err != nil:
		return true, err
	case a.Parent != 0:
		parent = a.Parent
	}
	for i, e := range []mount.DirEntry{
		{Name: ".", Ino: uint64(dir), Type: mount.TypeDir, Offset: 1}, {Name: "..", Ino: parent, Type: mount.TypeDir, Offset: firstName},
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
	if c.nodes.over.Load() && c.nodes.crowded() {
		return r.sink.AddPlus(e, &mount.Entry{})
	}
	now, left, ok := c.names.Lookup(r.dir, n.Name)
	a, _, known := c.names.Attr(n.Object)
	if !ok || !known || now.Object != n.Object || !r.cues.Empty() && n.Type == mount.TypeRegular {
		return r.sink.AddPlus(e, &mount.Entry{})
	}
	looked := c.entry(a, r.cues)
	if c.believe(&looked, a, r.id, n.Name, left); r.sink.AddPlus(e, &looked) {
		return true
	}
	c.nodes.forget(looked.Node, 1)
	return false
}

// learnPage learns a page. The mark is that of the first one: when the last
// comes and nothing was in between, all is known.
func (c *Client) learnPage(dir ids.Object, p *page, going bool, first *names.Mark, kept *bool) []names.Named {
	out := make([]names.Named, len(p.resp.Entries))
	c.names.Learn(&p.mark, p.by, p.resp.Grants, func(l *names.Learner) {
		if !going {
			*first = l.Anchor(dir)
		}
		*kept = *kept && l.Unbroken(first, dir)
		for i, e := range p.resp.Entries {
			out[i] = names.Named{Name: string(e.Name), Entry: names.Entry{Object: ids.Object(e.Object), Type: e.Mode}}
			l.Attr(e.Attr, false)
			c.tickets.Note(ids.Object(e.Object), e.Ticket)
			l.Entry(dir, out[i].Name, out[i].Entry)
		}
		if *kept && !p.resp.More {
			l.Complete(dir)
		}
	})
	return out
}

// prefetch reads a directory whose names are asked for one by one, as far as
// that is not too much.
func (c *Client) prefetch(ctx context.Context, who mount.Caller, dir ids.Object) {
	s := c.readOn(who, dir, "", eagerBytes)
	defer s.stop()
	var mark names.Mark
	kept := true
	for n := range eagerPages {
		p, err := s.take(ctx)
		if err != nil {
			break // it may not be read: names are asked for one by one
		}
		c.learnPage(dir, p, n > 0, &mark, &kept)
		if !p.resp.More {
			return
		}
	}
	c.names.Tried(dir)
}
