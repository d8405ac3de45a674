package writelog

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/plant"
)

// load reads what is in the directory. A file's torn end was never
// acknowledged, and is cut off.
func (l *Log) load() ([]content.Leftover, error) {
	names, err := filepath.Glob(filepath.Join(l.dir, "*.wlog"))
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	left := leftovers{byObject: map[ids.Object]*content.Leftover{}}
	for _, name := range names {
		if err := l.read(name, &left); err != nil {
			return nil, err
		}
	}
	return left.list(), nil
}

func (l *Log) read(name string, left *leftovers) error {
	const op fault.Op = "writelog.read"
	var number uint64
	if _, err := fmt.Sscanf(filepath.Base(name), "%016x.wlog", &number); err != nil {
		return fault.E(fault.Corrupt, op, name, "not a file of a write journal")
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	const version = len(magic) - 1
	switch {
	case len(raw) < len(magic): // the process ended while it began the file
		return os.Remove(name)
	case string(raw[:version]) == magic[:version] && raw[version] > magic[version]:
		return fault.E(fault.NewerVersion, op, name, "this write journal is of a newer version: use that to commit it")
	case string(raw[:version]) == magic[:version] && raw[version] < magic[version]:
		return fault.E(fault.Corrupt, op, name, "this write journal is of an older version: use that to commit it")
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
		l.replay(&r, s, int64(n))
		left.add(&r)
		s.size += int64(n)
	}
}

// replay takes one record down in the table of live writes.
func (l *Log) replay(r *record, s *segment, size int64) {
	l.next = max(l.next, r.number+1)
	o := l.object(r.object)
	o.known = max(o.known, r.version)
	if r.first > 0 {
		l.finish(r.object, 0, r.first-1)
	}
	switch r.kind {
	case kindBegin:
		o.sent = begun(o.sent, content.Sent{Upto: r.number, MtimeNs: int64(r.offset)})
	case kindDone:
		l.finish(r.object, r.offset, r.number)
	default:
		l.add(r, s, s.size, size)
	}
	l.forget(r.object)
}

// leftovers gathers what is not done.
type leftovers struct {
	byObject map[ids.Object]*content.Leftover
	order    []ids.Object
}

// add takes a record down.
func (v *leftovers) add(r *record) {
	o := v.byObject[r.object]
	if o == nil {
		o = &content.Leftover{Object: r.object}
		v.byObject[r.object] = o
		v.order = append(v.order, r.object)
	}
	o.Known = max(o.Known, r.version)
	// A write and a note say what was done before them, in case the record of that
	// was lost.
	if r.first > 0 {
		drop(o, 0, r.first-1)
	}
	switch r.kind {
	case kindBegin:
		o.Sent = begun(o.Sent, content.Sent{Upto: r.number, MtimeNs: int64(r.offset)})
		return
	case kindDone:
		drop(o, r.offset, r.number)
		return
	}
	drop(o, r.number, r.number) // one that was moved to a later file is found twice
	w := content.Numbered{Number: r.number, Written: content.Written{
		Object: r.object, Version: r.version, Kind: content.WriteKind(r.kind), Offset: r.offset, Length: r.length, Data: r.data, Who: r.who,
	}}
	at, _ := slices.BinarySearchFunc(o.Writes, r.number, func(w content.Numbered, n uint64) int { return cmp.Compare(w.Number, n) })
	if plant.On(plant.WritelogTurnsRound) {
		at = 0
	}
	o.Writes = slices.Insert(o.Writes, at, w)
}

// drop removes the writes from..upto.
func drop(o *content.Leftover, from, upto uint64) {
	o.Writes = slices.DeleteFunc(o.Writes, func(w content.Numbered) bool { return w.Number >= from && w.Number <= upto })
}

func (v *leftovers) list() []content.Leftover {
	var out []content.Leftover
	for _, id := range v.order {
		if o := v.byObject[id]; len(o.Writes) > 0 {
			o.Sent = onTheWay(o.Sent, o.Writes[0].Number)
			out = append(out, *o)
		}
	}
	return out
}
