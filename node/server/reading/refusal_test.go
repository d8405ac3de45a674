package reading

import (
	"encoding/json"
	"errors"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/tree"
)

// hooked is a View that tells what is read of it.
type hooked struct {
	tree.View
	got     func() // before each Get
	scanned func() // after each Scan
}

func (h hooked) Get(key []byte) ([]byte, bool, error) {
	if h.got != nil {
		h.got()
	}
	return h.View.Get(key)
}

func (h hooked) Scan(from, to []byte, fn func(key, value []byte) bool) error {
	err := h.View.Scan(from, to, fn)
	if h.scanned != nil {
		h.scanned()
	}
	return err
}

// hook lets a test act while the server reads.
func (b *bench) hook(h hooked) {
	b.Committed = func(id ids.Slice) tree.View {
		h.View = operate.Committed(b.db, id)
		return h
	}
}

// refusals calls everything that reads in a slice, and gives the refusals.
func (b *bench) refusals(id ids.Slice, e uint64) map[string]*pb.Refusal {
	b.Helper()
	o := uint64(ids.NewObject(id, 1))
	h := &pb.ReadHeader{Slice: uint32(id), Epoch: e}
	resolved, err1 := b.Resolve(b.Context(), node(), &pb.ResolveRequest{Header: h, Dir: o})
	got, err2 := b.GetAttr(b.Context(), node(), &pb.GetAttrRequest{Header: h, Object: o})
	listed, err3 := b.List(b.Context(), node(), &pb.ListRequest{Header: h, Dir: o})
	files, err4 := b.Files(b.Context(), node(), &pb.FilesRequest{Header: h, Objects: []uint64{o}})
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		b.Fatalf("reading slice %d: %v", id, err)
	}
	if got.Refusal != nil && got.Attr != nil || listed.Refusal != nil && len(listed.Entries) > 0 || resolved.Refusal != nil && resolved.Dir != nil {
		b.Error("a refusal brings what it refuses")
	}
	return map[string]*pb.Refusal{"Resolve": resolved.Refusal, "GetAttr": got.Refusal, "List": listed.Refusal, "Files": files.Refusal}
}

// refusedWith wants refusals of a kind, with a row of an epoch; 0: without one.
func refusedWith(t *testing.T, refusals map[string]*pb.Refusal, kind fault.Kind, e ids.Epoch) {
	t.Helper()
	for call, r := range refusals {
		if r == nil || fault.Kind(r.Kind) != kind {
			t.Errorf("%s: got %v, want kind %v", call, r, kind)
			continue
		}
		var row geoconfig.SliceRow
		if len(r.Row) > 0 {
			if err := json.Unmarshal(r.Row, &row); err != nil {
				t.Errorf("%s: %v", call, err)
			}
		}
		if row.Epoch != e {
			t.Errorf("%s: got the row of epoch %d, want %d", call, row.Epoch, e)
		}
	}
}

func TestServer_RefusesWhereItDoesNotAct(t *testing.T) {
	b := newBench(t)
	refusedWith(t, b.refusals(otherSlice, 0), fault.NotActive, epoch)
	refusedWith(t, b.refusals(99, 0), fault.NotActive, 0) // a slice that it has never heard of
	refusedWith(t, b.refusals(rootSlice, uint64(epoch)-1), fault.WrongEpoch, epoch)
	refusedWith(t, b.refusals(rootSlice, uint64(epoch)+1), fault.WrongEpoch, epoch)
	for _, e := range []uint64{0, uint64(epoch)} {
		for call, r := range b.refusals(rootSlice, e) {
			if r != nil {
				t.Errorf("%s of epoch %d: refused with %v", call, e, r)
			}
		}
	}
	b.now.Store(int64(until)) // the lease has run out
	refusedWith(t, b.refusals(rootSlice, 0), fault.NotActive, epoch)
}

func TestServer_RefusesWithTheNewestRow(t *testing.T) {
	b := newBench(t)
	b.learn(geoconfig.SliceRow{ID: rootSlice, Epoch: epoch - 1})
	refusedWith(t, b.refusals(rootSlice, 99), fault.WrongEpoch, epoch)
	b.learn(geoconfig.SliceRow{ID: rootSlice, Epoch: epoch + 1, Active: "n2"})
	refusedWith(t, b.refusals(rootSlice, 99), fault.WrongEpoch, epoch+1)
	refusedWith(t, map[string]*pb.Refusal{"NotActive": b.NotActive(rootSlice)}, fault.NotActive, epoch+1)
}

