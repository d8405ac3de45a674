package pack

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/store/disk"
)

const (
	indexMagic  = 0x31584957_4c524143 // "CARLWIX1"
	indexHeader = 48
)

// load opens the packs and fills the index.
func (p *Packs) load() error {
	if err := p.d.MakeDir(disk.PackDir, folder); err != nil {
		return err
	}
	names, err := p.d.List(folder)
	if err != nil {
		return err
	}
	for _, name := range names {
		var id uint32
		if _, err := fmt.Sscanf(name, "%06d.pack", &id); err != nil || !strings.HasSuffix(name, ".pack") {
			if isStray(name, names) {
				// Best effort: it takes space and does no harm.
				_ = p.d.Remove(disk.IndexRemove, folder+"/"+name)
			}
			continue
		}
		p.last = max(p.last, id)
		if err := p.loadPack(id); err != nil {
			return err
		}
	}
	return nil
}

// isStray reports whether a file is an index without its pack, or a half of one.
func isStray(name string, names []string) bool {
	if base, ok := strings.CutSuffix(name, ".idx"); ok {
		return !slices.Contains(names, base+".pack")
	}
	return strings.HasSuffix(name, ".idx.tmp")
}

func (p *Packs) loadPack(id uint32) error {
	f := &file{id: id, next: 1}
	f.turn = sync.NewCond(&f.mu)
	r, err := p.d.Open(disk.PackOpen, packName(id), disk.ReadOnly)
	if err != nil {
		return err
	}
	f.r = r
	head := make([]byte, sectorSize)
	if _, err := r.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		r.Close()
		return fault.Wrap(fault.IO, "pack.Open", packName(id), err)
	}
	h, ok, err := decodePackHead(head, packName(id))
	if err == nil && ok && h.id != id {
		err = fault.Errorf(fault.Corrupt, "pack.Open", packName(id), "this is pack %d under another's name", h.id)
	}
	if err != nil || !ok {
		r.Close()
		if err == nil && allZero(head) {
			return nil // begun and never used
		}
		if err == nil {
			p.opts.Logger.Warn("a pack has lost its header; its chunks count as missing", slog.String("pack", packName(id)))
		}
		return err
	}
	f.key = h.key
	if f.size, err = r.Size(); err != nil {
		r.Close()
		return err
	}
	sealed, err := p.readIndex(f)
	if err == nil && !sealed {
		err = p.scan(f)
	}
	if err == nil && !sealed {
		f.w, err = p.d.Open(disk.PackOpen, packName(id), disk.Direct)
	}
	if err != nil {
		r.Close()
		return err
	}
	p.enter(f, sealed)
	return nil
}

// enter puts a loaded pack's chunks into the index. Where a chunk is in two
// packs the later wins: it was written because the earlier was damaged.
func (p *Packs) enter(f *file, sealed bool) {
	for i := range f.chunks {
		c := &f.chunks[i]
		at := newLocation(f.id, c.offset, int(c.length))
		if p.index.add(&c.address, at) {
			p.bytes.Add(int64(c.length))
		} else if old, ok := p.index.get(&c.address); ok {
			p.index.replace(&c.address, old, at)
		}
	}
	p.addFileLocked(f)
	f.looked.Store(neverLooked)
	if sealed {
		f.chunks, f.full = nil, true
		return
	}
	if c := p.current; c != nil && c.finish() {
		p.sealer.Go(func() { p.seal(c) })
	}
	p.current = f
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// scan walks the batches of a pack behind f.next. A batch that a crash cut
// short is passed over, since a later one may have been acknowledged.
func (p *Packs) scan(f *file) error {
	s := scanner{f: f, sector: f.next, end: f.size / sectorSize}
	for s.sector < s.end {
		ok, err := s.batch()
		if err != nil {
			return err
		}
		if !ok {
			s.sector++
			continue
		}
		f.next = s.sector
	}
	return nil
}

// scanner reads a pack's sectors in order.
type scanner struct {
	f           *file
	sector, end int64
	buf         []byte // sectors from start on
	start       int64
}

// at returns a sector, or nil if its sum is wrong. It is valid until the next
// call.
func (s *scanner) at(i int64) ([]byte, error) {
	if n := int64(len(s.buf)) / sectorSize; i < s.start || i >= s.start+n {
		most := int(min(readMost, (s.end-i)*sectorSize))
		raw := slices.Grow(s.buf[:0], most)[:most]
		got, err := s.f.r.ReadAt(raw, i*sectorSize)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fault.Wrap(fault.IO, "pack.Open", packName(s.f.id), err)
		}
		clear(raw[got:])
		s.buf, s.start = raw, i
	}
	b := s.buf[(i-s.start)*sectorSize:][:sectorSize]
	if !sectorGood(b, s.f.key, i) {
		return nil, nil
	}
	return b, nil
}

