package calls

import (
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/tree"
)

// fillSent puts the content that an operation sent into its result, where the
// active left it out. An active of an earlier version leaves nothing out.
func fillSent(op *pb.Operation, body [][]byte, r *pb.Result) {
	b := op.GetBatch()
	if b == nil {
		fillOne(op, body, r)
		return
	}
	for i, one := range r.GetResults()[:min(len(r.GetResults()), len(b.Operations))] {
		fillOne(b.Operations[i], body, one)
	}
}

// fillOne does it for one operation. Content that was not sent after all is as good
// as unknown, and is fetched.
func fillOne(op *pb.Operation, body [][]byte, r *pb.Result) {
	a := r.GetAttr()
	if !a.GetContent().GetSent() {
		return
	}
	commit := op.GetCommit()
	if create := op.GetCreate(); create != nil {
		commit = create.Commit
	}
	inline, ok := sentBytes(commit, body, a.Size)
	if !ok {
		a.Content = nil
		return
	}
	a.Content.Inline, a.Content.Sent = inline, false
}

// sentBytes returns a file of so many bytes of which a commit sent all that is not
// zero.
func sentBytes(c *pb.Commit, body [][]byte, size uint64) ([]byte, bool) {
	if c == nil || size > tree.MaxInline {
		return nil, false
	}
	out := make([]byte, size)
	for _, e := range c.Extents {
		if e.Offset > size || e.Length > size-e.Offset {
			return nil, false
		}
		into := out[e.Offset : e.Offset+e.Length]
		if src, ok := e.Source.(*pb.Extent_BodyOffset); ok && copyFrom(into, body, src.BodyOffset) < len(into) {
			return nil, false
		}
	}
	return out, true
}

// copyFrom copies what begins so far behind the start of a body that is in parts,
// and returns how much that was.
func copyFrom(into []byte, body [][]byte, at uint64) (n int) {
	for _, part := range body {
		if at >= uint64(len(part)) {
			at -= uint64(len(part))
			continue
		}
		n += copy(into[n:], part[at:])
		if at = 0; n == len(into) {
			break
		}
	}
	return n
}
