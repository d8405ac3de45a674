package tree

import "cartwheel.dev/node/chunk"

// RefAddress returns the address that a row of reference counts is about, and
// whether the row is one and the count is not zero, for whoever copies a slice
// and must have what it names.
func RefAddress(key, value []byte) (chunk.Address, bool) {
	if len(key) != 1+chunk.AddressSize || key[0] != keyRefs {
		return chunk.Address{}, false
	}
	refs, err := DecodeRefs(value)
	return chunk.Address(key[1:]), err == nil && refs.Count > 0
}
