package chunk

// Lengths returns how many bytes of a file lie below a manifest node, and how
// many of them are not in holes, for whoever knows a root's address alone.
func Lengths(node []byte) (size, stored uint64, err error) {
	if len(node) > 0 && node[0] == leafKind {
		extents, err := DecodeExtents(make([]Extent, 0, MaxFan), node, 0)
		for i := range extents {
			size += extents[i].Length
			if !extents[i].IsHole() {
				stored += extents[i].Length
			}
		}
		return size, stored, err
	}
	kids, err := decodeInner(make([]ref, 0, MaxFan), node)
	for i := range kids {
		size += kids[i].length
		stored += kids[i].stored
	}
	return size, stored, err
}
