package cartwheel

import (
	"context"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/trace"
)

// traced is the Client with each operation counted: what is to be mounted. An
// operation's count travels in its context to where calls are made.
type traced struct {
	*Client
}

var (
	_ mount.FileSystem      = traced{}
	_ mount.NamelessCreator = traced{}
	_ mount.PieceReader     = traced{}
	_ mount.ReadStarter     = traced{}
	_ mount.PathWalker      = traced{}
	_ mount.RangeCopier     = traced{}
)

// FileSystem is the Client as a kernel's binding gets it: each call is counted
// by its kind, see Counts.
func (c *Client) FileSystem() mount.FileSystem { return traced{c} }

// Counts returns what the operations through FileSystem cost since Open, by kind.
func (c *Client) Counts() []trace.Count { return c.recorder.Counts() }

// begun is one operation on its way.
type begun struct {
	c    *Client
	o    *trace.Operation
	node mount.Inode
	name string
}

func (t traced) begin(ctx context.Context, k trace.Kind, who mount.Caller, node mount.Inode, name string) (context.Context, begun) {
	o := t.recorder.Begin(k, trace.Caller{UID: who.UID, PID: who.PID})
	return trace.With(ctx, o), begun{t.Client, o, node, name}
}

func (b begun) end() {
	if !b.o.Watched() {
		b.c.recorder.End(b.o, nil)
		return
	}
	b.c.recorder.End(b.o, func() string { return b.c.about(b.node, b.name) })
}

// about is the path of a node below the mount, as far as the caches know it,
// with a name in it.
func (c *Client) about(node mount.Inode, name string) string {
	o, _, ok := c.nodes.find(node)
	if !ok {
		return name
	}
	path := c.names.Path(o)
	switch {
	case name == "":
		return path
	case path == "/":
		return path + name
	}
	return path + "/" + name
}

// Lookup implements mount.Names.
func (t traced) Lookup(ctx context.Context, who mount.Caller, dir mount.Inode, name string) (mount.Entry, error) {
	ctx, b := t.begin(ctx, trace.Lookup, who, dir, name)
	defer b.end()
	return t.Client.Lookup(ctx, who, dir, name)
}

// Walk implements mount.PathWalker; a walk counts as one lookup.
func (t traced) Walk(ctx context.Context, who mount.Caller, from mount.Inode, path string) (mount.Entry, error) {
	ctx, b := t.begin(ctx, trace.Lookup, who, from, path)
	defer b.end()
	return t.Client.Walk(ctx, who, from, path)
}

// Readlink implements mount.Names.
func (t traced) Readlink(ctx context.Context, who mount.Caller, node mount.Inode) ([]byte, error) {
	ctx, b := t.begin(ctx, trace.Readlink, who, node, "")
	defer b.end()
	return t.Client.Readlink(ctx, who, node)
}

// Mknod implements mount.Names.
func (t traced) Mknod(ctx context.Context, who mount.Caller, dir mount.Inode, name string, mode, rdev uint32) (mount.Entry, error) {
	ctx, b := t.begin(ctx, trace.Mknod, who, dir, name)
	defer b.end()
	return t.Client.Mknod(ctx, who, dir, name, mode, rdev)
}

// Mkdir implements mount.Names.
func (t traced) Mkdir(ctx context.Context, who mount.Caller, dir mount.Inode, name string, mode uint32) (mount.Entry, error) {
	ctx, b := t.begin(ctx, trace.Mkdir, who, dir, name)
	defer b.end()
	return t.Client.Mkdir(ctx, who, dir, name, mode)
}

// Symlink implements mount.Names.
func (t traced) Symlink(ctx context.Context, who mount.Caller, dir mount.Inode, name, target string) (mount.Entry, error) {
	ctx, b := t.begin(ctx, trace.Symlink, who, dir, name)
	defer b.end()
	return t.Client.Symlink(ctx, who, dir, name, target)
}

