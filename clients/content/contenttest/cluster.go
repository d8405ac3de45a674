// Package contenttest is a cluster in memory for tests of the content engine
// and of what stands on it: it keeps objects as manifests and chunks, as nodes
// do, and can fail, delay and lose answers at named calls. It is not a model of
// replication or of leases. A Cluster may be used from many goroutines.
package contenttest

import (
	"context"
	"sync"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
)

// Call names a method of content.Remote.
type Call string

// The calls.
const (
	Commit     Call = "commit"
	HaveChunks Call = "have"
	PutChunks  Call = "put"
	GetChunks  Call = "get"
	Range      Call = "range"
	Version    Call = "version"
)

// Outcome is what happens to one call.
type Outcome struct {
	// Before is returned instead of doing anything.
	Before error
	// After is returned although it was done: the answer was lost.
	After error
	// Wait is waited for first, if it is not nil.
	Wait <-chan struct{}
}

// inlineLimit is up to what size files lie in their record.
const inlineLimit = 4 << 10

// Cluster is a content.Remote in memory.
type Cluster struct {
	mu      sync.Mutex
	objects map[ids.Object]*object
	chunks  map[chunk.Address][]byte
	serial  uint64
	faults  func(Call) Outcome
	calls   map[Call]int
	bytes   map[Call]int64
}

type object struct {
	version uint64
	mtime   int64
	inline  []byte
	root    chunk.Root
}

var _ content.Remote = (*Cluster)(nil)

// New returns an empty cluster.
func New() *Cluster {
	return &Cluster{
		objects: map[ids.Object]*object{}, chunks: map[chunk.Address][]byte{},
		calls: map[Call]int{}, bytes: map[Call]int64{},
	}
}

// SetFaults makes fn decide on every call from now on; nil: all go well.
func (c *Cluster) SetFaults(fn func(Call) Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = fn
}

// Calls returns how often a method was called since the start, and how many
// bytes of content it moved.
func (c *Cluster) Calls(call Call) (times int, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[call], c.bytes[call]
}

// Drop forgets all chunks that no version names, as a node does that lost them.
func (c *Cluster) Drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	keep := map[chunk.Address]bool{}
	for _, o := range c.objects {
		_ = chunk.Walk(nodes{c}, o.root, func(a chunk.Address, _ bool) bool { keep[a] = true; return true })
	}
	for a := range c.chunks {
		if !keep[a] {
			delete(c.chunks, a)
		}
	}
}

// enter counts a call and says what happens to it.
func (c *Cluster) enter(ctx context.Context, call Call) (after error, err error) {
	const op fault.Op = "contenttest.enter"
	c.mu.Lock()
	c.calls[call]++
	faults := c.faults
	c.mu.Unlock()
	if faults == nil {
		return nil, ctx.Err()
	}
	o := faults(call)
	if o.Wait != nil {
		select {
		case <-o.Wait:
		case <-ctx.Done():
			return nil, fault.Wrap(fault.TimedOut, op, string(call), ctx.Err())
		}
	}
	if o.Before != nil {
		return nil, o.Before
	}
	return o.After, ctx.Err()
}

// nodes reads manifest nodes with the cluster's mutex held.
type nodes struct{ c *Cluster }

func (n nodes) Node(a chunk.Address) ([]byte, error) {
	const op fault.Op = "contenttest.Node"
	data, ok := n.c.chunks[a]
	if !ok {
		return nil, fault.E(fault.Missing, op, a.String(), "")
	}
	return data, nil
}

// getLocked returns an object, made empty where there is none; mu is held.
func (c *Cluster) getLocked(id ids.Object) *object {
	o := c.objects[id]
	if o == nil {
		o = &object{}
		c.objects[id] = o
	}
	return o
}

func (c *Cluster) attr(id ids.Object, o *object) *pb.Attr {
	a := &pb.Attr{Object: uint64(id), Version: o.version, Size: o.size(), MtimeNs: o.mtime, Content: &pb.Content{Size: o.size()}}
	if o.root.Size > 0 {
		a.Content.Root = append([]byte(nil), o.root.Address[:]...)
		a.Content.Height, a.Content.Stored = uint32(o.root.Height), o.root.Stored
	} else {
		a.Content.Inline = append([]byte(nil), o.inline...)
	}
	return a
}

func (o *object) size() uint64 { return max(uint64(len(o.inline)), o.root.Size) }

// Version implements content.Remote.
func (c *Cluster) Version(ctx context.Context, id ids.Object) (*pb.Attr, error) {
	after, err := c.enter(ctx, Version)
	if err != nil {
		return nil, err
	}
	return c.Attr(id), after
}

// Attr returns an object's attributes with content, apart from all faults.
func (c *Cluster) Attr(id ids.Object) *pb.Attr {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.attr(id, c.getLocked(id))
}

// Contents returns an object's bytes, apart from all faults.
func (c *Cluster) Contents(id ids.Object) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.getLocked(id)
	out := make([]byte, o.size())
	if err := c.readLocked(o, out, 0); err != nil {
		panic(err) // the cluster itself is broken
	}
	return out
}

// readLocked fills p from an object's bytes; mu is held.
func (c *Cluster) readLocked(o *object, p []byte, off uint64) error {
	if o.root.Size == 0 {
		copy(p, o.inline[min(off, uint64(len(o.inline))):])
		return nil
	}
	return c.readRoot(o.root, p, off)
}

func (c *Cluster) readRoot(root chunk.Root, p []byte, off uint64) error {
	const op fault.Op = "contenttest.readRoot"
	var missing error
	err := chunk.Lookup(nodes{c}, root, off, uint64(len(p)), func(e chunk.Extent) bool {
		if e.IsHole() {
			return true
		}
		data, ok := c.chunks[e.Chunk]
		if !ok || len(data) != int(e.ChunkSize) {
			missing = fault.E(fault.Missing, op, e.Chunk.String(), "")
			return false
		}
		copy(p[e.Offset-off:], data[e.ChunkOffset:][:e.Length])
		return true
	})
	if err == nil {
		err = missing
	}
	return err
}
