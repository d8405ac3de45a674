package content

import (
	"context"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
)

// change makes one change of size or holes under the file's mutex.
func (h *Handle) change(ctx context.Context, w Written, apply func(*layer)) error {
	if err := h.check(); err != nil {
		return err
	}
	f := h.file
	if err := f.room(ctx); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	l := h.active(false)
	if err := h.journal(l, w); err != nil {
		return err
	}
	apply(l)
	return nil
}

// Truncate makes the file size bytes long.
func (h *Handle) Truncate(ctx context.Context, size uint64) error {
	const op fault.Op = "content.Truncate"
	if size > chunk.MaxFileSize {
		return fault.E(fault.TooLarge, op, h.file.object.String(), "larger than the largest file")
	}
	return h.change(ctx, Written{Kind: WriteTruncate, Offset: size}, func(l *layer) { l.resize(size) })
}

// Mode bits of Allocate, as fallocate has them.
const (
	KeepSize  = 1
	PunchHole = 2
	ZeroRange = 16
)

// Allocate is fallocate: it grows the file, punches holes or zeroes ranges.
// Room is not reserved. Other modes are NotSupported.
func (h *Handle) Allocate(ctx context.Context, mode uint32, off, length uint64) error {
	const op fault.Op = "content.Allocate"
	subject := h.file.object.String()
	if length == 0 {
		return fault.E(fault.Invalid, op, subject, "the length is 0")
	}
	if off > chunk.MaxFileSize || length > chunk.MaxFileSize-off {
		return fault.E(fault.TooLarge, op, subject, "larger than the largest file")
	}
	end := off + length
	switch mode {
	case 0:
		return h.change(ctx, Written{Kind: WriteExtend, Offset: end}, func(l *layer) { l.extend = max(l.extend, end) })
	case KeepSize:
		return h.check()
	case PunchHole | KeepSize, ZeroRange | KeepSize:
		return h.zero(ctx, off, end)
	case ZeroRange:
		if err := h.change(ctx, Written{Kind: WriteExtend, Offset: end}, func(l *layer) { l.extend = max(l.extend, end) }); err != nil {
			return err
		}
		return h.zero(ctx, off, end)
	}
	return fault.Errorf(fault.NotSupported, op, subject, "fallocate mode %#x", mode)
}

// zero makes [off, end) zeros as far as the file goes.
func (h *Handle) zero(ctx context.Context, off, end uint64) error {
	if err := h.check(); err != nil {
		return err
	}
	f := h.file
	if err := f.room(ctx); err != nil {
		return err
	}
	if err := f.lockKnown(ctx); err != nil {
		return err
	}
	defer f.mu.Unlock()
	if end = min(end, f.size()); off >= end {
		return nil
	}
	l := h.active(false)
	if err := h.journal(l, Written{Kind: WriteHole, Offset: off, Length: end - off}); err != nil {
		return err
	}
	l.hole(off, end)
	if len(l.segs) >= maxSegments {
		f.seal(l, false)
	}
	return nil
}
