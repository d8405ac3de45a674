package tree

import (
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
)

// commit splices dirty bytes into the current version of a file.
func (t *txn) commit(op *pb.Commit, body []byte) error {
	n, err := t.inode(ids.Object(op.Object))
	if err != nil {
		return err
	}
	switch {
	case n.IsDir():
		return refusal(fault.IsDirectory)
	case !n.IsRegular():
		return refusal(fault.Invalid)
	}
	if err := t.mayWriteOpen(n); err != nil {
		return err
	}
	if op.SideVersion != 0 {
		return noteMerged(t, n, op.SideVersion)
	}
	if op.Seal && len(op.Extents) == 0 && op.Size == nil && op.Extend == nil {
		return t.seal(n)
	}
	if err := mayRewrite(n.Inode); err != nil {
		return err
	}
	s := splice{txn: t, n: n, keeps: op.Keeps && !op.Append}
	if op.Size != nil {
		s.change.Truncate, s.change.Size = true, *op.Size
	}
	if op.Extend != nil {
		s.change.Extend = *op.Extend
	}
	base := uint64(0)
	if op.Append {
		base = n.Size
		if op.Size != nil {
			base = *op.Size
		}
		t.result.Offset = base
	}
	if err := s.addExtents(op, base, body); err != nil {
		return err
	}
	if err := s.run(); err != nil {
		return err
	}
	if op.ClearSetid || (len(op.Extents) > 0 && !t.c.root()) {
		t.clearSetID(n.Inode)
		if err := t.dropCapability(n); err != nil {
			return err
		}
	}
	t.change(n)
	n.rewrote(t.c.Serial)
	if !op.KeepTimes {
		n.Mtime = t.now
		if op.MtimeNs != 0 {
			n.Mtime = op.MtimeNs
		}
	}
	if err := sealed(n.Inode, op); err != nil {
		return err
	}
	t.result.Attr = n.Attr()
	return t.addContent(n.Inode, t.result.Attr)
}

// truncate sets a file's size; the caller has checked the right to.
func (t *txn) truncate(n *loaded, size uint64) error {
	if err := mayRewrite(n.Inode); err != nil {
		return err
	}
	s := splice{txn: t, n: n}
	s.change.Truncate, s.change.Size = true, size
	if err := s.run(); err != nil {
		return err
	}
	if !t.c.root() {
		t.clearSetID(n.Inode)
		if err := t.dropCapability(n); err != nil {
			return err
		}
	}
	t.change(n)
	n.Mtime = t.now
	n.rewrote(t.c.Serial)
	return nil
}

// piece is one extent of a commit whose bytes came with it.
type piece struct {
	offset uint64
	data   []byte // nil: a hole of length
	length uint64
}

// splice is the change of one file's content.
type splice struct {
	*txn
	n      *loaded
	change chunk.Change
	pieces []piece
	stored bool // some extents name chunks: their bytes are not at hand
	keeps  bool // the caller has the pieces still when the answer comes
}

