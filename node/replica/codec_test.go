package replica

import (
	"bytes"
	"reflect"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
)

func sampleRow() *geoconfig.SliceRow {
	return &geoconfig.SliceRow{ID: 7, Epoch: 9, Active: "a", Hear: 2, Closed: true, Generation: 3, Revision: 4,
		Policy: geoconfig.Policy{Home: "tokyo", Level: 3, Sites: 2, Kind: geoconfig.Ordinary, Coherence: 5},
		Members: []geoconfig.Member{{Node: "a", State: geoconfig.Normal, Incarnation: 1},
			{Node: "b", State: geoconfig.Failed, Incarnation: 1 << 40}}}
}

func sampleEntry(s ids.Serial) *Entry {
	return &Entry{Slice: 7, Serial: s, Epoch: 9, Time: 1 << 60, Client: 1<<64 - 1, Number: 300, Lowest: 299,
		Result: []byte("ok"), Data: []byte("data"), Chunks: make([]byte, 64), Level: 2}
}

func sampleMessages() []*Message {
	out := []*Message{
		{Kind: Beacon, Boot: 1 << 63, To: 2, Incarnation: 3, Sequence: 4, Excepted: []ids.Slice{1, 2, ids.MaxSlice}},
		{Kind: Answer, Boot: 5, Sequence: 6},
		{Kind: Append, Slice: 7, Epoch: 9, Boot: 1, Row: sampleRow(), Flags: FlagProbe, Serial: 1, Prev: 2, PrevEpoch: 3, Commit: 4,
			Entries: []*Entry{sampleEntry(3), sampleEntry(4)}},
		{Kind: Offer, Slice: 7, Epoch: 9, Serial: 5, Leases: []byte("leases")},
	}
	for k := Ack; k <= Taken; k++ {
		out = append(out, &Message{Kind: k, Slice: 1, Epoch: 2, Boot: 3, Serial: 4, SerialEpoch: 5, Prev: 6, PrevEpoch: 7, Commit: 8, CommitEpoch: 9})
	}
	return out
}

func TestDecodeMessage_ReadsWhatWasEncoded(t *testing.T) {
	var frame []byte
	for _, m := range sampleMessages() {
		frame = AppendMessage(frame, m)
	}
	for _, want := range sampleMessages() {
		got, rest, err := DecodeMessage(frame)
		if err != nil {
			t.Fatalf("kind %d: %v", want.Kind, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
		frame = rest
	}
	if len(frame) != 0 {
		t.Errorf("%d bytes left", len(frame))
	}
}

// TestDecodeMessage_SharesEntriesAndLeasesOnly writes over a frame after it was
// read.
func TestDecodeMessage_SharesEntriesAndLeasesOnly(t *testing.T) {
	for _, want := range sampleMessages() {
		if len(want.Entries)+len(want.Leases) > 0 {
			want.Entries, want.Leases = nil, nil
		}
		frame := AppendMessage(nil, want)
		got, _, err := DecodeMessage(frame)
		if err != nil {
			t.Fatal(err)
		}
		clear(frame)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("kind %d: got %+v once its frame was written over, want %+v", want.Kind, got, want)
		}
	}
}

func TestDecodeMessage_RefusesCutMessages(t *testing.T) {
	for _, m := range sampleMessages() {
		b := AppendMessage(nil, m)
		for n := range b {
			if _, _, err := DecodeMessage(b[:n]); err == nil {
				t.Errorf("kind %d cut to %d of %d bytes was taken", m.Kind, n, len(b))
			}
		}
	}
}

func TestDecodeRecord_ReadsWhatWasEncoded(t *testing.T) {
	for _, want := range []Record{
		{Kind: RecordEntry, Slice: 7, Entry: sampleEntry(1)},
		{Kind: RecordRow, Slice: 7, Row: sampleRow()},
		{Kind: RecordIntent, Slice: 7, Row: sampleRow()},
		{Kind: RecordReset, Slice: 7, Base: 1, BaseEpoch: 2, BaseTime: 3},
		{Kind: RecordComplete, Slice: 7, Base: 1, BaseEpoch: 2, BaseTime: 3},
	} {
		b := AppendRecord(nil, &want)
		got, err := DecodeRecord(b)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("kind %d: got %+v, %v, want %+v", want.Kind, got, err, want)
		}
		if _, err := DecodeRecord(append(b, 0)); err == nil {
			t.Errorf("kind %d: a byte too many was taken", want.Kind)
		}
	}
}

func FuzzMessage(f *testing.F) {
	for _, m := range sampleMessages() {
		f.Add(AppendMessage(nil, m))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, _, err := DecodeMessage(b)
		if err != nil {
			return
		}
		again, rest, err := DecodeMessage(AppendMessage(nil, m))
		if err != nil || len(rest) > 0 || !reflect.DeepEqual(m, again) {
			t.Errorf("%+v became %+v, %v", m, again, err)
		}
	})
}

func FuzzRecord(f *testing.F) {
	f.Add(AppendRecord(nil, &Record{Kind: RecordEntry, Entry: sampleEntry(1)}))
	f.Add(AppendRecord(nil, &Record{Kind: RecordRow, Row: sampleRow()}))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := DecodeRecord(b)
		if err != nil {
			return
		}
		again, err := DecodeRecord(AppendRecord(nil, &r))
		if err != nil || !reflect.DeepEqual(r, again) {
			t.Errorf("%+v became %+v, %v", r, again, err)
		}
	})
}

func TestClients_KnowRepeatedOperations(t *testing.T) {
	limits := Limits{Clients: 10, ResultBytes: 1 << 20, ClientLife: 1000}
	var c clients
	c.init(&limits)
	var before hlc.Time
	apply := func(e *Entry) {
		c.apply(e, before)
		before = e.Time
	}
	apply(&Entry{Client: 5, Time: 1})
	for n := uint64(1); n <= 4; n++ {
		apply(&Entry{Client: 5, Number: n, Lowest: 1, Time: 2, Serial: ids.Serial(n), Result: []byte{byte(n)}})
	}
	apply(&Entry{Client: 5, Number: 6, Lowest: 3, Time: 3, Serial: 6})
	got := c.find(5, 3)
	if got == nil || got.result(2) != nil || got.result(3) == nil || got.result(5) != nil || got.result(6) == nil {
		t.Fatalf("after lowest 3: %+v", got)
	}
	if !bytes.Equal(got.result(4).bytes, []byte{4}) {
		t.Errorf("result of 4 is %v", got.result(4).bytes)
	}
	var copied clients
	copied.init(&limits)
	if err := copied.decode(c.encode(nil)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(copied.encode(nil), c.encode(nil)) {
		t.Error("the table changed by being copied")
	}
	if c.find(5, 1004) != nil {
		t.Error("a registration outlived its life")
	}
	for at := hlc.Time(304); at <= 1004; at += 350 { // no jump
		apply(&Entry{Client: 6, Time: at})
	}
	if len(c.byID) != 1 || c.find(6, 1004) == nil {
		t.Errorf("%d registrations, want only the new one", len(c.byID))
	}
	apply(&Entry{Client: 5, Number: 7, Time: 1005})
	if len(c.byID) != 1 {
		t.Error("an operation registered its client")
	}
}
