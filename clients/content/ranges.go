package content

import (
	"context"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
)

// smallFile is up to what size a file is read whole at the first miss.
const smallFile = 256 << 10

// read fills p from off; the range lies inside the version.
func (r *reader) read(p []byte, off uint64) error {
	if r.v.size <= smallFile && !r.shared {
		return r.blocks(p, off, r.v.size)
	}
	sequential, first := r.note(off, uint64(len(p)))
	return r.readNoted(p, off, sequential, first)
}

// readNoted is read behind note.
func (r *reader) readNoted(p []byte, off uint64, sequential, first bool) error {
	c := r.core
	if c.opt.NoRangeMap {
		if sequential {
			return r.blocks(p, off, blockSize)
		}
		return r.direct(p, off)
	}
	for len(p) > 0 {
		n := min(uint64(len(p)), windowSize-off%windowSize)
		var extents []chunk.Extent
		if sequential || r.touches.again(off/windowSize) {
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
		a, err := r.core.remote.Range(r.ctx, r.object, q)
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
	c := r.core
	for len(p) > 0 {
		index := off / size
		n := min(uint64(len(p)), (index+1)*size-off)
		k := key{r.v.root.Address, index}
		if own := r.reserveBlock(k, size, false); own != nil {
			r.fetchBlock(r.ctx, own, size)
		}
		data, ok := r.await(c.cache.get(k))
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
	c, k := r.core, key{r.v.root.Address, 0}
	if fetch {
		if own := r.reserveBlock(k, r.v.size, false); own != nil {
			r.fetchBlock(r.ctx, own, r.v.size)
		}
		return r.await(c.cache.get(k))
	}
	if s := c.cache.get(k); s != nil && isClosed(s.entry.done) {
		return s.data, s.entry.err == nil
	}
	return c.fromDisk(k)
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
	c := r.core
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
		data, ok := r.await(c.cache.get(k))
		if !ok && c.opt.Disk != nil {
			data, ok = c.fromDisk(k)
		}
		if ok && len(data) == int(x.ChunkSize) {
			copy(dst, data[x.ChunkOffset:])
			continue
		}
		parts = append(parts, Part{Address: x.Chunk, Offset: x.ChunkOffset, Length: uint32(x.Length), Size: x.ChunkSize, Root: r.v.root, At: x.Offset, Shared: r.shared})
		into = append(into, dst)
	}
	if len(parts) == 0 {
		return nil
	}
	data, err := c.getChunks(r.ctx, r.object, parts)
	for i := range into {
		if err != nil {
			break
		}
		err = fill(into[i], data)
		data = data[min(len(into[i]), len(data)):]
	}
	return err
}

// maxPieces bounds the pieces that a read is answered by; of more, smaller ones
// the bytes are copied together.
const maxPieces = 256

// pieces returns a range as pieces of cached chunks, which it fetches where need
// be, or nil where it is not that simple.
func (r *reader) pieces(off, end uint64, first bool) [][]byte {
	if off/windowSize != (end-1)/windowSize || end-off > blockSize {
		return nil
	}
	extents := r.window(off, end-off, !first)
	if extents == nil {
		return nil
	}
	r.fetchChunks(r.ctx, extents, off, end, false)
	var out [][]byte
	for i := extentAt(extents, off); i < len(extents) && extents[i].Offset < end; i++ {
		x := extents[i].Clip(off, end)
		if x.IsHole() || len(out) == maxPieces {
			return nil
		}
		data, ok := r.await(r.core.cache.get(key{x.Chunk, wholeChunk}))
		if !ok || len(data) != int(x.ChunkSize) {
			return nil
		}
		to := uint64(x.ChunkOffset) + x.Length
		out = append(out, data[x.ChunkOffset:to:to])
	}
	return out
}

// readVersion reads a range that lies inside one version.
func (s *source) readVersion(ctx context.Context, v *version, p []byte, off uint64) error {
	const op fault.Op = "content.readVersion"
	if v.withheld {
		return fault.E(fault.Permission, op, s.object.String(), "the file may be written, but not read")
	}
	if v.root.Address.IsZero() {
		copy(p, v.inline[off:])
		return nil
	}
	r := reader{source: s, ctx: ctx, v: v}
	return r.read(p, off)
}
