package chunk

// The cluster-wide parameters of content-defined chunking. They are part of
// the format: other ones would give equal content other names.
const (
	MinSize     = 16 << 10
	AverageSize = 64 << 10
	MaxSize     = 256 << 10
)

// Masks of FastCDC with normalisation level 2: below the average a boundary
// must match 18 bits of the fingerprint, above it 14, spread over 64 bits.
const (
	maskBelow = 0x9249249249249000
	maskAbove = 0x8888888888888800
)

// Splitter finds the boundaries of content-defined chunks (FastCDC, Xia et al.,
// USENIX ATC 2016) in a stream that arrives in pieces. It keeps a few words of
// state and no content, so nothing is copied: the caller keeps the pieces.
type Splitter struct {
	gear *[256]uint64
	fp   uint64
	pos  int // bytes of the current chunk already seen
}

// NewSplitter returns a Splitter that stands at the start of a chunk.
func NewSplitter() *Splitter { return &Splitter{gear: &gear} }

// Reset puts the Splitter at the start of a chunk.
func (s *Splitter) Reset() { s.fp, s.pos = 0, 0 }

// Pending is the number of bytes seen since the last boundary.
func (s *Splitter) Pending() int { return s.pos }

// Next takes the next piece of the stream. It returns how many bytes of it
// belong to the current chunk and whether that chunk ends there; where it
// does, the caller goes on with the rest of the piece. The count may be 0 with
// a boundary: the byte that shows a boundary belongs to the chunk after it.
// At the end of the stream what is pending is the last chunk.
func (s *Splitter) Next(data []byte) (n int, boundary bool) {
	start := s.pos
	if room := MaxSize - start; len(data) > room {
		data = data[:room]
	}
	i := 0
	if start < MinSize {
		i = min(MinSize-start, len(data))
	}
	if below := min(AverageSize-start, len(data)); i < below {
		j, fp, hit := scan(s.gear, data[i:below], s.fp, maskBelow)
		if hit {
			s.Reset()
			return i + j, true
		}
		i, s.fp = below, fp
	}
	if i < len(data) {
		j, fp, hit := scan(s.gear, data[i:], s.fp, maskAbove)
		if hit {
			s.Reset()
			return i + j, true
		}
		i, s.fp = len(data), fp
	}
	s.pos = start + i
	if s.pos == MaxSize {
		s.Reset()
		return i, true
	}
	return i, false
}

// scan rolls the gear fingerprint over data and stops before the byte that
// makes it match.
func scan(gear *[256]uint64, data []byte, fp, mask uint64) (int, uint64, bool) {
	i := 0
	for ; i+4 <= len(data); i += 4 {
		d := data[i : i+4 : i+4]
		fp = fp<<1 + gear[d[0]]
		if fp&mask == 0 {
			return i, fp, true
		}
		fp = fp<<1 + gear[d[1]]
		if fp&mask == 0 {
			return i + 1, fp, true
		}
		fp = fp<<1 + gear[d[2]]
		if fp&mask == 0 {
			return i + 2, fp, true
		}
		fp = fp<<1 + gear[d[3]]
		if fp&mask == 0 {
			return i + 3, fp, true
		}
	}
	for ; i < len(data); i++ {
		fp = fp<<1 + gear[data[i]]
		if fp&mask == 0 {
			return i, fp, true
		}
	}
	return i, fp, false
}

// Split cuts data that is whole in memory and calls fn with each chunk, which
// aliases data.
func Split(data []byte, fn func(piece []byte) error) error {
	s := NewSplitter()
	for len(data) > 0 {
		n, _ := s.Next(data)
		if err := fn(data[:n:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}
