package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/server/replog"
	"cartwheel.dev/node/store"
	"cartwheel.dev/node/store/meta"
)

// takeAll has a copy take every page of a state, and returns the rows that travelled.
func takeAll(t *testing.T, got *receiving, from *meta.Frozen, pageBytes int) (travelled, calls int) {
	t.Helper()
	return takeFrom(t, got, from, pageBytes, func(*pb.TransferRequest) {})
}

// takeFrom is takeAll from a source that understands of a request what is left of it.
func takeFrom(t *testing.T, got *receiving, from *meta.Frozen, pageBytes int, understands func(*pb.TransferRequest)) (travelled, calls int) {
	t.Helper()
	sender := NewSender(SenderOptions{PageBytes: pageBytes})
	req, err := got.old.first(got.old.there)
	if err != nil {
		t.Fatal(err)
	}
	for p := (operate.Page{}); ; {
		understands(req)
		answer := &pb.TransferResponse{}
		rows, err := sender.behind(from, req, p.End, answer)
		if err != nil {
			t.Fatal(err)
		}
		answer.Last = len(rows) == 0 && answer.End == nil
		var body []byte
		for i := range rows {
			body = appendRow(body, &rows[i])
		}
		travelled, calls = travelled+len(rows), calls+1
		if _, err := got.restore(answer, body, &p); err != nil {
			t.Fatal(err)
		}
		if err := p.Rows.Commit(); err != nil {
			t.Fatal(err)
		}
		if p.Last {
			return travelled, calls
		}
		if req, err = got.old.request(0, p.End); err != nil {
			t.Fatal(err)
		}
	}
}

// receivingFrom is a copy of the slice into a store.
func receivingFrom(to *store.Store, ranges int) *receiving {
	return &receiving{s: &Receiver{o: ReceiverOptions{Meta: to.Meta()}}, id: 7, peer: "source", old: old{db: to.Meta(), id: 7, ranges: ranges}}
}