// addExtents checks the extents of a commit and brings them into order.
func (s *splice) addExtents(op *pb.Commit, base uint64, body []byte) error {
	end := uint64(0)
	s.change.Extents = make([]chunk.Extent, 0, len(op.Extents)+1)
	s.pieces = make([]piece, 0, len(op.Extents))
	for _, e := range op.Extents {
		offset := e.Offset
		if op.Append {
			offset = base + max(e.Offset, end)
			end = offset - base + e.Length
		}
		if e.Length == 0 || offset > chunk.MaxFileSize || e.Length > chunk.MaxFileSize-offset {
			return refusal(fault.TooLarge)
		}
		p := piece{offset: offset, length: e.Length}
		switch src := e.Source.(type) {
		case *pb.Extent_Hole:
			s.change.Extents = append(s.change.Extents, chunk.Hole(offset, e.Length))
		case *pb.Extent_BodyOffset:
			if src.BodyOffset > uint64(len(body)) || e.Length > uint64(len(body))-src.BodyOffset {
				return refusal(fault.Invalid)
			}
			p.data = body[src.BodyOffset : src.BodyOffset+e.Length]
			// chunked by place once it is sure not to stay inline
			s.change.Extents = append(s.change.Extents, chunk.Extent{Offset: offset, Length: e.Length})
		case *pb.Extent_Chunk:
			a, err := chunk.AddressOf(src.Chunk)
			if err != nil || a.IsZero() || e.ChunkOffset > chunk.MaxSize {
				return refusal(fault.Invalid)
			}
			x := chunk.Extent{Offset: offset, Length: e.Length, Chunk: a, ChunkOffset: uint32(e.ChunkOffset), ChunkSize: e.ChunkSize}
			if x.Validate() != nil {
				return refusal(fault.Invalid)
			}
			s.change.Extents = append(s.change.Extents, x)
			s.needs = append(s.needs, a[:]...)
			s.stored = true
		default:
			return refusal(fault.Invalid)
		}
		s.pieces = append(s.pieces, p)
	}
	return s.ascending()
}

func (s *splice) ascending() error {
	last := uint64(0)
	for _, p := range s.pieces {
		if p.offset < last {
			return refusal(fault.Invalid)
		}
		last = p.offset + p.length
	}
	return nil
}

// size is what the file's size will be.
func (s *splice) size() uint64 {
	size := s.n.Size
	if s.change.Truncate {
		size = s.change.Size
	}
	if k := len(s.pieces); k > 0 {
		size = max(size, s.pieces[k-1].offset+s.pieces[k-1].length)
	}
	return max(size, s.change.Extend)
}

// run writes the new version: beside the record where it is small and its
// bytes are at hand, else as a manifest.
func (s *splice) run() error {
	n, size := s.n, s.size()
	if size > chunk.MaxFileSize {
		return refusal(fault.TooLarge)
	}
	before := n.Stored
	var err error
	switch {
	case size == 0:
		err = s.clear()
	case n.Root.IsZero() && !s.stored && size <= MaxInline:
		err = s.runInline(int(size))
	default:
		err = s.runManifest()
	}
	s.state.Stored += n.Stored - before
	s.stateDirty = s.stateDirty || n.Stored != before
	return err
}

// clear makes the file empty.
func (s *splice) clear() error {
	n := s.n
	if n.Beside {
		s.remove(objectKey(keyContent, n.Object))
	}
	if !n.Root.IsZero() {
		if err := s.dead(n.Root, 1); err != nil {
			return err
		}
	}
	n.Root, n.Height, n.Beside, n.Size, n.Stored = chunk.Address{}, 0, false, 0, 0
	return nil
}

// inlineBytes reads what lies beside the record, cut where the change cuts it.
func (s *splice) inlineBytes() ([]byte, error) {
	if !s.n.Beside {
		return nil, nil
	}
	old, ok, err := s.view.Get(objectKey(keyContent, s.n.Object))
	if err != nil {
		return nil, err
	}
	if !ok || uint64(len(old)) != s.n.Size {
		return nil, fault.E(fault.Corrupt, "tree.Evaluate", s.n.Object.String(), "the content beside the record is not there")
	}
	if s.change.Truncate && s.change.Size < uint64(len(old)) {
		old = old[:s.change.Size]
	}
	return old, nil
}

func (s *splice) runInline(size int) error {
	old, err := s.inlineBytes()
	if err != nil {
		return err
	}
	value := make([]byte, size)
	copy(value, old)
	for _, p := range s.pieces {
		if p.data != nil {
			copy(value[p.offset:], p.data)
		} else {
			clear(value[p.offset : p.offset+p.length])
		}
	}
	s.sent = s.keeps && (len(old) == 0 || s.isWhole(uint64(size)))
	s.put(objectKey(keyContent, s.n.Object), value)
	s.n.Beside, s.n.Size, s.n.Stored = true, uint64(size), uint64(size)
	return nil
}

