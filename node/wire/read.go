package wire

import (
	"bufio"
	"io"
	"time"

	"cartwheel.dev/node/wire/framing"
)

// readBuffers reads a frame's header and body; either may be empty, then nil.
func (l *link) readBuffers(r *bufio.Reader, f *framing.Frame) (header, body *Buffer, err error) {
	if header, err = l.readBuffer(r, f.Header); err != nil {
		return nil, nil, err
	}
	if body, err = l.readBuffer(r, f.Body); err != nil {
		header.Release()
		return nil, nil, err
	}
	return header, body, nil
}

func (l *link) readBuffer(r *bufio.Reader, n uint32) (*Buffer, error) {
	if n == 0 {
		return nil, nil
	}
	b := l.host.buffers.Get(int(n))
	if err := l.readFull(r, b.Bytes()); err != nil {
		b.Release()
		return nil, err
	}
	return b, nil
}

// slowest is the rate, in bytes a second, below which a frame comes too slowly
// to wait for.
const slowest = 8 << 10

// readFull reads a part of a frame, which must come in time: what it was given
// memory for is held until then.
func (l *link) readFull(r *bufio.Reader, b []byte) error {
	return l.inTime(r, len(b), func() error {
		_, err := io.ReadFull(r, b)
		return err
	})
}

// discard throws a part of a frame away, which must come in time too.
func (l *link) discard(r *bufio.Reader, n int) error {
	return l.inTime(r, n, func() error {
		_, err := r.Discard(n)
		return err
	})
}

func (l *link) inTime(r *bufio.Reader, n int, read func() error) error {
	if r.Buffered() >= n {
		return read()
	}
	limit := l.host.options.Times.Frame + time.Duration(n)*(time.Second/slowest)
	if err := l.conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	if err := read(); err != nil {
		return err
	}
	return l.conn.SetReadDeadline(time.Time{})
}

// exactFrom is the size from which a one-way frame's payload gets memory of its
// own: what large ones say is mostly kept, and a pooled buffer, which may be
// twice as large, would be kept with it.
const exactFrom = 4 << 10

func (l *link) readPayload(r *bufio.Reader, n uint32) (*Buffer, error) {
	if n < exactFrom {
		return l.readBuffer(r, n)
	}
	b := framing.NewBuffer(make([]byte, n))
	return b, l.readFull(r, b.Bytes())
}