// batch tries to read a batch at the scanner's sector. If its directory is
// whole it enters those chunks whose sectors are all good, and goes behind it.
func (s *scanner) batch() (bool, error) {
	b, err := s.at(s.sector)
	if b == nil || err != nil {
		return false, err
	}
	h, ok := decodeBatchHead(b, s.f.key, s.sector)
	if !ok || s.sector+int64(h.sectors) > s.end || int64(h.count)*entrySize > int64(h.sectors)*sectorSize {
		return false, nil
	}
	need := batchHeader + int64(h.count)*entrySize
	dir := make([]byte, 0, need+sectorSize)
	good := make([]bool, h.sectors)
	for i := range int64(h.sectors) {
		if b, err = s.at(s.sector + i); err != nil {
			return false, err
		}
		good[i] = b != nil
		if int64(len(dir)) >= need {
			continue
		}
		if b == nil {
			return false, nil // the directory is damaged
		}
		dir = append(dir, b[:sectorData]...)
	}
	s.enter(dir[batchHeader:need], int(h.count), good)
	s.sector += int64(h.sectors)
	return true, nil
}

func (s *scanner) enter(dir []byte, count int, good []bool) {
	lengths := func(i int) int {
		_, n, _ := decodeEntry(dir[i*entrySize:])
		return int(n)
	}
	base := s.sector * sectorData
	offsets, sectors := layout(base, lengths, count)
	if sectors != int64(len(good)) {
		return
	}
	for i := range count {
		a, n, _ := decodeEntry(dir[i*entrySize:])
		from, to := (offsets[i]-base)/sectorData, (offsets[i]-base+int64(n)+sectorData-1)/sectorData
		if n > 0 && !slices.Contains(good[from:to], false) {
			s.f.chunks = append(s.f.chunks, placed{a, offsets[i], n})
		}
	}
}

// seal makes a full pack durable, writes its index and closes it for writing.
func (p *Packs) seal(f *file) {
	err := p.syncFile(f)
	if err == nil {
		err = p.writeIndex(f)
	}
	if err != nil {
		// Without an index the pack is scanned at the next start: nothing is lost.
		p.opts.Logger.Warn("a full pack could not be sealed", slog.String("pack", packName(f.id)), logattr.Err(err))
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.running {
		f.turn.Wait()
	}
	if f.w != nil {
		f.w.Close()
		f.w = nil
	}
	f.chunks = nil
	f.turn.Broadcast()
}

// writeIndex writes the list of a pack's chunks beside it.
func (p *Packs) writeIndex(f *file) error {
	f.mu.Lock()
	b := make([]byte, indexHeader, indexHeader+len(f.chunks)*entrySize)
	slices.SortFunc(f.chunks, func(x, y placed) int { return cmp.Compare(x.offset, y.offset) })
	var entry [entrySize]byte
	for i := range f.chunks {
		c := &f.chunks[i]
		encodeEntry(entry[:], &c.address, c.length, uint32(c.offset/unit))
		b = append(b, entry[:]...)
	}
	full := uint32(0)
	if f.full {
		full = 1
	}
	binary.LittleEndian.PutUint64(b, indexMagic)
	binary.LittleEndian.PutUint32(b[8:], version)
	binary.LittleEndian.PutUint32(b[12:], full)
	binary.LittleEndian.PutUint64(b[16:], f.key)
	binary.LittleEndian.PutUint64(b[24:], uint64(f.next))
	binary.LittleEndian.PutUint32(b[32:], uint32(len(f.chunks)))
	f.mu.Unlock()
	binary.LittleEndian.PutUint32(b[40:], crc32.Checksum(b[indexHeader:], castagnoli))
	binary.LittleEndian.PutUint32(b[44:], crc32.Checksum(b[:44], castagnoli))
	temp := indexName(f.id) + ".tmp"
	w, err := p.d.Open(disk.IndexOpen, temp, disk.Create)
	if err != nil {
		return err
	}
	if err = w.WriteAt(disk.IndexWrite, b, 0); err == nil {
		err = w.Sync(disk.IndexSync)
	}
	w.Close()
	if err == nil {
		err = p.d.Rename(disk.IndexRename, temp, indexName(f.id))
	}
	if err == nil {
		err = p.d.SyncDir(disk.PackSyncDir, folder)
	}
	return err
}

// readIndex loads a pack's index, if there is a whole one that belongs to it.
// It reports whether the pack is sealed; otherwise f.next says where to scan on.
func (p *Packs) readIndex(f *file) (sealed bool, err error) {
	r, err := p.d.Open(disk.IndexOpen, indexName(f.id), disk.ReadOnly)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer r.Close()
	size, err := r.Size()
	if err != nil {
		return false, err
	}
	b := make([]byte, size)
	if _, err := r.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return false, nil // the pack itself tells the same
	}
	if len(b) < indexHeader || binary.LittleEndian.Uint64(b) != indexMagic ||
		binary.LittleEndian.Uint32(b[8:]) != version || binary.LittleEndian.Uint64(b[16:]) != f.key ||
		binary.LittleEndian.Uint32(b[44:]) != crc32.Checksum(b[:44], castagnoli) {
		return false, nil
	}
	count := int64(binary.LittleEndian.Uint32(b[32:]))
	body := b[indexHeader:]
	if int64(len(body)) < count*entrySize {
		return false, nil
	}
	body = body[:count*entrySize]
	if binary.LittleEndian.Uint32(b[40:]) != crc32.Checksum(body, castagnoli) {
		return false, nil
	}
	for ; len(body) > 0; body = body[entrySize:] {
		a, n, at := decodeEntry(body)
		f.chunks = append(f.chunks, placed{a, int64(at) * unit, n})
	}
	f.next = int64(binary.LittleEndian.Uint64(b[24:]))
	return binary.LittleEndian.Uint32(b[12:]) == 1, nil
}
