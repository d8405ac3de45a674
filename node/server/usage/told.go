package usage

import (
	"encoding/json"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/tree"
)

// Told is one page of what holds a slice's space, as whoever asked reads it.
type Told struct {
	// Objects and Stored are of the whole slice, Stored in bytes. The first page alone has
	// them.
	Objects, Stored uint64
	tree.Usage
	// Next is what the request of the next page names; empty: this is the last one.
	Next []byte
}

// Read reads an answer of Space. Errors: Corrupt.
func Read(a *pb.SpaceResponse) (Told, error) {
	t := Told{Objects: a.GetObjects(), Stored: a.GetStoredBytes(), Next: a.GetNext()}
	return t, fault.Wrap(fault.Corrupt, "usage.Read", "", json.Unmarshal(a.GetSpace(), &t.Usage))
}
