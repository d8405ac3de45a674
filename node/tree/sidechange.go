package tree

import (
	"encoding/binary"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
)

// SideContent lists the manifest nodes and the chunks of the files that changes give
// other content.
func SideContent(changes []SideChange, n Nodes) (out []chunk.Address, err error) {
	for i := range changes {
		c := &changes[i]
		if c.Key[0] != keyInode || c.Value == nil {
			continue
		}
		is, err := DecodeInode(objectOf(c.Key), c.Value)
		if err != nil {
			return nil, err
		}
		if is.Root.IsZero() {
			continue
		}
		if c.Before != nil {
			if was, err := DecodeInode(is.Object, c.Before); err != nil || was.Root == is.Root {
				continue
			}
		}
		if err := chunk.Walk(n, is.root(), func(a chunk.Address, _ bool) bool {
			out = append(out, a)
			return true
		}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Versions of the encoding of a change: since serialVersion it may say by which
// operations it came and was merged.
const (
	firstVersion  = 1
	serialVersion = 2
)

// AppendSideChange encodes what is kept of a change beside its key.
func AppendSideChange(dst []byte, c *SideChange) []byte {
	var f byte
	if c.Before != nil {
		f |= 1
	}
	if c.Value != nil {
		f |= 2
	}
	if c.Serial == 0 {
		dst = append(dst, firstVersion, f)
	} else {
		dst = binary.AppendUvarint(append(dst, serialVersion, f), uint64(c.Serial))
		dst = binary.AppendUvarint(dst, uint64(c.Merged))
	}
	if c.Before != nil {
		dst = append(binary.AppendUvarint(dst, uint64(len(c.Before))), c.Before...)
	}
	return append(dst, c.Value...)
}

// DecodeSideChange reads what AppendSideChange wrote; the parts share memory with
// both.
func DecodeSideChange(key, data []byte) (SideChange, error) {
	const op fault.Op = "tree.DecodeSideChange"
	r := reader{data: data}
	v := r.byte()
	if v < firstVersion || v > serialVersion {
		return SideChange{}, newer(op, "", v, serialVersion)
	}
	f := r.byte()
	c := SideChange{Key: key}
	if v >= serialVersion {
		c.Serial, c.Merged = ids.Serial(r.uvarint()), ids.Serial(r.uvarint())
	}
	if f&1 != 0 {
		c.Before = r.bytes()
	}
	if f&2 != 0 {
		c.Value = r.take(len(r.data))
		if c.Value == nil {
			c.Value = []byte{}
		}
	}
	if !r.done() {
		return SideChange{}, fault.E(fault.Corrupt, op, "", "a change of a side log is malformed")
	}
	return c, nil
}
