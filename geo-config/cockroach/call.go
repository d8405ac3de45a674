package cockroach

import (
	"context"
	"slices"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// call is one Apply or Settle on its way to the writer.
type call struct {
	ctx    context.Context
	op     fault.Op
	key    string
	batch  *geoconfig.Batch // a copy; nil: settle the key
	answer chan answer      // takes one answer without a reader
}

// answer is what a call came to. Of Apply a revision without an error means
// that the batch was applied.
type answer struct {
	rev ids.Revision
	err error
}

// rows counts what a call would change.
func (c *call) rows() int {
	if c.batch == nil {
		return 1
	}
	return c.batch.Len()
}

// clone copies a batch, since its caller may give up on it and use it again
// while the writer still reads it.
func clone(b geoconfig.Batch) *geoconfig.Batch {
	if b.Cluster != nil {
		c := *b.Cluster
		b.Cluster = &c
	}
	b.Sites, b.Nodes, b.Users = slices.Clone(b.Sites), slices.Clone(b.Nodes), slices.Clone(b.Users)
	b.Slices, b.Remove, b.Audit = slices.Clone(b.Slices), slices.Clone(b.Remove), slices.Clone(b.Audit)
	for i := range b.Nodes {
		n := &b.Nodes[i]
		n.Addresses, n.Coordinate.Vector = slices.Clone(n.Addresses), slices.Clone(n.Coordinate.Vector)
		n.Together, n.Apart = slices.Clone(n.Together), slices.Clone(n.Apart)
	}
	b.Records = slices.Clone(b.Records)
	for i := range b.Records {
		b.Records[i].Body = slices.Clone(b.Records[i].Body)
	}
	for i := range b.Users {
		b.Users[i].GIDs = slices.Clone(b.Users[i].GIDs)
	}
	for i := range b.Slices {
		b.Slices[i].Row = b.Slices[i].Row.Clone()
	}
	return &b
}
