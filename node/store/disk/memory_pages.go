package disk

import "bytes"

// pageBytes is how much of a file a copy shares or not.
const pageBytes = 8 * sectorBytes

// pages is the content of a file. Copies share what neither has changed, and
// what was never written takes no room: many copies of a disk cost little.
type pages struct {
	size int64
	list []*page // nil: zeros
}

// page is one piece of contents.
type page struct {
	shared bool // by several contents, at some time: not to be changed any more
	b      [pageBytes]byte
}

// grow makes the content at least size bytes long, with zeros.
func (p *pages) grow(size int64) {
	if size <= p.size {
		return
	}
	p.size = size
	if n := int((size+pageBytes-1)/pageBytes) - len(p.list); n > 0 {
		p.list = append(p.list, make([]*page, n)...)
	}
}

// cut takes what lies from size on away.
func (p *pages) cut(size int64) {
	if size >= p.size {
		return
	}
	p.size = size
	p.list = p.list[:(size+pageBytes-1)/pageBytes]
	if rest := size % pageBytes; rest > 0 && p.list[len(p.list)-1] != nil {
		clear(p.own(int64(len(p.list) - 1)).b[rest:])
	}
}

// own returns a page that may be changed.
func (p *pages) own(i int64) *page {
	switch was := p.list[i]; {
	case was == nil:
		p.list[i] = new(page)
	case was.shared:
		p.list[i] = &page{b: was.b}
	}
	return p.list[i]
}

// zeros is a page that was never written.
var zeros [pageBytes]byte

// write puts b at off and makes the content longer where it must be.
func (p *pages) write(b []byte, off int64) {
	p.grow(off + int64(len(b)))
	for len(b) > 0 {
		i, from := off/pageBytes, off%pageBytes
		n := min(len(b), int(pageBytes-from))
		if p.list[i] != nil || !bytes.Equal(b[:n], zeros[:n]) {
			copy(p.own(i).b[from:], b[:n])
		}
		b, off = b[n:], off+int64(n)
	}
}

// read fills b from off and returns how much there was.
func (p *pages) read(b []byte, off int64) int {
	if off >= p.size {
		return 0
	}
	b = b[:min(int64(len(b)), p.size-off)]
	for at := 0; at < len(b); {
		i, from := off/pageBytes, off%pageBytes
		n := min(len(b)-at, int(pageBytes-from))
		if have := p.list[i]; have != nil {
			copy(b[at:at+n], have.b[from:])
		} else {
			clear(b[at : at+n])
		}
		at, off = at+n, off+int64(n)
	}
	return len(b)
}

// copySector makes one sector as it is in from, as far as that goes.
func (p *pages) copySector(s int64, from *pages) {
	at := s * sectorBytes
	if at >= from.size {
		return
	}
	var b [sectorBytes]byte
	p.write(b[:from.read(b[:], at)], at)
}

// clone returns the same content.
func (p *pages) clone() pages {
	for _, g := range p.list {
		if g != nil && !g.shared {
			g.shared = true
		}
	}
	return pages{p.size, append([]*page(nil), p.list...)}
}
