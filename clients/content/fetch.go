package content

import (
	"context"
	"encoding/binary"
	"slices"

	"cartwheel.dev/clients/trace"
	"cartwheel.dev/geo-config/fault"
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

// reader reads ranges of one version for one call.
type reader struct {
	handle *Handle
	ctx    context.Context
	v      *version
}

func (r *reader) engine() *Engine { return r.handle.file.engine }

// read fills p from off; the range lies inside the version.
func (r *reader) read(p []byte, off uint64) error {
	if r.v.size <= smallFile {
		return r.blocks(p, off, r.v.size)
	}
	sequential, first := r.handle.ahead.note(r, off, uint64(len(p)))
	return r.readNoted(p, off, sequential, first)
}

// readNoted is read behind ahead.note.
func (r *reader) readNoted(p []byte, off uint64, sequential, first bool) error {
	e := r.engine()
	if e.opt.NoRangeMap {
		if sequential {
			return r.blocks(p, off, blockSize)
		}
		return r.direct(p, off)
	}
	for len(p) > 0 {
		n := min(uint64(len(p)), windowSize-off%windowSize)
		var extents []chunk.Extent
		if sequential || r.handle.file.touch(off/windowSize) {
			// The first read of a stream does not wait for the map, which is
			// on its way for those that follow.
			extents = r.window(off, n, !first)
		}
		var err error
		if extents == nil {
			err = r.direct(p[:n], off)
		} else {
			err = r.mapped(p[:n], off, extents, sequential)
		}
		if err != nil {
			return err
		}
		p, off = p[n:], off+n
	}
	return nil
}

// direct asks for exactly the range, up to a block at a time: one round trip
// for each.
func (r *reader) direct(p []byte, off uint64) error {
	for len(p) > 0 {
		n := min(len(p), blockSize)
		q := Query{Root: r.v.root, Offset: off, Length: uint64(n), Data: true}
		a, err := r.engine().remote.Range(r.ctx, r.handle.file.object, q)
		if err == nil {
			err = fill(p[:n], a.Data)
		}
		if err != nil {
			return err
		}
		p, off = p[n:], off+uint64(n)
	}
	return nil
}

func fill(p, data []byte) error {
	const op fault.Op = "content.fill"
	if len(data) < len(p) {
		return fault.Errorf(fault.Corrupt, op, "", "%d bytes were asked for, %d came", len(p), len(data))
	}
	copy(p, data)
	return nil
}

// blocks reads through the cache in blocks of the version's bytes.
func (r *reader) blocks(p []byte, off, size uint64) error {
	e := r.engine()
	for len(p) > 0 {
		index := off / size
		n := min(uint64(len(p)), (index+1)*size-off)
		k := key{r.v.root.Address, index}
		if own := r.reserveBlock(k, size, false); own != nil {
			r.fetchBlock(r.ctx, own, size)
		}
		data, ok := r.await(e.cache.get(k))
		if ok {
			if err := fill(p[:n], data[off-index*size:]); err != nil {
				return err
			}
		} else if err := r.direct(p[:n], off); err != nil {
			return err
		}
		p, off = p[n:], off+n
	}
	return nil
}

// whole returns a small version's bytes, which the cache keeps in one block; if
// they are not here, nothing, or with fetch what it asks for.
func (r *reader) whole(fetch bool) ([]byte, bool) {
	e, k := r.engine(), key{r.v.root.Address, 0}
	if fetch {
		if own := r.reserveBlock(k, r.v.size, false); own != nil {
			r.fetchBlock(r.ctx, own, r.v.size)
		}
		return r.await(e.cache.get(k))
	}
	if s := e.cache.get(k); s != nil && isClosed(s.entry.done) {
		return s.data, s.entry.err == nil
	}
	return e.fromDisk(k)
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
	return r.engine().cache.reserve(false, optional, func(int) int64 { return length }, k)
}

// fetchBlock fetches a reserved block.
func (r *reader) fetchBlock(ctx context.Context, own *entry, size uint64) {
	e := r.engine()
	ctx = trace.With(ctx, own.work)
	k := own.keys[0]
	off := k.index * size
	length := min(size, r.v.size-off)
	if data, ok := e.fromDisk(k); ok && uint64(len(data)) == length {
		e.cache.settle(own, [][]byte{data}, int64(len(data)), nil)
		return
	}
	a, err := e.remote.Range(ctx, r.handle.file.object, Query{Root: r.v.root, Offset: off, Length: length, Data: true})
	if err == nil && uint64(len(a.Data)) != length {
		const op fault.Op = "content.fetchBlock"
		err = fault.Errorf(fault.Corrupt, op, "", "%d bytes were asked for, %d came", length, len(a.Data))
	}
	e.cache.settle(own, [][]byte{a.Data}, int64(len(a.Data)), err)
	if err == nil {
		e.toDisk(k, a.Data)
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

// mapped reads a range by its extents, a block at a time.
func (r *reader) mapped(p []byte, off uint64, extents []chunk.Extent, sequential bool) error {
	for len(p) > 0 {
		n := min(len(p), blockSize)
		if err := r.mappedBlock(p[:n], off, extents, sequential); err != nil {
			return err
		}
		p, off = p[n:], off+uint64(n)
	}
	return nil
}

// mappedBlock takes from the cache, from the disk cache, and what is in neither
// in one request: whole chunks, to be kept, for sequential reads, exactly the
// bytes else.
func (r *reader) mappedBlock(p []byte, off uint64, extents []chunk.Extent, sequential bool) error {
	e := r.engine()
	end := off + uint64(len(p))
	if sequential {
		r.fetchChunks(r.ctx, extents, off, end, false)
	}
	var parts []Part
	var into [][]byte
	for i := extentAt(extents, off); i < len(extents) && extents[i].Offset < end; i++ {
		x := extents[i].Clip(off, end)
		dst := p[x.Offset-off : x.End()-off]
		if x.IsHole() {
			clear(dst)
			continue
		}
		k := key{x.Chunk, wholeChunk}
		data, ok := r.await(e.cache.get(k))
		if !ok && e.opt.Disk != nil {
			data, ok = e.fromDisk(k)
		}
		if ok && len(data) == int(x.ChunkSize) {
			copy(dst, data[x.ChunkOffset:])
			continue
		}
		parts = append(parts, Part{Address: x.Chunk, Offset: x.ChunkOffset, Length: uint32(x.Length), Size: x.ChunkSize, Root: r.v.root, At: x.Offset})
		into = append(into, dst)
	}
	if len(parts) == 0 {
		return nil
	}
	data, err := e.getChunks(r.ctx, r.handle.file.object, parts)
	for i := range into {
		if err != nil {
			break
		}
		err = fill(into[i], data)
		data = data[min(len(into[i]), len(data)):]
	}
	return err
}

// fetchChunks fetches the whole chunks of a range that are not here and not on
// their way, in one request.
func (r *reader) fetchChunks(ctx context.Context, extents []chunk.Extent, off, end uint64, ahead bool) {
	e := r.engine()
	var keys []key
	var whole []Part
	for i := extentAt(extents, off); i < len(extents) && extents[i].Offset < end; i++ {
		if x := &extents[i]; !x.IsHole() {
			keys = append(keys, key{x.Chunk, wholeChunk})
			whole = append(whole, Part{Address: x.Chunk, Length: x.ChunkSize, Size: x.ChunkSize, Root: r.v.root, At: x.Offset})
		}
	}
	own := e.cache.reserve(false, ahead, func(i int) int64 { return int64(whole[i].Size) }, keys...)
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
	} else if !e.start(get) {
		e.cache.settle(own, nil, 0, context.Canceled)
	}
}

// getWhole brings the chunks of a reserved entry.
func (r *reader) getWhole(ctx context.Context, own *entry, whole map[key]Part) {
	const op fault.Op = "content.getWhole"
	e := r.engine()
	ctx = trace.With(ctx, own.work)
	data := make([][]byte, len(own.keys))
	var parts []Part
	var cost int64
	for i, k := range own.keys {
		cost += int64(whole[k].Size)
		if d, ok := e.fromDisk(k); ok && len(d) == int(whole[k].Size) {
			data[i] = d
			continue
		}
		parts = append(parts, whole[k])
	}
	var body []byte
	var err error
	if len(parts) > 0 {
		body, err = e.getChunks(ctx, r.handle.file.object, parts)
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
		e.toDisk(k, data[i])
	}
	e.cache.settle(own, data, cost, err)
}

// fromDisk and toDisk speak to the disk cache, where there is one. A whole chunk
// that is not what its address says is forgotten.
func (e *Engine) fromDisk(k key) ([]byte, bool) {
	if e.opt.Disk == nil {
		return nil, false
	}
	data, ok := e.opt.Disk.Get(k.bytes())
	if ok && k.index == wholeChunk && chunk.Verify(k.address, data) != nil {
		e.opt.Log.Warn("a chunk of the disk cache is damaged and forgotten", "chunk", k.address.String())
		e.opt.Disk.Forget(k.bytes())
		return nil, false
	}
	return data, ok
}

func (e *Engine) toDisk(k key, data []byte) {
	if e.opt.Disk != nil {
		e.opt.Disk.Put(k.bytes(), data)
	}
}

// bytes is the key as the disk cache knows it.
func (k key) bytes() []byte {
	out := make([]byte, 0, chunk.AddressSize+8)
	return binary.BigEndian.AppendUint64(append(out, k.address[:]...), k.index)
}
