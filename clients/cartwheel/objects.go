package cartwheel

import (
	"context"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/creation"
	"cartwheel.dev/clients/cartwheel/inodes"
	"cartwheel.dev/clients/cartwheel/listing"
	"cartwheel.dev/clients/cartwheel/timeouts"
	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/pb"
)

// Objects is a directory as programs without a mount use it: small files that
// are put, got, listed and deleted whole. It may be used by many goroutines.
type Objects struct {
	c   *Client
	who mount.Caller
	dir mount.Inode
}

// maxPut is up to how many bytes an object travels in one operation.
const maxPut = 256 << 10

// Objects finds the directory at a path from the root, cues among it, for a
// caller.
func (c *Client) Objects(ctx context.Context, who mount.Caller, path string) (*Objects, error) {
	e, err := c.Walk(ctx, who, mount.Root, path)
	switch {
	case err != nil:
		return nil, err
	case e.Node == 0:
		return nil, fault.E(fault.NotFound, "cartwheel.Objects", path, "")
	case e.Attr.Mode&mount.TypeMask != mount.TypeDir:
		return nil, fault.E(fault.NotDirectory, "cartwheel.Objects", path, "")
	}
	return &Objects{c: c, who: who, dir: e.Node}, nil
}

// Put makes an object, or gives one that is there another content: all of it or
// nothing, in one operation up to 256 KiB.
func (b *Objects) Put(ctx context.Context, name string, data []byte) error {
	c := b.c
	dir, cues, ok := c.nodes.Find(b.dir)
	if !ok {
		return staleNode
	}
	ctx, done := timeouts.Within(ctx, cues.Terms())
	defer done()
	m := creation.Request{Dir: dir, Cues: cues, Name: name, Who: b.who, Call: cue.Open, Create: &pb.Create{Mode: mount.TypeRegular | 0o666, Truncate: true}}
	if len(data) <= maxPut {
		m.Create.Commit = &pb.Commit{MtimeNs: c.opt.Wall().UnixNano(), ClearSetid: b.who.UID != 0}
		if len(data) > 0 {
			m.Create.Commit.Extents = []*pb.Extent{{Length: uint64(len(data)), Source: &pb.Extent_BodyOffset{}}}
			m.Body = [][]byte{data}
		}
	}
	if e, _, known := c.names.Lookup(dir, name); known && e.Object != 0 { // what is dirty of it is not to come after
		out, cancel := c.limits.Remotely(ctx)
		err := c.engine.FlushObject(out, e.Object)
		cancel()
		if err != nil {
			return err
		}
	}
	res, err := c.maker.Make(ctx, m)
	if err != nil {
		return err
	}
	o := ids.Object(res.Attr.Object)
	if m.Create.Commit != nil && o.Slice() == dir.Slice() {
		c.engine.SetVersion(res.Attr)
		if res.Existed {
			c.kernel.Invalidate(inodes.Plain(o), 0, 0)
		}
		return nil
	}
	return b.write(ctx, o, cues, data)
}

// write puts the content of an object that lies in another slice than its name,
// or is large.
func (b *Objects) write(ctx context.Context, o ids.Object, cues cue.Set, data []byte) error {
	c := b.c
	out, cancel := c.limits.Remotely(ctx)
	defer cancel()
	h := c.engine.Open(o, nil, content.Open{As: &calls.Writer{Principal: calls.WithGroups(b.who), Level: cues.Only(cue.Write).Sync(), Terms: cues.Only(cue.Write).Terms()}, ClearSetID: b.who.UID != 0})
	defer h.Close()
	err := h.Truncate(out, 0)
	if err == nil {
		err = h.WriteAt(out, data, 0)
	}
	if err == nil {
		err = h.Flush(out)
	}
	return err
}

// Get returns the content of an object; small ones come with the answer to what
// the name means.
func (b *Objects) Get(ctx context.Context, name string) ([]byte, error) {
	const op fault.Op = "cartwheel.Get"
	c := b.c
	dir, cues, ok := c.nodes.Find(b.dir)
	if !ok {
		return nil, staleNode
	}
	ctx, done := timeouts.Within(ctx, cues.Terms())
	defer done()
	out, cancel := c.limits.Remotely(ctx)
	defer cancel()
	for try := 0; ; try++ {
		a, e, err := c.resolver.Find(out, b.who, dir, name)
		switch {
		case err != nil:
			return nil, err
		case e.Object == 0:
			return nil, fault.E(fault.NotFound, op, name, "")
		case a.Mode&mount.TypeMask != mount.TypeRegular:
			return nil, fault.E(fault.Invalid, op, name, "is no regular file")
		case !allowed(c, a, b.who, mount.AccessRead):
			return nil, fault.E(fault.Permission, op, name, "")
		}
		h := c.engine.Open(e.Object, a, content.Open{})
		if c.names.Superseded(a) { // a commit of this client ended meanwhile
			c.engine.Invalidate(e.Object)
		}
		size, err := h.Size(out)
		data := make([]byte, size)
		if err == nil {
			var n int
			n, err = h.ReadAt(out, data, 0)
			data = data[:n]
		}
		h.Close()
		if !fault.Is(err, fault.Stale) || try == 3 {
			return data, err
		}
		c.names.Forget(dir) // it was replaced by another one meanwhile
	}
}

// Delete removes an object.
func (b *Objects) Delete(ctx context.Context, name string) error {
	return b.c.remove(ctx, b.who, b.dir, name, false)
}

// List returns the names of all objects, in no order.
func (b *Objects) List(ctx context.Context) ([]string, error) {
	c := b.c
	o, err := c.OpenDir(ctx, b.who, b.dir)
	if err != nil {
		return nil, err
	}
	defer c.ReleaseDir(b.dir, o.Handle)
	var out nameSink
	if err := c.ReadDir(ctx, b.who, b.dir, o.Handle, 0, false, &out); err != nil {
		return nil, err
	}
	return out.names, nil
}

// nameSink takes the names of a listing, but for "." and "..".
type nameSink struct{ names []string }

var _ mount.DirSink = (*nameSink)(nil)

// Add implements mount.DirSink.
func (s *nameSink) Add(e mount.DirEntry) bool {
	if e.Offset > listing.FirstName {
		s.names = append(s.names, e.Name)
	}
	return true
}

// AddPlus implements mount.DirSink.
func (s *nameSink) AddPlus(e mount.DirEntry, _ *mount.Entry) bool { return s.Add(e) }
