package content

import (
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
)

// version is one version of a file's bytes at the active. It is immutable.
type version struct {
	serial uint64
	size   uint64
	inline []byte // all of it, where root is zero
	root   chunk.Root
	// withheld: this client may not read the bytes, which are not in inline.
	withheld bool
}

func versionOf(attr *pb.Attr) (*version, bool) {
	c := attr.GetContent()
	if c == nil && attr.GetSize() > 0 {
		return nil, false
	}
	v := &version{serial: attr.GetVersion(), size: attr.GetSize(), inline: c.GetInline(), withheld: c.GetWithheld()}
	if len(c.GetRoot()) == chunk.AddressSize {
		v.root = chunk.Root{Address: chunk.Address(c.GetRoot()), Height: uint8(c.GetHeight()), Size: attr.GetSize(), Stored: c.GetStored()}
	} else if !v.withheld && uint64(len(v.inline)) != attr.GetSize() {
		return nil, false
	}
	return v, true
}
