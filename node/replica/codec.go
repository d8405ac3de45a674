package replica

import (
	"encoding/binary"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
)

// Bounds of what a message may hold.
const (
	maxExcepted = 1 << 20
	maxEntries  = 1 << 16
	maxMembers  = 256
	maxName     = 256
	maxLeases   = 8 << 20
)

const hasRow = 0x80 // bit of the kind's byte

// AppendMessage appends the encoding of m (docs/formats/replica.md) to b.
// Encodings delimit themselves, so that several make up a frame.
func AppendMessage(b []byte, m *Message) []byte {
	if m.Control() {
		return appendControl(b, m)
	}
	b = appendHead(b, m)
	for _, e := range m.Entries {
		b = AppendEntry(b, e)
	}
	return appendTrailer(b, m)
}

func appendKind(b []byte, m *Message) []byte {
	kind := byte(m.Kind)
	if m.Row != nil {
		kind |= hasRow
	}
	return append(b, kind)
}

func appendControl(b []byte, m *Message) []byte {
	b = appendKind(b, m)
	b = binary.LittleEndian.AppendUint64(b, m.Boot)
	b = binary.LittleEndian.AppendUint64(b, m.To)
	b = binary.AppendUvarint(b, uint64(m.Incarnation))
	b = binary.AppendUvarint(b, m.Sequence)
	b = binary.AppendUvarint(b, uint64(len(m.Excepted)))
	for _, s := range m.Excepted {
		b = binary.AppendUvarint(b, uint64(s))
	}
	return b
}

// appendHead appends what stands before a message's entries.
func appendHead(b []byte, m *Message) []byte {
	b = append(appendKind(b, m), byte(m.Flags))
	b = binary.LittleEndian.AppendUint64(b, m.Boot)
	for _, v := range [...]uint64{uint64(m.Slice), uint64(m.Epoch), uint64(m.Serial), uint64(m.SerialEpoch),
		uint64(m.Prev), uint64(m.PrevEpoch), uint64(m.Commit), uint64(m.CommitEpoch)} {
		b = binary.AppendUvarint(b, v)
	}
	if m.Row != nil {
		b = AppendRow(b, m.Row)
	}
	return binary.AppendUvarint(b, uint64(len(m.Entries)))
}

// DecodeMessage reads one message from the front of b and returns what follows
// it. Its entries and leases share b's memory, which then must not be used again.
func DecodeMessage(b []byte) (*Message, []byte, error) {
	r := reader{b: b}
	kind := r.byte()
	m := &Message{Kind: MessageKind(kind &^ hasRow)}
	if m.Kind < Beacon || m.Kind > Taken {
		return nil, nil, fault.Errorf(fault.NewerVersion, "replica.DecodeMessage", "", "unknown message kind %d", m.Kind)
	}
	if m.Control() {
		r.control(m)
	} else {
		r.message(m, kind&hasRow != 0)
	}
	if r.bad {
		return nil, nil, fault.E(fault.Corrupt, "replica.DecodeMessage", "", "not a message")
	}
	return m, r.b, nil
}

func (r *reader) control(m *Message) {
	m.Boot, m.To = r.uint64(), r.uint64()
	m.Incarnation = ids.Incarnation(r.number())
	m.Sequence = r.number()
	n := r.uvarint(maxExcepted)
	if n > uint64(len(r.b)) {
		r.fail()
		return
	}
	if n > 0 {
		m.Excepted = make([]ids.Slice, n)
	}
	for i := range m.Excepted {
		m.Excepted[i] = ids.Slice(r.uvarint(uint64(ids.MaxSlice)))
	}
}

func (r *reader) message(m *Message, row bool) {
	m.Flags = Flags(r.byte())
	m.Boot = r.uint64()
	m.Slice = ids.Slice(r.uvarint(uint64(ids.MaxSlice)))
	m.Epoch = ids.Epoch(r.number())
	m.Serial, m.SerialEpoch = ids.Serial(r.number()), ids.Epoch(r.number())
	m.Prev, m.PrevEpoch = ids.Serial(r.number()), ids.Epoch(r.number())
	m.Commit, m.CommitEpoch = ids.Serial(r.number()), ids.Epoch(r.number())
	if row {
		m.Row = r.row()
	}
	n := r.uvarint(maxEntries)
	if n > uint64(len(r.b)) {
		r.fail()
		return
	}
	if n > 0 {
		block := make([]Entry, n)
		m.Entries = make([]*Entry, n)
		for i := range block {
			rest, err := decodeEntry(r.b, &block[i])
			if err != nil || block[i].Slice != m.Slice || (i > 0 && block[i].Serial != block[i-1].Serial+1) {
				r.fail()
				return
			}
			r.b = rest
			m.Entries[i] = &block[i]
		}
	}
	r.trailer(m)
	if m.Slice == 0 || (m.Row != nil && m.Row.ID != m.Slice) {
		r.fail()
	}
}

// appendTrailer appends the bytes that end a message: Leases, in an Ack Logged, and in
// an Append Term. A reader that does not know the latter ignores them.
func appendTrailer(b []byte, m *Message) []byte {
	switch v := uint64(0); m.Kind {
	case Ack, Append:
		if v = uint64(m.Logged); m.Kind == Append {
			v = uint64(m.Term)
		}
		if v > 0 {
			return appendBytes(b, binary.AppendUvarint(nil, v))
		}
	}
	return appendBytes(b, m.Leases)
}

