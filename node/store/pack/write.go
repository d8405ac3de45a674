package pack

import (
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/store/disk"
)

// writeBuffer is the size of one write to a pack.
const writeBuffer = 1 << 20

// write gives a batch a place and writes it; it is not durable yet. The pack's
// flight ends with publish, or here on an error. A new pack leaves so many bytes
// of the file system free.
func (p *Packs) write(b *batch, spare int64) (*file, error) {
	f, err := p.reserve(b, spare)
	if err != nil {
		return nil, err
	}
	buf := p.buffers.Get().(*[]byte)
	defer p.buffers.Put(buf)
	s := sealing{f: f, buf: *buf, sector: b.sector, date: p.opts.Wall()}
	if err := s.batch(b); err != nil {
		if f.release() {
			p.sealer.Go(func() { p.seal(f) })
		}
		if fault.Is(err, fault.NoSpace) {
			return nil, err // the place stays unused; nothing was promised
		}
		return nil, p.fail(err)
	}
	f.mu.Lock()
	f.written++
	f.mu.Unlock()
	return f, nil
}

// sealing lays a stream into sectors and writes them in large pieces.
type sealing struct {
	f      *file
	buf    []byte
	sector int64 // of the start of buf
	at     int   // bytes of buf in use, sums included
	put    int64 // bytes of stream written
	date   time.Time
}

func (s *sealing) batch(b *batch) error {
	var head [batchHeader]byte
	h := batchHead{sectors: uint32(b.sectors), count: uint32(b.count()), written: uint64(s.date.Unix())}
	h.encode(head[:], s.f.key, b.sector)
	if err := s.write(head[:]); err != nil {
		return err
	}
	var entry [entrySize]byte
	for i := range b.addresses {
		encodeEntry(entry[:], &b.addresses[i], uint32(len(b.bodies[i])), 0)
		if err := s.write(entry[:]); err != nil {
			return err
		}
	}
	base := b.sector * sectorData
	var gap [unit]byte
	for i, body := range b.bodies {
		if err := s.write(gap[:b.offsets[i]-base-s.put]); err != nil {
			return err
		}
		if err := s.write(body); err != nil {
			return err
		}
	}
	return s.close()
}

// write adds bytes to the stream.
func (s *sealing) write(p []byte) error {
	s.put += int64(len(p))
	for len(p) > 0 {
		used := s.at % sectorSize
		n := copy(s.buf[s.at:s.at+sectorData-used], p)
		p = p[n:]
		s.at += n
		if used+n == sectorData {
			if err := s.seal(); err != nil {
				return err
			}
		}
	}
	return nil
}

// seal sums the sector that is full and writes the buffer if that is full too.
func (s *sealing) seal() error {
	start := s.at - sectorData
	sealSector(s.buf[start:start+sectorSize], s.f.key, s.sector+int64(start/sectorSize))
	s.at = start + sectorSize
	if s.at < len(s.buf) {
		return nil
	}
	return s.flush()
}

func (s *sealing) flush() error {
	if s.at == 0 {
		return nil
	}
	s.f.mu.Lock()
	w := s.f.w
	s.f.mu.Unlock()
	err := w.WriteAt(disk.PackWrite, s.buf[:s.at], s.sector*sectorSize)
	s.sector += int64(s.at / sectorSize)
	s.at = 0
	return err
}

// close fills the last sector with zeros and writes the rest.
func (s *sealing) close() error {
	if used := s.at % sectorSize; used > 0 {
		rest := s.buf[s.at : s.at+sectorData-used]
		clear(rest)
		s.at += len(rest)
		if err := s.seal(); err != nil {
			return err
		}
	}
	return s.flush()
}

// PutLazy takes chunks that the journal already holds: they are readable on
// return, and durable here after the next Sync; until then the journal must
// keep them. Nobody may change the bodies afterwards: they stay in memory, with
// what they are parts of, until some StageBytes of them are written together.
// While the disk is full they stay there: PutLazy takes them all the same, since
// they are committed.
func (p *Packs) PutLazy(addresses []chunk.Address, bodies [][]byte) error {
	if err := checkPairs("pack.PutLazy", addresses, bodies); err != nil {
		return err
	}
	for i := range addresses {
		p.pins.add(&addresses[i])
		if p.present(&addresses[i]) {
			continue
		}
		if err := p.stage.add(&addresses[i], bodies[i]); err != nil {
			return err
		}
	}
	return nil
}
