package pack

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/store/disk"
)

// Place is how far a check of the packs is: behind it lie the chunks of a pack from an
// offset in its stream on, and all later packs. The zero Place is before all of them.
type Place struct {
	Pack   uint32 `json:"pack"`
	Offset int64  `json:"offset"`
}

// Checked is what came of one step of a check.
type Checked struct {
	// At is where the next step goes on; End says that nothing is left.
	At  Place
	End bool
	// Bytes were read from the disk, and Chunks were found good.
	Bytes, Chunks int64
	// Damaged chunks are not in the index any more: nobody reads them, and a Put writes
	// them anew.
	Damaged []chunk.Address
	// Unlisted counts chunks that the index had in a pack and that no list names any more.
	// They left the index too.
	Unlisted int
	// Rescued counts good chunks that were written anew, since their file has no name.
	Rescued int
	// ReadErrors counts the reads that the disk refused twice.
	ReadErrors int
}

// Checker reads the chunks of the packs from the disk, one pack after the other, and proves
// each by its address. It holds no writer up and no reader. One goroutine uses it at a time;
// it must be closed.
type Checker struct {
	p     *Packs
	at    Place
	until uint32 // the last pack of the check

	f        *file // nil: none is open
	r        disk.File
	nameless bool // the file has lost its name: r is the one that readers have
	list     []placed
	buf      []byte
}

// Check returns a Checker that goes on from a place, up to the newest pack of now or, where
// until is not 0, up to that one.
func (p *Packs) Check(from Place, until uint32) *Checker {
	if until == 0 {
		p.mu.Lock()
		until = p.last
		p.mu.Unlock()
	}
	return &Checker{p: p, at: from, until: until}
}

// Until is the number of the last pack of the check.
func (c *Checker) Until() uint32 { return c.until }

// Close lets the pack go that is open.
func (c *Checker) Close() {
	if c.r != nil && !c.nameless {
		c.r.Close()
	}
	c.f, c.r, c.list, c.nameless = nil, nil, nil, false
}

// Left returns the bytes of packs that the check has yet to read, and of all packs that it
// reads.
func (c *Checker) Left() (left, all int64) {
	for id, f := range *c.p.files.Load() {
		if id > c.until {
			continue
		}
		n := f.filled()
		all += n
		switch {
		case id > c.at.Pack:
			left += n
		case id == c.at.Pack:
			left += max(n-c.at.Offset, 0)
		}
	}
	return left, all
}

// filled returns how many bytes of a pack are written.
func (f *file) filled() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full {
		return f.size
	}
	return f.next * sectorSize
}

// Step reads chunks that lie together, up to about limit bytes and one at least. The error is
// that of ctx, or of a Put of what it rescues; damage and read errors are in the answer.
func (c *Checker) Step(ctx context.Context, limit int) (Checked, error) {
	var out Checked
	if err := ctx.Err(); err != nil {
		return out, fault.Wrap(fault.Canceled, "pack.Check", "", err)
	}
	for len(c.list) == 0 {
		c.Close()
		f := c.next()
		if f == nil {
			out.At, out.End = c.at, true
			return out, nil
		}
		c.open(f, &out)
		if len(c.list) == 0 {
			c.at = Place{Pack: f.id + 1}
			if out.Unlisted > 0 || out.ReadErrors > 0 {
				break
			}
		}
	}
	err := c.read(ctx, c.cut(limit), &out)
	out.At = c.at
	return out, err
}

// next returns the first pack at or behind the place, or nil.
func (c *Checker) next() *file {
	var first *file
	for id, f := range *c.p.files.Load() {
		if id >= c.at.Pack && id <= c.until && (first == nil || id < first.id) {
			first = f
		}
	}
	if first != nil && first.id > c.at.Pack {
		c.at = Place{Pack: first.id}
	}
	return first
}

// open lists the chunks of a pack from the place on and opens its file, past the page cache
// where that is possible: what is in memory proves nothing of the disk.
func (c *Checker) open(f *file, out *Checked) {
	p := c.p
	list, err := p.contents(f, out)
	if err != nil {
		p.opts.Logger.Warn("a pack could not be listed", slog.String("pack", packName(f.id)), logattr.Err(err))
		out.ReadErrors++
		return
	}
	list = slices.DeleteFunc(p.found(f, list), func(x placed) bool { return x.offset < c.at.Offset })
	slices.SortFunc(list, func(x, y placed) int { return cmp.Compare(x.offset, y.offset) })
	r, err := p.d.Open(disk.PackOpen, packName(f.id), disk.ReadOnly|disk.Direct)
	switch {
	case fault.Is(err, fault.NotFound):
		c.nameless = true // what collection has removed has no chunks in the list
	case err != nil:
		p.opts.Logger.Warn("a pack could not be opened", slog.String("pack", packName(f.id)), logattr.Err(err))
		out.ReadErrors++
		return
	}
	c.f, c.r, c.list = f, r, list
}

// contents lists the chunks that are said to be in a pack. Those of a full one that are not
// in the list leave the index, and a list that was lost is written again.
func (p *Packs) contents(f *file, out *Checked) ([]placed, error) {
	if !f.isSealed() {
		f.mu.Lock()
		defer f.mu.Unlock()
		return slices.Clone(f.chunks), nil
	}
	list, isIndexed, err := p.listOf(f)
	if err != nil {
		return nil, err
	}
	keep := make(map[location]bool, len(list))
	for _, x := range list {
		keep[newLocation(f.id, x.offset, int(x.length))] = true
	}
	n, bytes := p.index.dropBut(f.id, keep)
	p.bytes.Add(-bytes)
	out.Unlisted += n
	if !isIndexed {
		p.rewriteIndex(f, list)
	}
	return list, nil
}

