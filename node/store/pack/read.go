package pack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/store/disk"
)

const (
	// readMost is how much one read of a pack fetches at most.
	readMost = 1 << 20
	// readGap is how many sectors between two wanted ones are read along
	// rather than asked for separately.
	readGap = 8
)

// Range is a piece of a chunk to read: len(Into) bytes from Offset. Err says
// how it went: nil, Missing, Corrupt, Invalid or IO.
type Range struct {
	Address chunk.Address
	Offset  int
	Into    []byte
	Err     error
}

// readTries bounds how often a chunk is looked for that moves to another pack.
const readTries = 8

// errMoved says that a chunk's pack was removed after the chunk was found in it: by
// then it is in another pack, or needed no more.
var errMoved = fault.E(fault.Missing, "pack.Read", "", "its pack is gone")

// span is a range with its place.
type span struct {
	r          *Range
	f          *file
	from       int64 // in the stream
	first, end int64 // sectors
}

// Read fills the ranges. Those that lie close together in a pack are fetched by
// one read. The error is the first of the ranges' errors, each of which stands
// in its range; every range is tried.
func (p *Packs) Read(ctx context.Context, ranges []Range) error {
	if len(ranges) == 1 {
		r := &ranges[0]
		for range readTries {
			if s, ok := p.locate(r); ok {
				p.fetch([]span{s})
			}
			if !errors.Is(r.Err, errMoved) {
				break
			}
		}
		return r.Err
	}
	for try := range readTries {
		spans := make([]span, 0, len(ranges))
		for i := range ranges {
			if try > 0 && !errors.Is(ranges[i].Err, errMoved) {
				continue
			}
			if s, ok := p.locate(&ranges[i]); ok {
				spans = append(spans, s)
			}
		}
		if err := p.fetchAll(ctx, spans); err != nil {
			return err
		}
		if !slices.ContainsFunc(ranges, func(r Range) bool { return errors.Is(r.Err, errMoved) }) {
			break
		}
	}
	for i := range ranges {
		if ranges[i].Err != nil {
			return ranges[i].Err
		}
	}
	return nil
}

// fetchAll fetches spans of any packs. The error is that of ctx.
func (p *Packs) fetchAll(ctx context.Context, spans []span) error {
	if !slices.IsSortedFunc(spans, comparePlace) {
		slices.SortFunc(spans, comparePlace)
	}
	for len(spans) > 0 {
		if err := ctx.Err(); err != nil {
			return fault.Wrap(fault.Canceled, "pack.Read", "", err)
		}
		n, end := 1, spans[0].end
		for n < len(spans) && spans[n].f == spans[0].f && spans[n].first <= end+readGap &&
			(spans[n].end-spans[0].first)*sectorSize <= readMost {
			end = max(end, spans[n].end)
			n++
		}
		p.fetch(spans[:n])
		spans = spans[n:]
	}
	return nil
}

func comparePlace(a, b span) int {
	return cmp.Or(cmp.Compare(a.f.id, b.f.id), cmp.Compare(a.first, b.first))
}

// locate finds the place of a range; it answers ranges that need no disk.
func (p *Packs) locate(r *Range) (span, bool) {
	const op fault.Op = "pack.locate"
	r.Err = nil
	at, ok := p.index.get(&r.Address)
	if !ok {
		body, staged := p.stage.get(&r.Address)
		if staged {
			if r.Err = checkRange(r, len(body)); r.Err == nil {
				copy(r.Into, body[r.Offset:])
			}
			return span{}, false
		}
		if at, ok = p.index.get(&r.Address); !ok {
			r.Err = fault.E(fault.Missing, op, fmt.Sprintf("%x", r.Address[:6]), "")
			return span{}, false
		}
	}
	if r.Err = checkRange(r, at.length()); r.Err != nil || len(r.Into) == 0 {
		return span{}, false
	}
	f := (*p.files.Load())[at.pack()]
	if f == nil {
		r.Err = errMoved
		return span{}, false
	}
	from := at.offset() + int64(r.Offset)
	return span{r: r, f: f, from: from, first: from / sectorData, end: (from+int64(len(r.Into))-1)/sectorData + 1}, true
}

func checkRange(r *Range, length int) error {
	if r.Offset < 0 || r.Offset+len(r.Into) > length {
		return fault.Errorf(fault.Invalid, "pack.Read", "", "bytes %d to %d of a chunk of %d", r.Offset, r.Offset+len(r.Into), length)
	}
	return nil
}

// fetch reads spans of one pack that lie together, checks the sectors that
// they need, and copies.
func (p *Packs) fetch(spans []span) {
	f := spans[0].f
	first, end := spans[0].first, spans[0].end
	for _, s := range spans[1:] {
		end = max(end, s.end)
	}
	need := int(end-first) * sectorSize
	raw := scratch.get(need)
	defer scratch.put(raw)
	buf := (*raw)[:need]
	f.reading.RLock()
	defer f.reading.RUnlock()
	if f.r == nil {
		for _, s := range spans {
			s.r.Err = errMoved
		}
		return
	}
	if _, err := f.r.ReadAt(buf, first*sectorSize); err != nil && !errors.Is(err, io.EOF) {
		for _, s := range spans {
			s.r.Err = fault.Wrap(fault.IO, "pack.Read", packName(f.id), err)
		}
		return
	}
	checked := first
	for _, s := range spans {
		s.r.Err = copyOut(s, buf, first, &checked)
		if s.r.Err != nil {
			p.opts.Logger.Warn("a chunk on this disk is damaged", slog.String("pack", packName(f.id)), slog.String("address", s.r.Address.String()))
		}
	}
}

// copyOut takes a span's bytes out of its sectors. Sectors before checked were
// found good already.
func copyOut(s span, buf []byte, first int64, checked *int64) error {
	into, skip := s.r.Into, int(s.from%sectorData)
	for i := s.first; i < s.end; i++ {
		sector := buf[(i-first)*sectorSize:][:sectorSize]
		if i >= *checked {
			if !sectorGood(sector, s.f.key, i) {
				return fault.E(fault.Corrupt, "pack.Read", packName(s.f.id), fmt.Sprintf("sector %d does not match its sum", i))
			}
			*checked = i + 1
		}
		n := copy(into, sector[skip:sectorData])
		into, skip = into[n:], 0
	}
	return nil
}

// scratchPool keeps read buffers of a few sizes.
type scratchPool struct{ small, large *sync.Pool }

const scratchSmall = 32 << 10

// scratch holds no state that matters: buffers only.
var scratch = scratchPool{
	small: &sync.Pool{New: func() any { b := disk.Aligned(scratchSmall); return &b }},
	large: &sync.Pool{New: func() any { b := disk.Aligned(readMost + sectorSize); return &b }},
}

func (s scratchPool) get(n int) *[]byte {
	if n <= scratchSmall {
		return s.small.Get().(*[]byte)
	}
	if n <= readMost+sectorSize {
		return s.large.Get().(*[]byte)
	}
	b := disk.Aligned(n)
	return &b
}

func (s scratchPool) put(b *[]byte) {
	switch len(*b) {
	case scratchSmall:
		s.small.Put(b)
	case readMost + sectorSize:
		s.large.Put(b)
	}
}
