package content

import "context"

// wholeStep is how many bytes FetchWhole reads at once.
const wholeStep = 1 << 20

// FetchWhole brings a file into the caches in the background, whatever of it is
// read: the cue .WholeFile. It goes in order and from the beginning; with
// Open.Shared many chunks at once and in an order of this client's own. It stops at half of
// Options.CacheBytes, unless there is a disk cache, which bounds itself. It ends
// with the handle, and where something of the file cannot be had.
func (h *Handle) FetchWhole() {
	c := h.file.core
	ctx, cancel := context.WithCancel(c.ctx)
	h.file.mu.Lock()
	isClosed := h.closed
	h.whole = cancel
	h.file.mu.Unlock()
	own := &Handle{file: h.file, source: h.file.source()}
	own.source.shared = h.source.shared
	h.source.scattered.Store(h.source.shared)
	if isClosed || !c.start(func() {
		defer cancel()
		defer own.source.ahead.stop()
		if own.source.shared {
			own.readScattered(ctx)
			h.source.scattered.Store(false)
		} else {
			own.readThrough(ctx)
		}
	}) {
		h.source.scattered.Store(false)
		cancel()
	}
}

// readThrough reads a file and drops what it reads.
func (h *Handle) readThrough(ctx context.Context) {
	f, o := h.file, &h.file.core.opt
	if f.lockKnown(ctx) != nil {
		return
	}
	root, size := f.base.root.Address, f.base.size
	f.mu.Unlock()
	h.source.ahead.expect(root)
	buf := make([]byte, min(wholeStep, max(size, 1)))
	for at := uint64(0); o.Disk != nil || at < uint64(o.CacheBytes)/2; {
		n, err := h.ReadAt(ctx, buf, at)
		if err != nil || n < len(buf) {
			return
		}
		at += uint64(n)
	}
}
