package content

import (
	"context"
	"slices"
	"sync/atomic"

	"cartwheel.dev/clients/trace"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
)

const (
	// windowSize is the part of a file that one window of its range map covers.
	windowSize = 64 << 20
	// blockSize is the unit of read-ahead, and of what is cached where there is
	// no range map.
	blockSize = 1 << 20
	// windowAnswers bounds the answers that a window is gathered from.
	windowAnswers = 8
)

// source is an object whose versions are read, and what is recognised of the
// reads.
type source struct {
	core    *core
	object  ids.Object
	ahead   ahead
	touches *touches // the object's
	// shared says that chunks are read whole, and asked for at this client's site.
	shared bool
	// scattered says that all chunks are on their way in another order, so that
	// nothing is to be fetched ahead.
	scattered atomic.Bool
}

// reader reads ranges of one version for one call.
type reader struct {
	*source
	ctx context.Context
	v   *version
}

// await returns a span's bytes when its request is done; false where it failed
// or there is none, and then the caller asks by itself.
func (r *reader) await(s *span) ([]byte, bool) {
	if s == nil {
		return nil, false
	}
	if isClosed(s.entry.done) {
		return s.data, s.entry.err == nil
	}
	o := trace.From(r.ctx)
	mark, claimed := o.Begin(), o.Claim(s.entry.work)
	defer func() { o.Waited(mark, s.entry.work, claimed) }()
	select {
	case <-s.entry.done:
		return s.data, s.entry.err == nil
	case <-r.ctx.Done():
		return nil, false
	}
}

func (r *reader) reserveBlock(k key, size uint64, optional bool) *entry {
	length := int64(min(size, r.v.size-k.index*size))
	return r.core.cache.reserve(false, optional, func(int) int64 { return length }, k)
}

// fetchBlock fetches a reserved block.
func (r *reader) fetchBlock(ctx context.Context, own *entry, size uint64) {
	const op fault.Op = "content.fetchBlock"
	c := r.core
	ctx = trace.With(ctx, own.work)
	k := own.keys[0]
	off := k.index * size
	length := min(size, r.v.size-off)
	if data, ok := c.fromDisk(k); ok && uint64(len(data)) == length {
		c.cache.settle(own, [][]byte{data}, int64(len(data)), nil)
		return
	}
	a, err := c.remote.Range(ctx, r.object, Query{Root: r.v.root, Offset: off, Length: length, Data: true})
	if err == nil && uint64(len(a.Data)) != length {
		err = fault.Errorf(fault.Corrupt, op, "", "%d bytes were asked for, %d came", length, len(a.Data))
	}
	c.cache.settle(own, [][]byte{a.Data}, int64(len(a.Data)), err)
	if err == nil {
		c.toDisk(k, a.Data)
	}
}

// extentAt returns the index of the extent that holds off.
func extentAt(extents []chunk.Extent, off uint64) int {
	i, _ := slices.BinarySearchFunc(extents, off, func(x chunk.Extent, off uint64) int {
		if x.End() <= off {
			return -1
		}
		return 1
	})
	return i
}

// fetchChunks fetches the whole chunks of a range that are not here and not on
// their way, in one request.
func (r *reader) fetchChunks(ctx context.Context, extents []chunk.Extent, off, end uint64, ahead bool) {
	c := r.core
	var keys []key
	var whole []Part
	for i := extentAt(extents, off); i < len(extents) && extents[i].Offset < end; i++ {
		if x := &extents[i]; !x.IsHole() {
			keys = append(keys, key{x.Chunk, wholeChunk})
			whole = append(whole, Part{Address: x.Chunk, Length: x.ChunkSize, Size: x.ChunkSize, Root: r.v.root, At: x.Offset, Shared: r.shared})
		}
	}
	own := c.cache.reserve(false, ahead, func(i int) int64 { return int64(whole[i].Size) }, keys...)
	if own == nil {
		return
	}
	parts := map[key]Part{}
	for i, k := range keys {
		parts[k] = whole[i]
	}
	get := func() { r.getWhole(ctx, own, parts) }
	if !ahead {
		get()
	} else if !c.start(get) {
		c.cache.settle(own, nil, 0, context.Canceled)
	}
}

// getWhole brings the chunks of a reserved entry.
func (r *reader) getWhole(ctx context.Context, own *entry, whole map[key]Part) {
	const op fault.Op = "content.getWhole"
	c := r.core
	ctx = trace.With(ctx, own.work)
	data := make([][]byte, len(own.keys))
	var parts []Part
	var cost int64
	for i, k := range own.keys {
		cost += int64(whole[k].Size)
		if d, ok := c.fromDisk(k); ok && len(d) == int(whole[k].Size) {
			data[i] = d
			continue
		}
		parts = append(parts, whole[k])
	}
	var body []byte
	var err error
	if len(parts) > 0 {
		body, err = c.getChunks(ctx, r.object, parts)
	}
	for i, k := range own.keys {
		if data[i] != nil || err != nil {
			continue
		}
		n := int(whole[k].Size)
		if len(body) < n {
			err = fault.E(fault.Corrupt, op, "", "fewer bytes came than were asked for")
			break
		}
		data[i], body = body[:n:n], body[n:]
		c.toDisk(k, data[i])
	}
	c.cache.settle(own, data, cost, err)
}
