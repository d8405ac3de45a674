package memfs

// pageSize is the grain of holes.
const pageSize = 4096

type page [pageSize]byte

// content is a sparse file: pages that are missing are holes.
type content struct {
	size  int64
	pages map[int64]*page
}

func (c *content) blocks() uint64 { return uint64(len(c.pages)) * (pageSize / 512) }

// clear drops everything and answers how many bytes of pages it gave back.
func (c *content) clear() int64 {
	freed := int64(len(c.pages)) * pageSize
	c.pages, c.size = nil, 0
	return freed
}

// read fills buf from offset and answers how much.
func (c *content) read(offset int64, buf []byte) int {
	if offset >= c.size {
		return 0
	}
	buf = buf[:min(int64(len(buf)), c.size-offset)]
	for done := 0; done < len(buf); {
		at := offset + int64(done)
		within := int(at % pageSize)
		part := buf[done:min(len(buf), done+pageSize-within)]
		if p := c.pages[at/pageSize]; p != nil {
			copy(part, p[within:])
		} else {
			clear(part)
		}
		done += len(part)
	}
	return len(buf)
}

// write puts data at offset, and answers how many bytes of pages that took.
func (c *content) write(offset int64, data []byte) int64 {
	taken := int64(0)
	for done := 0; done < len(data); {
		at := offset + int64(done)
		p, fresh := c.page(at / pageSize)
		taken += fresh
		done += copy(p[at%pageSize:], data[done:])
	}
	c.size = max(c.size, offset+int64(len(data)))
	return taken
}

// lacking counts the bytes of pages that [offset, offset+length) still needs.
func (c *content) lacking(offset, length int64) int64 {
	lack := int64(0)
	for at := offset / pageSize; at*pageSize < offset+length; at++ {
		if c.pages[at] == nil {
			lack += pageSize
		}
	}
	return lack
}

// reserve makes pages for a range, and answers their bytes.
func (c *content) reserve(offset, length int64) int64 {
	taken := int64(0)
	for at := offset / pageSize; at*pageSize < offset+length; at++ {
		_, fresh := c.page(at)
		taken += fresh
	}
	return taken
}

func (c *content) page(at int64) (*page, int64) {
	if p := c.pages[at]; p != nil {
		return p, 0
	}
	if c.pages == nil {
		c.pages = map[int64]*page{}
	}
	p := new(page)
	c.pages[at] = p
	return p, pageSize
}

// punch makes a hole, and answers how many bytes of pages it gave back.
func (c *content) punch(offset, length int64) int64 {
	freed, end := int64(0), offset+length
	for at, p := range c.pages {
		from, to := at*pageSize, (at+1)*pageSize
		switch {
		case to <= offset || from >= end:
		case from >= offset && to <= end:
			delete(c.pages, at)
			freed += pageSize
		default:
			clear(p[max(from, offset)-from : min(to, end)-from])
		}
	}
	return freed
}

// truncate sets the size, and answers how many bytes of pages it gave back.
func (c *content) truncate(size int64) int64 {
	freed := int64(0)
	if size < c.size {
		freed = c.punch(size, c.roundUp()-size)
	}
	c.size = size
	return freed
}

// roundUp answers the end of the last page that may exist.
func (c *content) roundUp() int64 {
	end := c.size
	for at := range c.pages {
		end = max(end, (at+1)*pageSize)
	}
	return end
}

// seek finds the next data or hole at or behind offset; ok is false where
// there is none.
func (c *content) seek(offset int64, data bool) (int64, bool) {
	if offset < 0 || offset >= c.size {
		return 0, false
	}
	if !data {
		for c.pages[offset/pageSize] != nil && offset < c.size {
			offset = (offset/pageSize + 1) * pageSize
		}
		return min(offset, c.size), true
	}
	if c.pages[offset/pageSize] != nil {
		return offset, true
	}
	next, found := int64(0), false
	for at := range c.pages {
		if start := at * pageSize; start > offset && start < c.size && (!found || start < next) {
			next, found = start, true
		}
	}
	return next, found
}