// states are two stores with a slice whose states differ a little, as the seed has it.
func states(t *testing.T, seed uint64) (from, to *store.Store, rows int) {
	r := rand.New(rand.NewPCG(seed, 1))
	from, to = openedStore(t), openedStore(t)
	rows = 200 + r.IntN(1500)
	same := []*meta.Batch{from.Meta().NewBatch(), to.Meta().NewBatch()}
	put := func(b *meta.Batch, i int, value byte, at uint64) {
		t.Helper()
		var err error
		if key := fmt.Appendf(nil, "key %05d", i); i%3 == 0 {
			err = b.Set(7, key, bytes.Repeat([]byte{value}, 50+i%70))
		} else {
			err = b.Put(7, key, bytes.Repeat([]byte{value}, 50+i%70), at)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range rows {
		for _, b := range same {
			put(b, i, 1, uint64(i+1))
		}
	}
	for i, s := range []*store.Store{from, to} {
		if err := same[i].Commit(); err != nil {
			t.Fatal(err)
		}
		b := s.Meta().NewBatch()
		for range r.IntN(4) { // a run that the other has not
			first := r.IntN(rows)
			for n := range r.IntN(60) {
				put(b, first+n, byte(2+i), uint64(rows+1000+n))
			}
		}
		for range r.IntN(3) { // a hole
			first := r.IntN(rows)
			for n := range r.IntN(40) {
				if key := fmt.Appendf(nil, "key %05d", first+n); (first+n)%3 == 0 {
					if err := b.Unset(7, key); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		for n := range r.IntN(200) { // rows at the end
			put(b, rows+n, byte(2+i), uint64(rows+5000))
		}
		if err := replog.SaveBase(b, 7, replica.Snapshot{Serial: 90, Epoch: 1}); err != nil {
			t.Fatal(err)
		}
		if err := b.SetApplied(7, 90); err != nil {
			t.Fatal(err)
		}
		if err := b.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	return from, to, rows
}

// copyOver copies one store's state of the slice over that of another, and returns the
// rows that travelled, and the copy.
func copyOver(t *testing.T, from, to *store.Store, ranges, pageBytes int, build bool) (travelled, calls int, got *receiving) {
	t.Helper()
	frozen := from.Meta().Freeze()
	defer frozen.Close()
	got = receivingFrom(to, ranges)
	if err := got.old.keep(build); err != nil {
		t.Fatal(err)
	}
	travelled, calls = takeAll(t, got, frozen, pageBytes)
	return travelled, calls, got
}

// sums are those of the slice in two stores.
func sums(t *testing.T, a, b *store.Store) (x, y []byte) {
	t.Helper()
	for i, s := range []*store.Store{a, b} {
		frozen := s.Meta().Freeze()
		sum, err := sumOf(frozen, 7, replica.Snapshot{Serial: 90})
		_ = frozen.Close() // it was only read
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			x = sum
		} else {
			y = sum
		}
	}
	return x, y
}

func TestOld_ThePagesMakeItTheSource(t *testing.T) {
	kept := 0
	for seed := range uint64(25) {
		from, to, rows := states(t, seed)
		if a, b := sums(t, from, to); bytes.Equal(a, b) {
			t.Fatalf("seed %d: the states do not differ", seed)
		}
		travelled, calls, got := copyOver(t, from, to, 1000+int(seed)*300, 2000+int(seed%5)*4000, true)
		if a, b := sums(t, from, to); !bytes.Equal(a, b) {
			t.Errorf("seed %d: the copy differs (%d of %d rows travelled in %d calls)", seed, travelled, rows, calls)
		}
		kept += got.old.kept
	}
	if kept < 1000 {
		t.Errorf("of all states only %d rows were alike", kept)
	}
}

func TestOld_TravelsWhatDiffersAlone(t *testing.T) {
	from, to := openedStore(t), openedStore(t)
	for _, s := range []*store.Store{from, to} {
		b := s.Meta().NewBatch()
		for i := range 20000 {
			if err := b.Put(7, fmt.Appendf(nil, "key %05d", i), make([]byte, 100), uint64(i+1)); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	b := from.Meta().NewBatch()
	for _, i := range []int{9000, 9001, 15000} {
		if err := b.Put(7, fmt.Appendf(nil, "key %05d", i), []byte("new"), 50000); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Commit(); err != nil {
		t.Fatal(err)
	}
	travelled, calls, got := copyOver(t, from, to, 10<<10, 10<<10, true)
	if a, b := sums(t, from, to); !bytes.Equal(a, b) || travelled > 500 || calls > 50 || got.old.kept < 19000 {
		t.Errorf("%d rows travelled in %d calls and %d were alike, want about 400 of 20,000 to travel; equal: %v", travelled, calls, got.old.kept, bytes.Equal(a, b))
	}
	all, _, _ := copyOver(t, from, to, 10<<10, 10<<10, false)
	if a, b := sums(t, from, to); !bytes.Equal(a, b) || all < 20000 {
		t.Errorf("a copy that does not build on the old state: %d rows travelled, equal: %v", all, bytes.Equal(a, b))
	}
}

// TestOld_AnOlderSourceSendsAll copies from a node that compares no ranges.
func TestOld_AnOlderSourceSendsAll(t *testing.T) {
	for seed := range uint64(5) {
		from, to, rows := states(t, seed)
		frozen := from.Meta().Freeze()
		got := receivingFrom(to, 3000)
		if err := got.old.keep(true); err != nil {
			t.Fatal(err)
		}
		mark := to.Meta().NewBatch()
		if err := errors.Join(replog.SaveUnheld(mark, &replica.Entry{Slice: 7, Serial: 33, Epoch: 2}), mark.Commit()); err != nil { // by the log, meanwhile
			t.Fatal(err)
		}
		travelled, _ := takeFrom(t, got, frozen, 5000, func(req *pb.TransferRequest) { req.Have, req.More = nil, false })
		_ = frozen.Close() // it was only read
		notes := 0
		if err := replog.EachUnheld(to.Meta(), 7, func(replica.EntryID, []byte) { notes++ }); err != nil || notes != 1 {
			t.Errorf("seed %d: %d of this node's own notes are left, %v; want 1", seed, notes, err)
		}
		if a, b := sums(t, from, to); !bytes.Equal(a, b) || travelled < rows*9/10 {
			t.Errorf("seed %d: %d of %d rows travelled, equal: %v", seed, travelled, rows, bytes.Equal(a, b))
		}
	}
}

// TestOld_NotesTravel has the source note a chunk that is away: it is no part of the sum,
// and the copy has to know.
func TestOld_NotesTravel(t *testing.T) {
	from, to := openedStore(t), openedStore(t)
	for _, s := range []*store.Store{from, to} {
		b := s.Meta().NewBatch()
		for i := range 300 {
			key := fmt.Appendf(nil, "key %05d", i)
			if err := errors.Join(b.Put(7, key, make([]byte, 100), 1), b.Set(7, key, make([]byte, 100))); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	address := bytes.Repeat([]byte{7}, 32)
	b := from.Meta().NewBatch()
	if err := replog.SaveUnheld(b, &replica.Entry{Slice: 7, Serial: 33, Epoch: 2, Chunks: address}); err != nil {
		t.Fatal(err)
	}
	if err := b.Commit(); err != nil {
		t.Fatal(err)
	}
	_, _, got := copyOver(t, from, to, 1000, 1000, true)
	if len(got.away.chunks) != 1 || got.old.kept == 0 {
		t.Errorf("the copy knows of %d chunks that are away, and %d rows were alike; want 1 and some", len(got.away.chunks), got.old.kept)
	}
}

func TestRanges_AreChecked(t *testing.T) {
	frozen := openedStore(t).Meta().Freeze()
	defer frozen.Close()
	sum := make([]byte, rangeSum)
	good := func(key string) *pb.TransferRequest_Range {
		return &pb.TransferRequest_Range{End: []byte("\x01" + key), Sum: sum}
	}
	many := make([]*pb.TransferRequest_Range, rangesMost+1)
	for i := range many {
		many[i] = good(fmt.Sprintf("k%02d", i))
	}
	for name, have := range map[string][]*pb.TransferRequest_Range{
		"no end":      {{Sum: sum}},
		"a short sum": {{End: []byte("\x01k"), Sum: sum[1:]}},
		"not behind":  {good("k"), good("k")},
		"too many":    many,
	} {
		if _, _, err := alike(frozen, 7, meta.Row{}, have); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	got := &receiving{s: &Receiver{}, id: 7}
	if _, err := got.restore(&pb.TransferResponse{Same: 1}, nil, &operate.Page{}); !fault.Is(err, fault.Corrupt) {
		t.Errorf("a page that names more ranges than were asked about gave %v", err)
	}
}
