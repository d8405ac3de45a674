package content

import (
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
)

// Bounds of one commit.
const (
	// smallLayer is up to how many bytes a layer travels in the commit's body.
	smallLayer = 256 << 10
	// maxBody and maxExtents bound a commit; a layer above them is committed
	// in several, in order.
	maxBody    = 1 << 20
	maxExtents = 1000
	// minRun is the shortest run of bytes of a large layer that is cut into
	// chunks here; shorter ones travel in commits' bodies.
	minRun = 128 << 10
	// retries bounds how often chunks that went missing are sent again.
	retries = 3
	// inFlight is how many layers of a file are uploaded or committed at once.
	inFlight = 3
)

// piece is one extent of a commit to be: a chunk, bytes for the body, or a
// hole where both are missing. Those of an append layer count from its start.
type piece struct {
	off, n  uint64
	address chunk.Address
	size    uint32 // of the whole chunk
	body    [][]byte
}

// splices parts the pieces of an object's layer into commits.
func (l *layer) splices(object ids.Object, pieces []piece) []Commit {
	var out []Commit
	fresh := func() *Commit {
		out = append(out, Commit{Object: object, As: l.as, Splice: &pb.Commit{
			Object: uint64(object), Append: l.appends, MtimeNs: l.mtime.UnixNano(), ClearSetid: l.setid, Keeps: true,
		}})
		return &out[len(out)-1]
	}
	c := fresh()
	if l.cut {
		c.Splice.Size = &l.truncate
	}
	body, shift := uint64(0), uint64(0)
	for i := range pieces {
		p := &pieces[i]
		if len(c.Splice.Extents) == maxExtents || (p.body != nil && body > 0 && body+p.n > maxBody) {
			if l.appends { // the next commit counts from its own end of file
				shift = p.off
			}
			c, body = fresh(), 0
		}
		x := &pb.Extent{Offset: p.off - shift, Length: p.n}
		switch {
		case p.body != nil:
			x.Source = &pb.Extent_BodyOffset{BodyOffset: body}
			c.Body = append(c.Body, p.body...)
			body += p.n
		case p.size > 0:
			x.Source = &pb.Extent_Chunk{Chunk: p.address[:]}
			x.ChunkSize = p.size
		default:
			x.Source = &pb.Extent_Hole{Hole: true}
		}
		c.Splice.Extents = append(c.Splice.Extents, x)
	}
	if l.extend > 0 {
		c.Splice.Extend = &l.extend
	}
	return out
}