func (r *reader) trailer(m *Message) {
	m.Leases = r.bytes(maxLeases)
	if m.Kind != Ack && m.Kind != Append || len(m.Leases) == 0 {
		return
	}
	in := reader{b: m.Leases}
	v := in.number()
	m.Leases = nil
	switch {
	case in.bad || len(in.b) > 0:
		r.fail()
	case m.Kind == Ack:
		m.Logged = ids.Serial(v)
	default:
		m.Term = ids.Epoch(v)
	}
}

// AppendRow appends the encoding of a slice row to b.
func AppendRow(b []byte, row *geoconfig.SliceRow) []byte {
	b = binary.AppendUvarint(b, uint64(row.ID))
	b = binary.AppendUvarint(b, uint64(row.Epoch))
	b = appendBytes(b, []byte(row.Active))
	b = binary.AppendUvarint(b, uint64(row.Hear))
	closed := byte(0)
	if row.Closed {
		closed = 1
	}
	b = append(b, closed, byte(row.Policy.Kind))
	b = binary.AppendUvarint(b, uint64(row.Generation))
	b = binary.AppendUvarint(b, uint64(row.Revision))
	b = appendBytes(b, []byte(row.Policy.Home))
	b = binary.AppendUvarint(b, uint64(row.Policy.Level))
	b = binary.AppendUvarint(b, uint64(row.Policy.Sites))
	b = binary.AppendUvarint(b, uint64(row.Policy.Coherence))
	b = binary.AppendUvarint(b, uint64(len(row.Members)))
	for _, m := range row.Members {
		b = appendBytes(b, []byte(m.Node))
		b = append(b, byte(m.State))
		b = binary.AppendUvarint(b, uint64(m.Incarnation))
	}
	return b
}

// DecodeRow reads one row from the front of b and returns what follows it.
func DecodeRow(b []byte) (*geoconfig.SliceRow, []byte, error) {
	r := reader{b: b}
	row := r.row()
	if r.bad {
		return nil, nil, fault.E(fault.Corrupt, "replica.DecodeRow", "", "not a slice row")
	}
	return row, r.b, nil
}

func (r *reader) row() *geoconfig.SliceRow {
	row := &geoconfig.SliceRow{}
	row.ID = ids.Slice(r.uvarint(uint64(ids.MaxSlice)))
	row.Epoch = ids.Epoch(r.number())
	row.Active = ids.Node(r.bytes(maxName))
	row.Hear = int(r.uvarint(maxMembers))
	row.Closed = r.byte() == 1
	row.Policy.Kind = geoconfig.Kind(r.byte())
	row.Generation = ids.Generation(r.number())
	row.Revision = ids.Revision(r.number())
	row.Policy.Home = ids.Site(r.bytes(maxName))
	row.Policy.Level = int(r.uvarint(maxMembers))
	row.Policy.Sites = int(r.uvarint(maxMembers))
	row.Policy.Coherence = Time(r.uvarint(1<<63 - 1))
	n := r.uvarint(maxMembers)
	for range n {
		if r.bad {
			break
		}
		m := geoconfig.Member{Node: ids.Node(r.bytes(maxName)), State: geoconfig.MemberState(r.byte())}
		m.Incarnation = ids.Incarnation(r.number())
		row.Members = append(row.Members, m)
	}
	if row.ID == 0 || row.Epoch == 0 {
		r.fail()
	}
	return row
}

// AppendRecord appends the encoding of a journal record to b.
func AppendRecord(b []byte, rec *Record) []byte {
	b = append(b, byte(rec.Kind))
	switch rec.Kind {
	case RecordEntry:
		return AppendEntry(b, rec.Entry)
	case RecordRow, RecordIntent:
		return AppendRow(b, rec.Row)
	}
	b = binary.AppendUvarint(b, uint64(rec.Slice))
	b = binary.AppendUvarint(b, uint64(rec.Base))
	b = binary.AppendUvarint(b, uint64(rec.BaseEpoch))
	return binary.LittleEndian.AppendUint64(b, uint64(rec.BaseTime))
}

// DecodeRecord reads a journal record that fills b, and shares b's memory.
func DecodeRecord(b []byte) (Record, error) {
	r := reader{b: b}
	rec := Record{Kind: RecordKind(r.byte())}
	switch rec.Kind {
	case RecordEntry:
		rec.Entry = new(Entry)
		if rest, err := decodeEntry(r.b, rec.Entry); err != nil || len(rest) > 0 {
			r.fail()
		}
		r.b = nil
		rec.Slice = rec.Entry.Slice
	case RecordRow, RecordIntent:
		rec.Row = r.row()
		rec.Slice = rec.Row.ID
	case RecordReset, RecordComplete:
		rec.Slice = ids.Slice(r.uvarint(uint64(ids.MaxSlice)))
		rec.Base, rec.BaseEpoch = ids.Serial(r.number()), ids.Epoch(r.number())
		rec.BaseTime = hlc.Time(r.uint64())
	default:
		return rec, fault.Errorf(fault.NewerVersion, "replica.DecodeRecord", "", "unknown record kind %d", rec.Kind)
	}
	if r.bad || len(r.b) > 0 {
		return rec, fault.E(fault.Corrupt, "replica.DecodeRecord", "", "not a record")
	}
	return rec, nil
}
