package chunk

import (
	"encoding/binary"

	"cartwheel.dev/geo-config/fault"
)

// The kinds of manifest nodes: the first byte of their encoding. The second
// is the version of the format.
const (
	leafKind    = 'L'
	innerKind   = 'I'
	nodeVersion = 1
)

// The fan-out of manifests. A node is split above MaxFan and joined to a
// neighbour below a quarter of it; 256 extents of whole chunks make a leaf of 9 KiB, so
// one byte of a terabyte rewrites four nodes, 36 KiB.
const (
	MaxFan    = 256
	maxHeight = 16
)

// Tags of extents in a leaf.
const (
	tagHole  = 0
	tagWhole = 1
	tagPart  = 2
)

// Root names one version of a file's bytes. The zero Root is the empty file.
type Root struct {
	Address Address
	Height  uint8  // levels above the leaves; 0: the root is a leaf
	Size    uint64 // bytes of the file
	Stored  uint64 // of them not in holes
}

// NewNode is a manifest node that did not exist before.
type NewNode struct {
	Address Address
	Data    []byte
}

// Reader finds manifest nodes by address. What it returns must not change.
type Reader interface {
	Node(address Address) ([]byte, error)
}

// ref is one child of an inner node.
type ref struct {
	address Address
	length  uint64 // bytes of the file below it
	stored  uint64
}

// AppendExtents encodes contiguous extents as leaves do. Only lengths are
// written: where the first begins, the decoder is told.
func AppendExtents(dst []byte, extents []Extent) []byte {
	dst = append(dst, leafKind, nodeVersion)
	dst = binary.AppendUvarint(dst, uint64(len(extents)))
	for i := range extents {
		e := &extents[i]
		switch {
		case e.IsHole():
			dst = binary.AppendUvarint(append(dst, tagHole), e.Length)
		case e.ChunkOffset == 0 && e.Length == uint64(e.ChunkSize):
			dst = binary.AppendUvarint(append(dst, tagWhole), e.Length)
			dst = append(dst, e.Chunk[:]...)
		default:
			dst = binary.AppendUvarint(append(dst, tagPart), e.Length)
			dst = append(dst, e.Chunk[:]...)
			dst = binary.AppendUvarint(dst, uint64(e.ChunkOffset))
			dst = binary.AppendUvarint(dst, uint64(e.ChunkSize))
		}
	}
	return dst
}

// DecodeExtents reads what AppendExtents wrote, for extents that begin at
// offset, and appends them to dst. Every extent returned is valid.
func DecodeExtents(dst []Extent, data []byte, offset uint64) ([]Extent, error) {
	const op fault.Op = "chunk.DecodeExtents"
	d := decoder{data: data}
	count := d.header(leafKind, 3)
	for range count {
		e := d.extent(offset)
		if d.bad {
			break
		}
		offset = e.End()
		dst = append(dst, e)
	}
	if !d.done() {
		return dst, fault.E(fault.Corrupt, op, "", "extents are malformed")
	}
	return dst, nil
}

// appendInner encodes an inner node.
func appendInner(dst []byte, kids []ref) []byte {
	dst = append(dst, innerKind, nodeVersion)
	dst = binary.AppendUvarint(dst, uint64(len(kids)))
	for i := range kids {
		dst = append(dst, kids[i].address[:]...)
		dst = binary.AppendUvarint(dst, kids[i].length)
		dst = binary.AppendUvarint(dst, kids[i].stored)
	}
	return dst
}

// decodeInner reads what appendInner wrote.
func decodeInner(dst []ref, data []byte) ([]ref, error) {
	const op fault.Op = "chunk.decodeInner"
	d := decoder{data: data}
	count := d.header(innerKind, AddressSize+2)
	var total uint64
	for range count {
		k := d.ref(total)
		if d.bad {
			break
		}
		total += k.length
		dst = append(dst, k)
	}
	if !d.done() || count == 0 {
		return dst, fault.E(fault.Corrupt, op, "", "an inner node is malformed")
	}
	return dst, nil
}

// Refs calls fn with every address that a manifest node names: child nodes of
// an inner node, chunks of a leaf. It needs no other node.
func Refs(node []byte, fn func(a Address, isNode bool)) error {
	const op fault.Op = "chunk.Refs"
	if len(node) > 0 && node[0] == innerKind {
		kids, err := decodeInner(nil, node)
		for i := range kids {
			fn(kids[i].address, true)
		}
		return fault.Wrap(fault.Corrupt, op, "", err)
	}
	extents, err := DecodeExtents(nil, node, 0)
	for i := range extents {
		if !extents[i].IsHole() {
			fn(extents[i].Chunk, false)
		}
	}
	return fault.Wrap(fault.Corrupt, op, "", err)
}

// decoder reads a node; after the first thing that does not fit it is bad and
// returns zeros.
type decoder struct {
	data []byte
	bad  bool
}

// extent reads one extent of a leaf; where it is not valid the decoder is bad.
func (d *decoder) extent(offset uint64) Extent {
	e := Extent{Offset: offset}
	tag := d.byte()
	e.Length = d.uvarint()
	if tag != tagHole {
		e.Chunk = d.address()
	}
	switch tag {
	case tagHole:
	case tagWhole:
		e.ChunkSize = uint32(min(e.Length, MaxSize+1))
	case tagPart:
		e.ChunkOffset, e.ChunkSize = d.small(), d.small()
	default:
		d.bad = true
	}
	if (tag != tagHole && e.IsHole()) || !e.valid() {
		d.bad = true
	}
	return e
}

// ref reads one child of an inner node, which total bytes of the file precede.
func (d *decoder) ref(total uint64) ref {
	k := ref{address: d.address(), length: d.uvarint(), stored: d.uvarint()}
	if k.address.IsZero() || k.length == 0 || k.stored > k.length || k.length > MaxFileSize-total {
		d.bad = true
	}
	return k
}

func (d *decoder) byte() byte {
	if len(d.data) == 0 {
		d.bad = true
		return 0
	}
	b := d.data[0]
	d.data = d.data[1:]
	return b
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.data)
	if n <= 0 || (n > 1 && d.data[n-1] == 0) { // the shortest form only
		d.bad = true
		return 0
	}
	d.data = d.data[n:]
	return v
}

func (d *decoder) small() uint32 {
	v := d.uvarint()
	if v > MaxSize {
		d.bad = true
		return 0
	}
	return uint32(v)
}

func (d *decoder) address() Address {
	if len(d.data) < AddressSize {
		d.bad = true
		return Address{}
	}
	a := Address(d.data)
	d.data = d.data[AddressSize:]
	return a
}

// header reads kind, version and count; a count that the rest cannot hold, at
// least so many bytes each, is bad, so that nobody allocates for it.
func (d *decoder) header(kind byte, each int) int {
	if d.byte() != kind || d.byte() != nodeVersion {
		d.bad = true
	}
	count := d.uvarint()
	if d.bad || count > uint64(len(d.data)/each+1) {
		d.bad = true
		return 0
	}
	return int(count)
}

func (d *decoder) done() bool { return !d.bad && len(d.data) == 0 }