// Link implements mount.Names.
func (t traced) Link(ctx context.Context, who mount.Caller, node, dir mount.Inode, name string) (mount.Entry, error) {
	ctx, b := t.begin(ctx, trace.Link, who, dir, name)
	defer b.end()
	return t.Client.Link(ctx, who, node, dir, name)
}

// Unlink implements mount.Names.
func (t traced) Unlink(ctx context.Context, who mount.Caller, dir mount.Inode, name string) error {
	ctx, b := t.begin(ctx, trace.Unlink, who, dir, name)
	defer b.end()
	return t.Client.Unlink(ctx, who, dir, name)
}

// Rmdir implements mount.Names.
func (t traced) Rmdir(ctx context.Context, who mount.Caller, dir mount.Inode, name string) error {
	ctx, b := t.begin(ctx, trace.Rmdir, who, dir, name)
	defer b.end()
	return t.Client.Rmdir(ctx, who, dir, name)
}

// Rename implements mount.Names.
func (t traced) Rename(ctx context.Context, who mount.Caller, dir mount.Inode, name string, to mount.Inode, newName string, flags mount.RenameFlags) error {
	ctx, b := t.begin(ctx, trace.Rename, who, to, newName)
	defer b.end()
	return t.Client.Rename(ctx, who, dir, name, to, newName, flags)
}

// GetAttr implements mount.Attributes.
func (t traced) GetAttr(ctx context.Context, who mount.Caller, node mount.Inode, h mount.Handle) (mount.AttrReply, error) {
	ctx, b := t.begin(ctx, trace.GetAttr, who, node, "")
	defer b.end()
	return t.Client.GetAttr(ctx, who, node, h)
}

// SetAttr implements mount.Attributes.
func (t traced) SetAttr(ctx context.Context, who mount.Caller, node mount.Inode, change mount.SetAttr) (mount.AttrReply, error) {
	ctx, b := t.begin(ctx, trace.SetAttr, who, node, "")
	defer b.end()
	return t.Client.SetAttr(ctx, who, node, change)
}

// Access implements mount.Attributes.
func (t traced) Access(ctx context.Context, who mount.Caller, node mount.Inode, mask uint32) error {
	ctx, b := t.begin(ctx, trace.Access, who, node, "")
	defer b.end()
	return t.Client.Access(ctx, who, node, mask)
}

// StatFS implements mount.FileSystem.
func (t traced) StatFS(ctx context.Context, who mount.Caller, node mount.Inode) (mount.Space, error) {
	ctx, b := t.begin(ctx, trace.StatFS, who, node, "")
	defer b.end()
	return t.Client.StatFS(ctx, who, node)
}

// GetXattr implements mount.Xattrs.
func (t traced) GetXattr(ctx context.Context, who mount.Caller, node mount.Inode, name string, buf []byte) (int, error) {
	if isTrace(name) {
		return t.traceXattr(who, name, buf)
	}
	ctx, b := t.begin(ctx, trace.GetXattr, who, node, "")
	defer b.end()
	return t.Client.GetXattr(ctx, who, node, name, buf)
}

// ListXattr implements mount.Xattrs.
func (t traced) ListXattr(ctx context.Context, who mount.Caller, node mount.Inode, buf []byte) (int, error) {
	ctx, b := t.begin(ctx, trace.ListXattr, who, node, "")
	defer b.end()
	return t.Client.ListXattr(ctx, who, node, buf)
}

// SetXattr implements mount.Xattrs.
func (t traced) SetXattr(ctx context.Context, who mount.Caller, node mount.Inode, name string, value []byte, flags mount.XattrFlags) error {
	if isTrace(name) {
		return t.orderTrace(who, name, string(value))
	}
	ctx, b := t.begin(ctx, trace.SetXattr, who, node, "")
	defer b.end()
	return t.Client.SetXattr(ctx, who, node, name, value, flags)
}

// RemoveXattr implements mount.Xattrs.
func (t traced) RemoveXattr(ctx context.Context, who mount.Caller, node mount.Inode, name string) error {
	ctx, b := t.begin(ctx, trace.RemoveXattr, who, node, "")
	defer b.end()
	return t.Client.RemoveXattr(ctx, who, node, name)
}
