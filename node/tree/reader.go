package tree

import (
	"encoding/binary"

	"cartwheel.dev/geo-config/fault"
)

// reader decodes; after the first thing that does not fit it is bad and
// returns zeros.
type reader struct {
	data []byte
	bad  bool
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.data) {
		r.bad, r.data = true, nil
		return make([]byte, min(max(n, 0), 64))
	}
	b := r.data[:n:n]
	r.data = r.data[n:]
	return b
}

func (r *reader) byte() byte     { return r.take(1)[0] }
func (r *reader) uint64() uint64 { return binary.BigEndian.Uint64(r.take(8)) }
func (r *reader) time() int64    { return int64(binary.LittleEndian.Uint64(r.take(8))) }

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.data)
	if n <= 0 {
		r.bad, r.data = true, nil
		return 0
	}
	r.data = r.data[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.data)
	if n <= 0 {
		r.bad, r.data = true, nil
		return 0
	}
	r.data = r.data[n:]
	return v
}

func (r *reader) uint32() uint32 {
	v := r.uvarint()
	if v > 1<<32-1 {
		r.bad = true
	}
	return uint32(v)
}

// count reads a number of things of at least so many bytes each; one that the
// rest cannot hold is bad, so that nobody allocates for it.
func (r *reader) count(each int) int {
	v := r.uvarint()
	if v > uint64(len(r.data)/each) {
		r.bad, r.data = true, nil
		return 0
	}
	return int(v)
}

func (r *reader) bytes() []byte { return r.take(r.count(1)) }

func (r *reader) done() bool { return !r.bad && len(r.data) == 0 }

func newer(op fault.Op, subject string, got, know byte) error {
	if got > know {
		return fault.Errorf(fault.NewerVersion, op, subject, "format %d is newer than this program knows (%d): upgrade it", got, know)
	}
	return fault.E(fault.Corrupt, op, subject, "the record is malformed")
}

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}
