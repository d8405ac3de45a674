package reading

import (
	"context"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/tree"
)

// past has a bench answer as of earlier times. closed are the times that were to be
// closed, which they are at once.
func (b *bench) past() (closed *[]hlc.Time) {
	closed = new([]hlc.Time)
	b.Past = Past{
		View:     func(id ids.Slice, at hlc.Time) tree.View { return b.db.SliceAt(id, uint64(at)) },
		Versions: func(id ids.Slice) tree.Versions { return b.db.Slice(id).Versions },
		Close: func(_ context.Context, id ids.Slice, at hlc.Time) error {
			*closed = append(*closed, at)
			return nil
		},
		Retention: time.Hour,
	}
	return closed
}

// asOf has an asker read as of a time.
func (who Asker) asOf(at hlc.Time) Asker {
	who.AsOf = at
	return who
}

// TestPast_IsWhatWasThere changes a directory and a file and reads both as of before.
func TestPast_IsWhatWasThere(t *testing.T) {
	b := newBench(t)
	b.past()
	d := b.mkdir(ids.RootObject, "d", 0o755, root)
	f := b.file(d, "f", 0o644, root, "old")
	b.setXattr(f, "user.note", "old")
	b.file(d, "gone", 0o644, root, "there once")
	far := b.apart(d, "far", nearSlice, tree.TypeRegular|0o644, root)
	at := b.clock
	b.write(f, "newer than new")
	b.setXattr(f, "user.note", "new")
	b.unlink(d, "gone")
	b.file(d, "later", 0o644, root, "")

	who := b.within(node()).asOf(at)
	list, err := b.List(t.Context(), who, &pb.ListRequest{Dir: uint64(d)})
	if err != nil || listed(list) != "f, far elsewhere, gone" || list.AsOf != uint64(at) || len(list.Grants) > 0 {
		t.Errorf("a listing: got %q as of %d with %v, %v", listed(list), list.GetAsOf(), list.GetGrants(), err)
	}
	got, err := b.GetAttr(t.Context(), who, &pb.GetAttrRequest{Object: uint64(f), Content: true, Xattrs: true})
	if err != nil || string(got.Attr.Content.Inline) != "old" || string(got.Attr.Xattrs[0].Value) != "old" || got.AsOf != uint64(at) || len(got.Grants) > 0 {
		t.Errorf("attributes: got %v, %v, want the old ones without leases", got, err)
	}
	for name, want := range map[string]string{"gone": "there once", "f": "old"} {
		found, err := b.Resolve(t.Context(), who, &pb.ResolveRequest{Dir: uint64(ids.RootObject), Names: path("d/" + name), Content: true})
		if err != nil || len(found.Steps) != 2 || string(found.Steps[1].Attr.GetContent().GetInline()) != want || found.AsOf != uint64(at) || len(found.Grants) > 0 {
			t.Errorf("%s: got %v, %v, want %q without leases", name, found, err, want)
		}
	}
	found, err := b.Resolve(t.Context(), who, &pb.ResolveRequest{Dir: uint64(d), Names: path("later")})
	if err != nil || len(found.Steps) != 1 || fault.Kind(found.Steps[0].Kind) != fault.NotFound {
		t.Errorf("a name that came later: got %v, %v", found, err)
	}
	found, err = b.Resolve(t.Context(), who, &pb.ResolveRequest{Dir: uint64(d), Names: path("far")})
	if err != nil || ids.Object(found.Steps[0].Object) != far || found.Steps[0].Attr != nil {
		t.Errorf("an object of another slice: got %v, %v, want its ID alone", found, err)
	}
	now, err := b.List(t.Context(), b.within(node()), &pb.ListRequest{Dir: uint64(d)})
	if err != nil || listed(now) != "f, far elsewhere, later" || now.AsOf != 0 {
		t.Errorf("the present: got %q, %v", listed(now), err)
	}
}

// TestPast_ClosesTheTimeFirst reads as of times that no applied entry has passed.
func TestPast_ClosesTheTimeFirst(t *testing.T) {
	b := newBench(t)
	closed := b.past()
	at := b.clock
	read := func(at hlc.Time) error {
		_, err := b.GetAttr(t.Context(), node().asOf(at), &pb.GetAttrRequest{Object: uint64(ids.RootObject)})
		return err
	}
	if err := read(at); err != nil || len(*closed) != 1 || (*closed)[0] != at {
		t.Errorf("got %v after closing %v, want %v closed", err, *closed, at)
	}
	b.part(rootSlice).AppliedTime.Store(uint64(at))
	if err := read(at); err != nil || len(*closed) != 2 {
		t.Errorf("with an entry of that very time: got %v, %d closed, want another", err, len(*closed))
	}
	b.part(rootSlice).AppliedTime.Store(uint64(at + 1))
	if err := read(at); err != nil || len(*closed) != 2 {
		t.Errorf("with a later entry: got %v, %d closed, want none more", err, len(*closed))
	}
	busy := 0
	b.Past.Close = func(context.Context, ids.Slice, hlc.Time) error {
		if busy++; busy < 3 {
			return fault.E(fault.Busy, "test.Close", "", "")
		}
		return nil
	}
	if err := read(at + 1); err != nil || busy != 3 {
		t.Errorf("got %v after %d tries, want it read at the third", err, busy)
	}
	b.Past.Close = func(context.Context, ids.Slice, hlc.Time) error {
		return fault.E(fault.NotActive, "test.Close", "", "")
	}
	b.fails("a time that is not closed", read(at+1), fault.NotActive)
}

