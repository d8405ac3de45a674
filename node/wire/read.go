package wire

import (
	"bufio"
	"io"
	"time"

	"cartwheel.dev/node/wire/framing"
)

// reader takes frames' contents off a connection. It belongs to the goroutine
// that reads.
type reader struct {
	conn    interface{ SetReadDeadline(time.Time) error }
	buffers *framing.Buffers
	limit   time.Duration // for the rest of a frame, beside the time that its length allows
	strange int           // bytes that came before the peer was admitted
	refused int           // bytes of refusals, about, since the queue was last below its limit
}

// readBuffers reads a frame's header and body. Either is nil if it is empty.
func (d *reader) readBuffers(r *bufio.Reader, f *framing.Frame) (header, body *Buffer, err error) {
	if header, err = d.readBuffer(r, f.Header); err != nil {
		return nil, nil, err
	}
	if body, err = d.readBuffer(r, f.Body); err != nil {
		header.Release()
		return nil, nil, err
	}
	return header, body, nil
}

func (d *reader) readBuffer(r *bufio.Reader, n uint32) (*Buffer, error) {
	if n == 0 {
		return nil, nil
	}
	b := d.buffers.Get(int(n))
	if err := d.readFull(r, b.Bytes()); err != nil {
		b.Release()
		return nil, err
	}
	return b, nil
}

// strangerFrame is the least that a frame of a stranger counts, so that many small
// ones, and the refusals of them, are bounded too.
const strangerFrame = 512

// slowest is the rate, in bytes a second, below which a frame comes too slowly
// to wait for.
const slowest = 8 << 10

// readFull reads a part of a frame, which must come in time, because it holds
// memory until then.
func (d *reader) readFull(r *bufio.Reader, b []byte) error {
	return d.inTime(r, len(b), func() error {
		_, err := io.ReadFull(r, b)
		return err
	})
}

// discard throws a part of a frame away, which must come in time too.
func (d *reader) discard(r *bufio.Reader, n int) error {
	return d.inTime(r, n, func() error {
		_, err := r.Discard(n)
		return err
	})
}

func (d *reader) inTime(r *bufio.Reader, n int, read func() error) error {
	if r.Buffered() >= n {
		return read()
	}
	limit := d.limit + time.Duration(n)*(time.Second/slowest)
	if err := d.conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	if err := read(); err != nil {
		return err
	}
	return d.conn.SetReadDeadline(time.Time{})
}

// exactFrom is the size from which a one-way frame's payload gets memory of its
// own. Handlers mostly keep large payloads, and would keep a pooled buffer with
// them, which may be twice as large.
const exactFrom = 4 << 10

func (d *reader) readPayload(r *bufio.Reader, n uint32) (*Buffer, error) {
	if n < exactFrom {
		return d.readBuffer(r, n)
	}
	b := framing.NewBuffer(make([]byte, n))
	return b, d.readFull(r, b.Bytes())
}