// isWhole reports whether the pieces are all of a file of so many bytes.
func (s *splice) isWhole(size uint64) bool {
	at := uint64(0)
	for _, p := range s.pieces {
		if p.offset != at {
			return false
		}
		at += p.length
	}
	return at == size
}

// runManifest splices the manifest; bytes beside the record move into a chunk.
func (s *splice) runManifest() error {
	n := s.n
	s.chunkPieces()
	if n.Beside {
		if err := s.moveOut(); err != nil {
			return err
		}
	}
	old := chunk.Root{}
	if !n.Root.IsZero() {
		old = n.root()
	}
	rec := recorder{under: s.nodes}
	root, nodes, err := chunk.Splice(&rec, old, s.change)
	if err != nil {
		if kind := fault.KindOf(err); kind == fault.Invalid || kind == fault.TooLarge {
			return refusal(kind)
		}
		return err
	}
	for i := range nodes {
		s.inline = append(s.inline, Chunk{Address: nodes[i].Address, Data: nodes[i].Data})
	}
	n.Root, n.Height, n.Size, n.Stored = root.Address, root.Height, root.Size, root.Stored
	return s.countRefs(old, root, rec.read, nodes)
}

// chunkPieces turns the body's bytes into chunks. The client cut them by
// content already; what is larger than a chunk may be is cut by size.
func (s *splice) chunkPieces() {
	out := make([]chunk.Extent, 0, len(s.change.Extents)+1)
	for i, e := range s.change.Extents {
		p := s.pieces[i]
		if p.data == nil {
			out = append(out, e)
			continue
		}
		for at := 0; at < len(p.data); at += chunk.MaxSize {
			data := p.data[at:min(at+chunk.MaxSize, len(p.data))]
			out = append(out, s.newChunk(p.offset+uint64(at), data))
		}
	}
	s.change.Extents = out
}

func (s *splice) newChunk(offset uint64, data []byte) chunk.Extent {
	a := chunk.Sum(data)
	s.inline = append(s.inline, Chunk{Address: a, Data: data})
	return chunk.Whole(offset, a, uint32(len(data)))
}

// moveOut makes a chunk of the bytes beside the record and puts the change's
// extents over it.
func (s *splice) moveOut() error {
	old, err := s.inlineBytes()
	if err != nil {
		return err
	}
	s.remove(objectKey(keyContent, s.n.Object))
	s.n.Beside = false
	end := uint64(len(old))
	var kept []chunk.Extent
	at := uint64(0)
	for _, e := range s.change.Extents {
		if e.Offset > at && at < end {
			kept = append(kept, chunk.Extent{Offset: at, Length: min(e.Offset, end) - at})
		}
		kept = append(kept, e)
		at = max(at, e.End())
	}
	if at < end {
		kept = append(kept, chunk.Extent{Offset: at, Length: end - at})
	}
	s.change.Truncate = false
	s.change.Extend = max(s.change.Extend, s.change.Size)
	if len(kept) == len(s.change.Extents) {
		return nil // nothing of the old bytes is left
	}
	whole := s.newChunk(0, append([]byte(nil), old...))
	for i := range kept {
		if e := &kept[i]; e.Chunk.IsZero() && e.ChunkSize == 0 && !s.isHole(e.Offset) {
			*e = chunk.Extent{Offset: e.Offset, Length: e.Length, Chunk: whole.Chunk, ChunkOffset: uint32(e.Offset), ChunkSize: whole.ChunkSize}
		}
	}
	s.change.Extents = kept
	return nil
}

// isHole reports whether the change puts a hole at an offset.
func (s *splice) isHole(offset uint64) bool {
	for _, p := range s.pieces {
		if p.data == nil && p.offset == offset {
			return true
		}
	}
	return false
}
