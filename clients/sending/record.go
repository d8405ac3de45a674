package sending

import (
	"encoding/binary"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
)

// Kinds of records, as docs/formats/sent.md has them.
const (
	recordHeader  = 1
	recordObject  = 2
	recordData    = 3
	recordKept    = 4
	recordRemoved = 5
	recordLink    = 6
	recordEnd     = 7
)

// Bits of a record's first byte.
const (
	flagWhole = 1
	flagWas   = 2
)

var little = binary.LittleEndian

func appendText(dst []byte, text string) []byte {
	return append(little.AppendUint32(dst, uint32(len(text))), text...)
}

func (h *Header) encode() []byte {
	b := []byte(nil)
	for _, v := range []uint64{uint64(h.Time), uint64(h.Object), uint64(h.BaseTime), uint64(h.BaseObject), h.Names} {
		b = little.AppendUint64(b, v)
	}
	return appendText(appendText(appendText(b, h.Name), h.Base), h.Path)
}

func decodeHeader(body []byte) (Header, error) {
	d := decoder{rest: body}
	h := Header{Time: hlc.Time(d.u64()), Object: ids.Object(d.u64()), BaseTime: hlc.Time(d.u64()), BaseObject: ids.Object(d.u64()), Names: d.u64()}
	h.Name, h.Base, h.Path = d.text(), d.text(), d.text()
	return h, d.done(h.Time != 0)
}

// appendWas writes what was there behind the flags that say so.
func appendWas(dst []byte, w *was) []byte {
	if w == nil {
		return dst
	}
	dst = little.AppendUint32(dst, w.kind)
	return little.AppendUint64(little.AppendUint64(dst, w.size), uint64(w.mtime))
}

func flags(whole bool, w *was) byte {
	f := byte(0)
	if whole {
		f |= flagWhole
	}
	if w != nil {
		f |= flagWas
	}
	return f
}

func (o *object) encode() []byte {
	b := appendText([]byte{flags(o.whole, o.was)}, o.path)
	b = appendWas(b, o.was)
	for _, v := range []uint32{o.mode, o.uid, o.gid} {
		b = little.AppendUint32(b, v)
	}
	for _, v := range []uint64{uint64(o.mtime), o.size, o.device} {
		b = little.AppendUint64(b, v)
	}
	b = little.AppendUint32(appendText(b, o.target), uint32(len(o.xattrs)))
	for _, x := range o.xattrs {
		b = appendText(appendText(b, x.name), string(x.value))
	}
	return b
}

func decodeObject(body []byte) (*object, error) {
	d := decoder{rest: body}
	f := d.u8()
	o := &object{path: d.text(), whole: f&flagWhole != 0, was: d.was(f)}
	o.mode, o.uid, o.gid = d.u32(), d.u32(), d.u32()
	o.mtime, o.size, o.device = int64(d.u64()), d.u64(), d.u64()
	o.target = d.text()
	for n := d.u32(); n > 0 && !d.bad; n-- {
		o.xattrs = append(o.xattrs, xattr{d.text(), []byte(d.text())})
	}
	fits := o.whole
	if !fits && o.was != nil { // attributes alone: of what is there
		fits = o.was.kind == o.mode&typeMask && (o.isDir() || o.isRegular())
	}
	return o, d.done(fits && isPath(o.path) && int64(o.size) >= 0 && modeOf(o.fileMode()) == o.mode)
}

func (r *removed) encode() []byte {
	return appendWas(appendText([]byte{flagWas}, r.path), &r.was)
}

func decodeRemoved(body []byte) (*removed, error) {
	d := decoder{rest: body}
	f := d.u8()
	r := &removed{path: d.text()}
	if w := d.was(f); w != nil {
		r.was = *w
	}
	return r, d.done(isPath(r.path) && f&flagWas != 0)
}

func (l *link) encode() []byte {
	return appendWas(appendText(appendText([]byte{flags(true, l.was)}, l.path), l.first), l.was)
}

func decodeLink(body []byte) (*link, error) {
	d := decoder{rest: body}
	f := d.u8()
	l := &link{path: d.text(), first: d.text(), was: d.was(f)}
	return l, d.done(isPath(l.path) && isPath(l.first) && l.path != "" && before(l.first, l.path))
}

// data is a piece of a file, or a range of the base's.
type data struct {
	offset uint64
	name   chunk.Address
	bytes  []byte // of a piece; valid until the next record is read
	length uint64 // of a range
}

func encodeKept(offset, length uint64, name chunk.Address) []byte {
	b := little.AppendUint64(little.AppendUint64(nil, offset), length)
	return append(b, name[:]...)
}

func decodeData(body []byte) (data, error) {
	d := decoder{rest: body}
	x := data{offset: d.u64(), name: d.address()}
	x.bytes, d.rest = d.rest, nil
	return x, d.done(len(x.bytes) > 0 && len(x.bytes) <= pieceBytes)
}

func decodeKept(body []byte) (data, error) {
	d := decoder{rest: body}
	x := data{offset: d.u64(), length: d.u64(), name: d.address()}
	return x, d.done(x.length > 0 && x.length <= keptBytes)
}

// end is the last record: what came before it.
type end struct {
	records, bytes uint64
	sum            chunk.Address
}

func (e *end) encode() []byte {
	return append(little.AppendUint64(little.AppendUint64(nil, e.records), e.bytes), e.sum[:]...)
}

func decodeEnd(body []byte) (end, error) {
	d := decoder{rest: body}
	e := end{d.u64(), d.u64(), d.address()}
	return e, d.done(true)
}

// decoder takes values off a body. Once one is missing, all further ones are zero.
type decoder struct {
	rest []byte
	bad  bool
}

// take returns the next bytes.
func (d *decoder) take(n uint32) []byte {
	if uint64(len(d.rest)) < uint64(n) {
		d.bad, d.rest = true, nil
		return nil
	}
	out := d.rest[:n]
	d.rest = d.rest[n:]
	return out
}

func (d *decoder) u8() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) u32() uint32 {
	if b := d.take(4); b != nil {
		return little.Uint32(b)
	}
	return 0
}

func (d *decoder) u64() uint64 {
	if b := d.take(8); b != nil {
		return little.Uint64(b)
	}
	return 0
}

func (d *decoder) text() string { return string(d.take(d.u32())) }

func (d *decoder) address() (a chunk.Address) {
	copy(a[:], d.take(chunk.AddressSize))
	return a
}

func (d *decoder) was(flags byte) *was {
	if flags&flagWas == 0 {
		return nil
	}
	return &was{d.u32(), d.u64(), int64(d.u64())}
}

// done answers Corrupt unless the body was used up exactly and what it says makes sense.
func (d *decoder) done(sense bool) error {
	if d.bad || len(d.rest) > 0 || !sense {
		return fault.E(fault.Corrupt, "sending.done", "", "a record of the stream is malformed")
	}
	return nil
}
