package content

import (
	"bytes"
	"context"

	"cartwheel.dev/node/protocol/pb"
)

// lostAppend is a commit of an append layer whose answer is lost: it was run, or
// it was not.
type lostAppend struct {
	file   *file
	layer  *layer
	splice *pb.Commit
	from   uint64 // where in the layer its bytes begin
	at     uint64 // where in the file they begin if it was run and nobody else wrote
}

// isIn reports whether a version has what the commit appends where it would have
// come to lie.
func (a *lostAppend) isIn(ctx context.Context, now *version) (bool, error) {
	source := a.file.source()
	for _, x := range a.splice.Extents {
		for done := uint64(0); done < x.Length; {
			n := min(x.Length-done, bufferSize)
			at := a.at + x.Offset + done
			if at+n > now.size {
				return false, nil
			}
			is, want := make([]byte, n), make([]byte, n)
			if err := source.readVersion(ctx, now, is, at); err != nil {
				return false, err
			}
			a.fill(want, a.from+x.Offset+done)
			if !bytes.Equal(is, want) {
				return false, nil
			}
			done += n
		}
	}
	return true, nil
}

// fill fills p with what the layer has from off on, which counts from the layer's
// start.
func (a *lostAppend) fill(p []byte, off uint64) {
	a.file.mu.Lock()
	defer a.file.mu.Unlock()
	l := a.layer
	off += l.base
	for i := l.at(off); i < len(l.segs) && len(p) > 0; i++ {
		seg := l.segs[i]
		if seg.buf == nil || seg.off > off {
			return
		}
		n := copy(p, seg.buf[off-seg.off:seg.n])
		p, off = p[n:], off+uint64(n)
	}
}
