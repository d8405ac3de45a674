package tree

import "cartwheel.dev/node/chunk"

// RefAddress returns the address that a row of reference counts is about, whether the row is
// one, and whether current files use the address. What only older versions use must be where
// the slice is, too: they can be read as long as the row is there.
func RefAddress(key, value []byte) (a chunk.Address, current, is bool) {
	if len(key) != 1+chunk.AddressSize || key[0] != keyRefs {
		return chunk.Address{}, false, false
	}
	refs, err := DecodeRefs(value)
	return chunk.Address(key[1:]), refs.Count > 0, err == nil
}
