package sending

import (
	"errors"
	"fmt"
	"io"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
)

// headBytes stand before the body of each record: its length and its kind.
const headBytes = 5

// writer writes records, with the running sum.
type writer struct {
	out   io.Writer
	chain chunk.Address // the running sum: of all that is before end
	end   int64         // how long the stream is
	skip  int64         // what is before that is not written

	records, bytes uint64
}

// begin writes what a stream begins with.
func (w *writer) begin(h *Header) error {
	w.chain = chunk.Sum([]byte(magic))
	if err := w.write([]byte(magic)); err != nil {
		return err
	}
	return w.record(recordHeader, h.encode())
}

// record writes one record. Its body may come in parts.
func (w *writer) record(kind byte, body ...[]byte) error {
	n := 0
	for _, part := range body {
		n += len(part)
	}
	if n > maxBody {
		return fault.Errorf(fault.TooLarge, "sending.record", "", "a name has %d bytes of extended attributes, and a stream takes %d: make them fewer", n, maxBody)
	}
	head := append(little.AppendUint32(nil, uint32(n)), kind)
	w.chain = chunk.SumParts(append([][]byte{w.chain[:], head}, body...)...)
	w.records++
	for _, part := range append(append([][]byte{head}, body...), w.chain[:sumBytes]) {
		if err := w.write(part); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) write(p []byte) error {
	at := w.end
	w.end += int64(len(p))
	if w.end <= w.skip {
		return nil
	}
	_, err := w.out.Write(p[max(w.skip-at, 0):])
	return fault.FromOS("sending.write", "the stream", err)
}

// finish writes the end.
func (w *writer) finish() error {
	e := end{w.records, w.bytes, w.chain}
	return w.record(recordEnd, e.encode())
}

// record is one of a stream. Its body is valid until the next one is read.
type record struct {
	kind byte
	body []byte
}

// reader reads records and proves them by the running sum.
type reader struct {
	in    io.Reader
	chain chunk.Address
	end   int64 // behind the last record that was read whole
	buf   []byte

	records, bytes uint64
}

// begin reads what a stream begins with.
func (r *reader) begin() (Header, error) {
	const op fault.Op = "sending.begin"
	got := make([]byte, len(magic))
	n, err := io.ReadFull(r.in, got)
	switch {
	case n < len(got) && string(got[:n]) == magic[:n] && isEnd(err):
		return Header{}, r.cut(err)
	case n < len(got) && !isEnd(err):
		return Header{}, fault.FromOS(op, "the stream", err)
	case n < len(got) || string(got[:n-1]) != magic[:n-1]:
		return Header{}, fault.E(fault.Corrupt, op, "", "this is no stream that `cartwheel snapshot send` wrote")
	case got[n-1] != magic[n-1]:
		return Header{}, fault.Errorf(fault.NewerVersion, op, "", "the stream is of version %q, and this program reads %q: install the newer program", got[n-1:], magic[n-1:])
	}
	r.chain, r.end = chunk.Sum(got), int64(n)
	first, err := r.next()
	if err != nil {
		return Header{}, err
	}
	if first.kind != recordHeader {
		return Header{}, fault.E(fault.Corrupt, op, "", "the stream does not begin with a header")
	}
	return decodeHeader(first.body)
}

func isEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// cut is the error of a stream that ends within a record, or before its end: Closed.
func (r *reader) cut(err error) error {
	if !isEnd(err) {
		return fault.FromOS("sending.next", "the stream", err)
	}
	return fault.Errorf(fault.Closed, "sending.next", "", "the stream ends before its end: %d bytes of it are whole", r.end)
}

// next returns the next record. Errors: Closed, where the stream was cut; Corrupt, where its
// sum is another one; and those of reading.
func (r *reader) next() (record, error) {
	const op fault.Op = "sending.next"
	var head [headBytes]byte
	if _, err := io.ReadFull(r.in, head[:]); err != nil {
		return record{}, r.cut(err)
	}
	n := little.Uint32(head[:])
	damaged := fault.E(fault.Corrupt, op, "", fmt.Sprintf("the stream is damaged behind byte %d", r.end))
	if n > maxBody {
		return record{}, damaged
	}
	if cap(r.buf) < int(n)+sumBytes {
		r.buf = make([]byte, n+sumBytes)
	}
	b := r.buf[:n+sumBytes]
	if _, err := io.ReadFull(r.in, b); err != nil {
		return record{}, r.cut(err)
	}
	chain := chunk.SumParts(r.chain[:], head[:], b[:n])
	if string(chain[:sumBytes]) != string(b[n:]) {
		return record{}, damaged
	}
	r.end += int64(headBytes) + int64(len(b))
	r.records++
	out := record{head[4], b[:n]}
	switch out.kind {
	case recordData:
		r.bytes += uint64(max(int(n)-8-chunk.AddressSize, 0))
	case recordEnd:
		e, err := decodeEnd(out.body)
		if err != nil {
			return out, err
		}
		if e.records != r.records-1 || e.bytes != r.bytes || e.sum != r.chain {
			return out, damaged
		}
	}
	r.chain = chain
	return out, nil
}
