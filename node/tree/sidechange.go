package tree

import (
	"encoding/binary"

	"cartwheel.dev/geo-config/fault"
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

// sideVersion is that of the encoding of a change.
const sideVersion = 1

// AppendSideChange encodes what is kept of a change beside its key.
func AppendSideChange(dst []byte, c *SideChange) []byte {
	var f byte
	if c.Before != nil {
		f |= 1
	}
	if c.Value != nil {
		f |= 2
	}
	dst = append(dst, sideVersion, f)
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
	if v := r.byte(); v != sideVersion {
		return SideChange{}, newer(op, "", v, sideVersion)
	}
	f := r.byte()
	c := SideChange{Key: key}
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