// TestPast_RefusesWhatIsNotThere asks for times that cannot be had.
func TestPast_RefusesWhatIsNotThere(t *testing.T) {
	b := newBench(t)
	b.past()
	since, ok, err := tree.WholeSince(b.view(rootSlice))
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	b.mkdir(ids.RootObject, "d", 0o755, root)
	read := func(at hlc.Time) error {
		_, err := b.GetAttr(t.Context(), node().asOf(at), &pb.GetAttrRequest{Object: uint64(ids.RootObject)})
		return err
	}
	if err := read(since); err != nil {
		t.Errorf("the earliest time: got %v", err)
	}
	err = read(since - 1)
	b.fails("a time before the first", err, fault.Invalid)
	if first := "1970-01-01T00:00:01Z"; !strings.Contains(err.Error(), first) {
		t.Errorf("%q does not name the earliest time %s", err, first)
	}
	b.fails("an hour from now", read(hlc.FromWall(time.Now().Add(time.Hour))), fault.Invalid)
	if err := read(hlc.FromWall(time.Now().Add(hlc.MaxAhead / 5))); err != nil {
		t.Errorf("a time that comes at once: got %v", err)
	}
	// What is collected while it is read is not there, whatever was read.
	b.Past.View = func(id ids.Slice, at hlc.Time) tree.View {
		c := b.context(id, root)
		batch := b.db.NewBatch()
		for _, m := range tree.Format(c, nil, 0) {
			if !tree.Versioned(m.Key) {
				if err := batch.Set(id, m.Key, m.Value); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := batch.Commit(); err != nil {
			t.Fatal(err)
		}
		return b.db.SliceAt(id, uint64(at))
	}
	b.fails("a time whose versions go meanwhile", read(since), fault.Invalid)
}

// TestPast_TicketsOpenNoPresent shows a ticket of a directory that was open once.
func TestPast_TicketsOpenNoPresent(t *testing.T) {
	b := newBench(t)
	b.past()
	d := b.mkdir(ids.RootObject, "d", 0o777, ann)
	in := b.mkdir(d, "in", 0o777, ann)
	at := b.clock
	shut := uint32(0o700)
	b.run(rootSlice, root, 0, &pb.Operation{Op: &pb.Operation_SetAttr{SetAttr: &pb.SetAttr{Object: uint64(d), Mode: &shut}}}, nil)
	who := asBob().asOf(at)
	found, err := b.Resolve(t.Context(), who, &pb.ResolveRequest{Dir: uint64(ids.RootObject), Names: path("d/in")})
	if err != nil || len(found.Steps) != 2 {
		t.Fatalf("got %v, %v", found, err)
	}
	shown := found.Steps[1].Attr.Ticket
	now := asBob()
	if !b.HasReached(&who, in, shown) || b.HasReached(&now, in, shown) {
		t.Error("a ticket of the past does not open the past, or opens the present")
	}
	b.fails("the present", b.Reached(t.Context(), &now, in, shown), fault.Permission)
	if err := b.Reached(t.Context(), &who, in, nil); err != nil {
		t.Errorf("without a ticket, by the directories of then: %v", err)
	}
	list, err := b.List(t.Context(), who, &pb.ListRequest{Header: &pb.ReadHeader{Ticket: found.Steps[0].Attr.Ticket}, Dir: uint64(d)})
	if err != nil || len(list.Entries) != 1 || b.HasReached(&now, in, list.Entries[0].Attr.Ticket) {
		t.Errorf("a listing: got %v, %v, want a ticket that opens no present", list, err)
	}
}

// TestPast_IsBoundedByRetentionInOldSlices reads a slice that does not say
// since when it has all versions.
func TestPast_IsBoundedByRetentionInOldSlices(t *testing.T) {
	b := newBench(t)
	b.past()
	batch := b.db.NewBatch()
	if err := batch.Unset(rootSlice, []byte("w")); err != nil {
		t.Fatal(err)
	}
	if err := batch.Commit(); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := tree.WholeSince(b.view(rootSlice)); ok || err != nil {
		t.Fatal("the slice still says so", err)
	}
	read := func(ago time.Duration) error {
		_, err := b.GetAttr(t.Context(), node().asOf(hlc.FromWall(time.Now().Add(-ago))), &pb.GetAttrRequest{Object: uint64(ids.RootObject)})
		return err
	}
	if err := read(b.Past.Retention - time.Minute); err != nil {
		t.Errorf("a time that is retained: got %v", err)
	}
	b.fails("a time before", read(b.Past.Retention+time.Minute), fault.Invalid)
}
