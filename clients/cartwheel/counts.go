package cartwheel

import (
	"time"

	"cartwheel.dev/clients/cartwheel/past"
	"cartwheel.dev/clients/cartwheel/traced"
	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/trace"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// FileSystem is the Client as a kernel's binding gets it: each call is counted
// by its kind, see Counts.
func (c *Client) FileSystem() mount.FileSystem {
	return traced.New(withPast(c), traced.Options{Recorder: c.recorder, Path: c.pathOf, StartRead: c.startRead})
}

// Counts returns what the operations through FileSystem cost since Open, by kind.
func (c *Client) Counts() []trace.Count { return c.recorder.Counts() }

// withPast is the Client with earlier times below .Snapshot.
func withPast(c *Client) *past.FileSystem {
	return past.New(c, past.Options{
		Find: c.nodes.Find, Ask: c.calls, Tickets: c.tickets, Range: c.chunks.Range, Remotely: c.limits.Remotely,
		Allowed: func(a *pb.Attr, who mount.Caller, mask uint32) bool { return allowed(c, a, who, mask) },
		Known:   c.opt.KnownFiles, Clock: c.opt.Clock, Wall: c.opt.Wall, Zone: time.Local, Logger: c.opt.Logger,
	})
}

// pathOf is the path of a node below the mount, as far as the caches know it,
// with a name in it.
func (c *Client) pathOf(node mount.Inode, name string) string {
	o, _, ok := c.nodes.Find(node)
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

// startRead begins a read of an open file that a callback ends.
func (c *Client) startRead(o *trace.Operation, id mount.Handle, offset int64, size int, then func(data []byte, ok bool)) bool {
	h, err := c.toRead(id, offset)
	return err == nil && h.content.StartRead(o, size, uint64(offset), then)
}

// Progress grows with everything that gets to the nodes.
func (c *Client) Progress() uint64 {
	return c.engine.Progress() + c.deferred.Published() + c.alone.Sent()
}

// Host returns the client's connections, for tests that disturb them.
func (c *Client) Host() *wire.Host { return c.cluster.Host() }

// Chunks is the cluster's chunk service as this client's files use it, for
// measurements of what files cost above it.
func (c *Client) Chunks() content.Remote { return c.chunks }
