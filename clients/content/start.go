package content

import (
	"cartwheel.dev/clients/trace"
	"cartwheel.dev/geo-config/ids"
)

// Starter is implemented by a Remote that can ask without anybody waiting.
type Starter interface {
	// StartGet asks for a part on behalf of an operation, which may be nil. It
	// waits for nobody. False: nothing was asked. Otherwise then is called
	// exactly once, as mount.ReadStarter says, with all of the part or false.
	StartGet(object ids.Object, part Part, o *trace.Operation, then func(data []byte, ok bool)) bool
}

// StartRead begins ReadAt for the common read of a large file at random: of
// bytes of one chunk that the range map knows and that are not here. It waits
// for nobody. False: this is another kind of read, and nothing began. Otherwise
// then is called exactly once, as mount.ReadStarter says.
func (h *Handle) StartRead(o *trace.Operation, size int, off uint64, then func(data []byte, ok bool)) bool {
	f := h.file
	remote, ok := f.core.remote.(Starter)
	if !ok || f.core.opt.NoRangeMap || h.source.shared || !f.mu.TryLock() {
		return false
	}
	base, clean := f.base, f.knownLocked() && len(f.layers) == 0
	f.mu.Unlock()
	if !clean || base.root.Address.IsZero() || base.size <= smallFile || size <= 0 || off >= base.size {
		return false
	}
	n := min(uint64(size), base.size-off)
	part, ok := f.core.lone(base, off, n)
	return ok && h.source.ahead.random(base.root.Address, off, n) && remote.StartGet(f.object, part, o, then)
}

// lone returns the part of the one chunk that holds a range; false where that
// is not known, or not so, or where the chunk or the range may be here.
func (c *core) lone(v *version, off, n uint64) (Part, bool) {
	s := c.cache.get(key{v.root.Address, off/windowSize | windowBit})
	if s == nil || !isClosed(s.entry.done) || s.entry.err != nil {
		return Part{}, false
	}
	i := extentAt(s.entry.extents, off)
	if i == len(s.entry.extents) {
		return Part{}, false
	}
	x := s.entry.extents[i]
	if x.IsHole() || x.Offset > off || x.End() < off+n {
		return Part{}, false
	}
	k := key{x.Chunk, wholeChunk}
	if c.cache.get(k) != nil || c.opt.Disk != nil && c.opt.Disk.Has(k.bytes()) {
		return Part{}, false
	}
	x = x.Clip(off, off+n)
	return Part{Address: x.Chunk, Offset: x.ChunkOffset, Length: uint32(x.Length), Size: x.ChunkSize, Root: v.root, At: x.Offset}, true
}
