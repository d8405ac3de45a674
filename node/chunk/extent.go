package chunk

import "cartwheel.dev/geo-config/fault"

// MaxFileSize is the largest size of a file, as the kernels count it.
const MaxFileSize = 1<<63 - 1

// Extent is one run of a file's bytes: [Offset, Offset+Length) of the file is
// [ChunkOffset, ChunkOffset+Length) of the chunk, or zeros where Chunk is the
// zero Address (a hole). An extent of a chunk lies inside it: ChunkOffset +
// Length <= ChunkSize <= MaxSize.
type Extent struct {
	Offset, Length uint64
	Chunk          Address
	ChunkOffset    uint32
	ChunkSize      uint32
}

// Hole returns an extent of zeros that are not stored.
func Hole(offset, length uint64) Extent { return Extent{Offset: offset, Length: length} }

// Whole returns the extent that is one whole chunk.
func Whole(offset uint64, a Address, size uint32) Extent {
	return Extent{Offset: offset, Length: uint64(size), Chunk: a, ChunkSize: size}
}

// IsHole reports whether the extent is zeros that are not stored.
func (e Extent) IsHole() bool { return e.Chunk.IsZero() }

// End is the offset of the first byte behind the extent.
func (e Extent) End() uint64 { return e.Offset + e.Length }

// Clip returns the part of e in [from, to); its Length is 0 where there is none.
func (e Extent) Clip(from, to uint64) Extent {
	if e.Offset < from {
		cut := min(from-e.Offset, e.Length)
		e.Offset += cut
		e.Length -= cut
		if !e.IsHole() {
			e.ChunkOffset += uint32(cut)
		}
	}
	if e.End() > to {
		e.Length -= min(e.End()-to, e.Length)
	}
	return e
}

// Validate answers Invalid where the extent's numbers cannot be.
func (e Extent) Validate() error {
	const op fault.Op = "chunk.Validate"
	switch {
	case e.Length == 0:
		return fault.E(fault.Invalid, op, "", "an extent is empty")
	case e.Offset > MaxFileSize || e.Length > MaxFileSize-e.Offset:
		return fault.E(fault.TooLarge, op, "", "an extent ends behind the largest file")
	case e.IsHole():
		if e.ChunkOffset != 0 || e.ChunkSize != 0 {
			return fault.E(fault.Invalid, op, "", "a hole has no place in a chunk")
		}
	case e.ChunkSize > MaxSize:
		return fault.Errorf(fault.TooLarge, op, "", "a chunk has at most %d bytes, not %d", MaxSize, e.ChunkSize)
	case uint64(e.ChunkOffset)+e.Length > uint64(e.ChunkSize):
		return fault.E(fault.Invalid, op, "", "an extent leaves its chunk")
	}
	return nil
}

// valid is Validate for decoders, which need no reason.
func (e *Extent) valid() bool {
	if e.Length == 0 || e.Offset > MaxFileSize || e.Length > MaxFileSize-e.Offset {
		return false
	}
	if e.IsHole() {
		return e.ChunkOffset == 0 && e.ChunkSize == 0
	}
	return e.ChunkSize <= MaxSize && uint64(e.ChunkOffset)+e.Length <= uint64(e.ChunkSize)
}

// joins reports whether b continues a, so that one extent can stand for both.
func (e Extent) joins(b Extent) bool {
	if e.End() != b.Offset || e.Chunk != b.Chunk {
		return false
	}
	return e.IsHole() || (e.ChunkSize == b.ChunkSize && uint64(e.ChunkOffset)+e.Length == uint64(b.ChunkOffset))
}

// appendExtent adds e to a run, joining it to the last one where it continues it.
func appendExtent(run []Extent, e Extent) []Extent {
	if e.Length == 0 {
		return run
	}
	if n := len(run); n > 0 && run[n-1].joins(e) {
		run[n-1].Length += e.Length
		return run
	}
	return append(run, e)
}
