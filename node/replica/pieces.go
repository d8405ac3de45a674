package replica

import "encoding/binary"

const (
	// shareFrom is the size of an entry's data from which Pieces refers to it.
	shareFrom = 1 << 10
	// piecesRoom is how much Pieces allocates at once for what it copies.
	piecesRoom = 2 << 10
	// headRoom is about what an entry or a message takes beside its bytes.
	headRoom = 128
)

// Pieces encodes messages and records into slices that make up the encoding
// end to end: its own for what is small, and entries' data where it is, which
// nobody may change as long as the slices are used. They are never written to
// again. The zero Pieces is ready; one goroutine uses it.
type Pieces struct {
	list [][]byte
	own  []byte
	open int // where in own the next piece begins
	size int
}

// Message adds what AppendMessage appends.
func (p *Pieces) Message(m *Message) {
	p.room(headRoom)
	if m.Control() {
		p.own = appendControl(p.own, m)
		return
	}
	p.own = appendHead(p.own, m)
	for _, e := range m.Entries {
		p.entry(e)
	}
	p.own = appendTrailer(p.own, m)
}

// Record adds what AppendRecord appends.
func (p *Pieces) Record(r *Record) {
	p.room(headRoom)
	if r.Kind != RecordEntry {
		p.own = AppendRecord(p.own, r)
		return
	}
	p.own = append(p.own, byte(r.Kind))
	p.entry(r.Entry)
}

// Take returns the pieces since the last Take, and their length in all.
func (p *Pieces) Take() ([][]byte, int) {
	p.cut()
	list, size := p.list, p.size
	p.list, p.size = nil, 0
	return list, size
}

func (p *Pieces) entry(e *Entry) {
	shared := len(e.Data) >= shareFrom
	need := headRoom + len(e.Result) + len(e.Chunks)
	if !shared {
		need += len(e.Data)
	}
	p.room(need)
	p.own = binary.AppendUvarint(e.appendHead(p.own), uint64(len(e.Data)))
	if shared {
		p.cut()
		p.add(e.Data)
	} else {
		p.own = append(p.own, e.Data...)
	}
	p.own = appendBytes(p.own, e.Chunks)
}

// room makes room for n bytes, so that they are not copied while own grows.
func (p *Pieces) room(n int) {
	if cap(p.own)-len(p.own) >= n {
		return
	}
	p.cut()
	p.own, p.open = make([]byte, 0, max(n, piecesRoom)), 0
}

// cut ends the piece under way.
func (p *Pieces) cut() {
	if end := len(p.own); end > p.open {
		p.add(p.own[p.open:end:end])
		p.open = end
	}
}

func (p *Pieces) add(b []byte) {
	p.list = append(p.list, b)
	p.size += len(b)
}
