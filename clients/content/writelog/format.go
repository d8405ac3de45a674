package writelog

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"

	"cartwheel.dev/clients/content"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
)

// The format of a file: docs/formats/write-journal.md. Kinds below 64 are
// content.WriteKind.
const (
	magic     = "cartwheel wlog 1"
	headSize  = 4 + 4 + 1 + 5*8 // checksum, length of data, kind, five numbers
	maxData   = 16 << 20
	kindBegin = 64
	kindDone  = 65
)

func segmentName(number uint64) string { return fmt.Sprintf("%016x.wlog", number) }

// record is one entry of the journal.
type record struct {
	kind    byte
	object  geoconfig.ObjectID
	number  uint64
	version uint64
	offset  uint64 // of kindDone: the first number that is done
	length  uint64
	data    []byte
}

// head encodes everything but the data, which follows it.
func (r *record) head(dst []byte) []byte {
	at := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(r.data)))
	dst = append(dst, r.kind)
	for _, v := range [...]uint64{uint64(r.object), r.number, r.version, r.offset, r.length} {
		dst = binary.LittleEndian.AppendUint64(dst, v)
	}
	table := crc32.MakeTable(crc32.Castagnoli)
	binary.LittleEndian.PutUint32(dst[at:], crc32.Update(crc32.Update(0, table, dst[at+4:]), table, r.data))
	return dst
}

// decode reads the record at the start of b and returns its length, or 0 where
// there is none that is whole.
func decode(b []byte) (r record, n int) {
	if len(b) < headSize {
		return r, 0
	}
	size := binary.LittleEndian.Uint32(b[4:])
	if size > maxData || int(size) > len(b)-headSize {
		return r, 0
	}
	n = headSize + int(size)
	if crc32.Checksum(b[4:n], crc32.MakeTable(crc32.Castagnoli)) != binary.LittleEndian.Uint32(b) {
		return r, 0
	}
	u := func(i int) uint64 { return binary.LittleEndian.Uint64(b[9+8*i:]) }
	return record{
		kind: b[8], object: geoconfig.ObjectID(u(0)), number: u(1), version: u(2), offset: u(3), length: u(4), data: b[headSize:n:n],
	}, n
}

// load reads what is in the directory. A file's torn end was never
// acknowledged, and is cut off.
func (l *Log) load() ([]content.Leftover, error) {
	names, err := filepath.Glob(filepath.Join(l.dir, "*.wlog"))
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	left := leftovers{byObject: map[geoconfig.ObjectID]*content.Leftover{}}
	for _, name := range names {
		if err := l.read(name, &left); err != nil {
			return nil, err
		}
	}
	return left.list(), nil
}

func (l *Log) read(name string, left *leftovers) error {
	const op fault.Op = "writelog.Open"
	var number uint64
	if _, err := fmt.Sscanf(filepath.Base(name), "%016x.wlog", &number); err != nil {
		return fault.E(fault.Corrupt, op, name, "not a file of a write journal")
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	switch {
	case len(raw) < len(magic): // the process ended while it began the file
		return os.Remove(name)
	case string(raw[:len(magic)-1]) == magic[:len(magic)-1] && raw[len(magic)-1] > magic[len(magic)-1]:
		return fault.E(fault.NewerVersion, op, name, "this write journal is of a newer version: use that to commit it")
	case string(raw[:len(magic)]) != magic:
		return fault.E(fault.Corrupt, op, name, "not a file of a write journal")
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	s := &segment{number: number, file: f, size: int64(len(magic))}
	l.segments = append(l.segments, s)
	for {
		r, n := decode(raw[s.size:])
		if n == 0 {
			return f.Truncate(s.size)
		}
		s.size += int64(n)
		l.next = max(l.next, r.number+1)
		if left.add(&r) {
			s.live++
			l.live[r.object] = append(l.live[r.object], liveWrite{r.number, s})
		} else if r.kind == kindDone {
			l.finish(r.object, r.offset, r.number)
		}
	}
}

// leftovers gathers what is not done.
type leftovers struct {
	byObject map[geoconfig.ObjectID]*content.Leftover
	order    []geoconfig.ObjectID
}

// add takes a record down and reports whether it is a write.
func (v *leftovers) add(r *record) bool {
	o := v.byObject[r.object]
	if o == nil {
		o = &content.Leftover{Object: r.object}
		v.byObject[r.object] = o
		v.order = append(v.order, r.object)
	}
	o.Known = max(o.Known, r.version)
	switch r.kind {
	case kindBegin:
		o.Begun = max(o.Begun, r.number)
		return false
	case kindDone:
		o.Writes = slices.DeleteFunc(o.Writes, func(w content.Numbered) bool { return w.Number >= r.offset && w.Number <= r.number })
		return false
	}
	o.Writes = append(o.Writes, content.Numbered{Number: r.number, Written: content.Written{
		Object: r.object, Version: r.version, Kind: content.WriteKind(r.kind), Offset: r.offset, Length: r.length, Data: r.data,
	}})
	return true
}

func (v *leftovers) list() []content.Leftover {
	var out []content.Leftover
	for _, id := range v.order {
		if o := v.byObject[id]; len(o.Writes) > 0 {
			out = append(out, *o)
		}
	}
	return out
}
