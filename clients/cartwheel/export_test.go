//go:build linux

package cartwheel

import (
	"slices"
	"sync/atomic"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// CutOff loses everything that the client sends to a node.
func (c *Client) CutOff(id ids.Node) {
	c.cluster.Host().SetFilter(func(peer string, _ wire.Class, _ wire.Method) wire.Verdict {
		return wire.Verdict{Drop: peer == string(id)}
	})
}

// ActiveIsAway reports whether the client leaves the active of a slice alone for now.
func (c *Client) ActiveIsAway(s ids.Slice) bool { return c.router.IsAway(s) }

// Only loses everything that the client sends to other nodes than one.
func (c *Client) Only(id ids.Node) {
	c.cluster.Host().SetFilter(func(peer string, _ wire.Class, _ wire.Method) wire.Verdict {
		return wire.Verdict{Drop: peer != string(id)}
	})
}

// Lose loses everything of some methods that the client sends, and nothing else
// any more.
func (c *Client) Lose(methods ...wire.Method) {
	c.cluster.Host().SetFilter(func(_ string, _ wire.Class, m wire.Method) wire.Verdict {
		return wire.Verdict{Drop: slices.Contains(methods, m)}
	})
}

// Count counts what the client sends of a method from now on, and loses
// everything of some others.
func (c *Client) Count(m wire.Method, lose ...wire.Method) *atomic.Int64 {
	var n atomic.Int64
	c.cluster.Host().SetFilter(func(_ string, _ wire.Class, sent wire.Method) wire.Verdict {
		if sent == m {
			n.Add(1)
		}
		return wire.Verdict{Drop: slices.Contains(lose, sent)}
	})
	return &n
}

// Hold keeps the first call of a method from being sent until release is called,
// and loses everything else that the client sends until heal is. Held is closed
// when there is such a call.
func (c *Client) Hold(m wire.Method) (held <-chan struct{}, heal, release func()) {
	asked, gate := make(chan struct{}), make(chan struct{})
	var first, healed atomic.Bool
	c.cluster.Host().SetFilter(func(_ string, _ wire.Class, sent wire.Method) wire.Verdict {
		if sent == m && first.CompareAndSwap(false, true) {
			close(asked)
			<-gate
			return wire.Verdict{}
		}
		return wire.Verdict{Drop: first.Load() && !healed.Load()}
	})
	return asked, func() { healed.Store(true) }, func() { close(gate) }
}

// Slow delays what the client sends of one method, and counts what it sends of
// another.
func (c *Client) Slow(m wire.Method, by time.Duration, counted wire.Method) *atomic.Int64 {
	var n atomic.Int64
	c.cluster.Host().SetFilter(func(_ string, _ wire.Class, sent wire.Method) wire.Verdict {
		if sent == counted {
			n.Add(1)
		}
		if sent != m {
			return wire.Verdict{}
		}
		return wire.Verdict{Delay: by}
	})
	return &n
}

// Releasing reports whether locks of a file are being given up.
func (c *Client) Releasing(n mount.Inode) bool {
	o, _, _ := c.nodes.Find(n)
	return c.locks.IsReleasing(o)
}

// LostLocks returns how many handles are known to have lost a lock.
func (c *Client) LostLocks() int {
	return c.locks.Lost()
}

// Owns reports whether a node has said that the client has a chunk's bytes.
func (c *Client) Owns(a chunk.Address) bool {
	commit := &pb.Commit{Extents: []*pb.Extent{{Source: &pb.Extent_Chunk{Chunk: a[:]}}}}
	return c.tickets.ShowOwned(commit) == nil
}

// ListingKept counts the names that an open directory keeps.
func (c *Client) ListingKept(id mount.Handle) int {
	h, err := c.handles.get(id)
	if err != nil {
		return -1
	}
	return h.listing.Kept()
}

// Bare counts the names of a directory of whose objects the client knows no
// attributes.
func (c *Client) Bare(dir mount.Inode) int {
	o, _, _ := c.nodes.Find(dir)
	return len(c.names.Bare(o, 1<<20))
}

// Cached counts the bytes of content and of range maps in memory.
func (c *Client) Cached() int64 { return c.engine.Usage().CacheBytes }

// Streamed is how many operations this client did by itself, without files that it
// made.
func (c *Client) Streamed() uint64 { return c.alone.Sent() + uint64(c.alone.Len()) }

// Lapse has all names be void, as where the session with a node ends.
func (c *Client) Lapse(node ids.Node) {
	c.names.Clear()
	c.revocation.Lapsed(node)
}

// TakenOver has the client hear that the root's active took over from another node.
func (c *Client) TakenOver() {
	row, _ := c.router.Known(ids.RootSlice)
	old := row
	old.Active = "another node"
	c.revocation.NewRow(old, row)
}
