package replica

import (
	"bytes"
	"testing"
)

// largeEntry has data that is worth referring to.
func largeEntry() *Entry {
	e := sampleEntry(5)
	e.Data = bytes.Repeat([]byte("large"), shareFrom)
	return e
}

func TestPieces_EqualTheEncoding(t *testing.T) {
	messages := append(sampleMessages(),
		&Message{Kind: Append, Slice: 7, Epoch: 9, Entries: []*Entry{sampleEntry(4), largeEntry(), sampleEntry(6)}, Leases: []byte("l")})
	var p Pieces
	var all [][]byte
	var want []byte
	for _, m := range messages {
		p.Message(m)
		got, size := p.Take()
		alone := AppendMessage(nil, m)
		if joined := bytes.Join(got, nil); !bytes.Equal(joined, alone) || size != len(alone) {
			t.Errorf("kind %d: got %d bytes, told as %d, want %d: %x", m.Kind, len(joined), size, len(alone), joined)
		}
		all, want = append(all, got...), append(want, alone...)
	}
	for _, r := range []Record{
		{Kind: RecordEntry, Slice: 7, Entry: largeEntry()},
		{Kind: RecordEntry, Slice: 7, Entry: sampleEntry(1)},
		{Kind: RecordRow, Slice: 7, Row: sampleRow()},
		{Kind: RecordReset, Slice: 7, Base: 1, BaseEpoch: 2, BaseTime: 3},
	} {
		p.Record(&r)
		got, _ := p.Take()
		all, want = append(all, got...), AppendRecord(want, &r)
	}
	if !bytes.Equal(bytes.Join(all, nil), want) {
		t.Error("pieces changed after they were taken")
	}
}

func TestPieces_ReferToLargeData(t *testing.T) {
	e := largeEntry()
	var p Pieces
	p.Record(&Record{Kind: RecordEntry, Slice: 7, Entry: e})
	pieces, _ := p.Take()
	for _, b := range pieces {
		if &b[0] == &e.Data[0] && len(b) == len(e.Data) {
			return
		}
	}
	t.Errorf("none of the %d pieces is the entry's data itself", len(pieces))
}