// cut takes those chunks off the list that one read fetches.
func (c *Checker) cut(limit int) []placed {
	n := 0
	for n < len(c.list) && (n == 0 || c.list[n].end()-c.list[0].offset <= int64(limit)) {
		n++
	}
	part := c.list[:n]
	c.list = c.list[n:]
	if n > 0 {
		c.at.Offset = part[n-1].end()
	}
	return part
}

// end is where a chunk ends in its pack's stream.
func (x *placed) end() int64 { return x.offset + int64(x.length) }

// read reads chunks and judges each.
func (c *Checker) read(ctx context.Context, part []placed, out *Checked) error {
	if len(part) == 0 {
		return nil
	}
	first := part[0].offset / sectorData
	sectors, err := c.sectors(first, (part[len(part)-1].end()-1)/sectorData+1)
	out.Bytes += int64(len(sectors))
	var bad []placed
	proven := false // that what is on the disk is wrong
	for i := range part {
		x := &part[i]
		from, own := first, sectors
		if err != nil { // once more, each by itself
			from = x.offset / sectorData
			var again error
			if own, again = c.sectors(from, (x.end()-1)/sectorData+1); again != nil {
				out.ReadErrors++
				bad = append(bad, *x)
				continue
			}
		}
		body, good := x.cutFrom(own, c.f.key, from)
		if !good {
			proven = true
			bad = append(bad, *x)
			continue
		}
		out.Chunks++
		if c.nameless {
			if err := c.rescue(ctx, x, body, out); err != nil {
				return err
			}
		}
	}
	c.condemn(bad, proven, out)
	return nil
}

// sectors reads sectors of the pack. What lies behind the end of the file is zero. The
// result is valid until the next call.
func (c *Checker) sectors(first, end int64) ([]byte, error) {
	need := int(end-first) * sectorSize
	if len(c.buf) < need {
		c.buf = disk.Aligned(need)
	}
	buf, r := c.buf[:need], c.r
	if c.nameless {
		c.f.reading.RLock()
		defer c.f.reading.RUnlock()
		if r = c.f.r; r == nil {
			return buf, errMoved
		}
	}
	n, err := r.ReadAt(buf, first*sectorSize)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	clear(buf[n:])
	return buf, err
}

// cutFrom returns the chunk's body out of sectors that begin with the first, and whether it
// is what its address says.
func (x *placed) cutFrom(sectors []byte, key uint64, first int64) (body []byte, good bool) {
	body = make([]byte, 0, x.length)
	skip := x.offset % sectorData
	for i := x.offset / sectorData; len(body) < int(x.length); i++ {
		sector := sectors[(i-first)*sectorSize:][:sectorSize]
		if !sectorGood(sector, key, i) {
			return nil, false
		}
		body = append(body, sector[skip:min(sectorData, skip+int64(int(x.length)-len(body)))]...)
		skip = 0
	}
	return body, chunk.Verify(x.address, body) == nil
}

// rescue writes a good chunk anew whose pack has lost its name: a start would not find it.
func (c *Checker) rescue(ctx context.Context, x *placed, body []byte, out *Checked) error {
	if !c.p.forgetAt(c.f, x) {
		return nil
	}
	err := c.p.Put(ctx, []chunk.Address{x.address}, [][]byte{body})
	if err != nil && c.p.index.add(&x.address, newLocation(c.f.id, x.offset, int(x.length))) {
		c.p.bytes.Add(int64(x.length)) // it can be read as before
		return err
	}
	out.Rescued++
	return nil
}

// forgetAt takes a chunk out of the index, if it lies there, and reports whether it did.
func (p *Packs) forgetAt(f *file, x *placed) bool {
	if !p.index.remove(&x.address, newLocation(f.id, x.offset, int(x.length))) {
		return false
	}
	p.bytes.Add(-int64(x.length))
	return true
}

// condemn takes chunks out of the index: of those that are in it, the answer tells. Where
// their damage is proven a start must not find them again.
func (c *Checker) condemn(bad []placed, proven bool, out *Checked) {
	for i := range bad {
		if c.p.forgetAt(c.f, &bad[i]) {
			c.p.opts.Logger.Warn("a chunk on this disk is damaged", slog.String("pack", packName(c.f.id)), slog.String("address", bad[i].address.String()))
			out.Damaged = append(out.Damaged, bad[i].address)
		}
	}
	if !proven || c.nameless {
		return
	}
	f := c.f
	f.mu.Lock()
	isOpen := !f.full || f.w != nil
	if isOpen {
		f.chunks = slices.DeleteFunc(f.chunks, func(x placed) bool { return slices.Contains(bad, x) })
	}
	f.mu.Unlock()
	if isOpen {
		return
	}
	if list, _, err := c.p.listOf(f); err == nil {
		c.p.rewriteIndex(f, slices.DeleteFunc(list, func(x placed) bool { return slices.Contains(bad, x) }))
	}
}

// rewriteIndex replaces the index file of a full pack. What fails is logged: the next check
// finds the same.
func (p *Packs) rewriteIndex(f *file, list []placed) {
	f.reading.RLock() // the pack is not removed meanwhile, and an index left without it
	defer f.reading.RUnlock()
	if f.r == nil {
		return
	}
	f.mu.Lock()
	g := &file{id: f.id, key: f.key, size: f.size, next: f.next, full: true, chunks: list}
	f.mu.Unlock()
	if err := p.writeIndex(g); err != nil {
		p.opts.Logger.Warn("the index of a pack could not be written anew", slog.String("pack", packName(f.id)), logattr.Err(err))
	}
}