func TestRefused_AnswersOnlyWhereItDoesNotAct(t *testing.T) {
	b := newBench(t)
	if r := b.Refused(rootSlice); r != nil {
		t.Errorf("its own slice: got %v", r)
	}
	refusedWith(t, map[string]*pb.Refusal{"another's": b.Refused(otherSlice)}, fault.NotActive, epoch)
}

func TestServer_RefusesWhatItReadsTooLate(t *testing.T) {
	for _, call := range []string{"Resolve", "GetAttr", "List", "Files"} {
		b := newBench(t)
		b.hook(hooked{got: func() { b.lose(rootSlice) }}) // the lease lapses while it reads
		var r *pb.Refusal
		o := uint64(ids.RootObject)
		switch call {
		case "Resolve":
			out, err := b.Resolve(t.Context(), node(), &pb.ResolveRequest{Dir: o})
			b.fails(call, err, fault.None)
			r = out.GetRefusal()
		case "GetAttr":
			out, err := b.GetAttr(t.Context(), node(), &pb.GetAttrRequest{Object: o})
			b.fails(call, err, fault.None)
			r = out.GetRefusal()
		case "List":
			out, err := b.List(t.Context(), node(), &pb.ListRequest{Dir: o})
			b.fails(call, err, fault.None)
			r = out.GetRefusal()
		case "Files":
			out, err := b.Files(t.Context(), node(), &pb.FilesRequest{Header: &pb.ReadHeader{Slice: uint32(rootSlice)}, Objects: []uint64{o}})
			b.fails(call, err, fault.None)
			r = out.GetRefusal()
		}
		refusedWith(t, map[string]*pb.Refusal{call: r}, fault.NotActive, epoch)
	}
}

func TestResolve_TriesAgainWhereTheRoleChanges(t *testing.T) {
	for name, c := range map[string]struct {
		serves []bool // at each look, admission and check by turns
		stands bool
	}{
		"once":        {[]bool{true, false, true, true}, true},
		"twice":       {[]bool{true, false, true, false, true, true}, true},
		"all along":   {[]bool{true, false, true, false, true, false}, false},
		"and is gone": {[]bool{true, false, false, false}, false},
	} {
		b := newBench(t)
		looks := 0
		b.Published = func(id ids.Slice) *operate.Published {
			b.lose(id)
			if looks < len(c.serves) && c.serves[looks] {
				b.act(id, until)
			}
			looks++
			return b.part(id)
		}
		out, err := b.Resolve(t.Context(), node(), &pb.ResolveRequest{Dir: uint64(ids.RootObject)})
		b.fails(name, err, fault.None)
		if c.stands != (out.Refusal == nil) || c.stands != (out.Dir != nil) {
			t.Errorf("%s: got %v, want an answer: %v", name, out, c.stands)
		}
	}
}

func TestServer_GrantsBeforeItReads(t *testing.T) {
	b := newBench(t)
	f := b.file(ids.RootObject, "f", 0o644, root, "hello")
	d := b.mkdir(ids.RootObject, "d", 0o755, root)
	for name, read := range map[string]func(Asker) error{
		"GetAttr": func(who Asker) error {
			_, err := b.GetAttr(t.Context(), who, &pb.GetAttrRequest{Object: uint64(f), Content: true})
			return err
		},
		"List": func(who Asker) error {
			_, err := b.List(t.Context(), who, &pb.ListRequest{Dir: uint64(d)})
			return err
		},
		"Resolve": func(who Asker) error {
			_, err := b.Resolve(t.Context(), who, &pb.ResolveRequest{Dir: uint64(d)})
			return err
		},
		"Files": func(who Asker) error {
			_, err := b.Files(t.Context(), who, &pb.FilesRequest{Header: &pb.ReadHeader{Slice: uint32(rootSlice)}, Objects: []uint64{uint64(f)}})
			return err
		},
	} {
		who := b.within(node())
		early := 0
		b.hook(hooked{got: func() {
			if _, leases := b.sessions.Len(); leases == 0 {
				early++
			}
		}})
		b.fails(name, read(who), fault.None)
		if early > 0 {
			t.Errorf("%s read %d values before it had a lease", name, early)
		}
		b.endSession(who.Client, who.Session)
	}
}
