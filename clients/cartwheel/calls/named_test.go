package calls

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"cartwheel.dev/clients/contact"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// The directory of these tests, and what its names mean.
const (
	folder = ids.Object(1)
	moved  = ids.Object(7)
	later  = ids.Object(9)
)

// desk is a sender that knows no node, with a clock that the test sets.
type desk struct {
	*Sender
	now time.Duration
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	key := filepath.Join(t.TempDir(), "user.key")
	if _, err := wire.MakeKey(key); err != nil {
		t.Fatal(err)
	}
	d := &desk{now: time.Hour}
	cluster, err := contact.New(contact.Options{File: contact.File{UserKey: key}, Clock: func() time.Duration { return d.now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	})
	d.Sender = New(Options{Cluster: cluster})
	return d
}

// aside has a side have something of names that is not merged.
func (d *desk) aside(names ...string) {
	for _, name := range names {
		m := d.means.get(named{folder, name})
		m.aside = side{"n", d.now, d.now}
		d.means.of[named{folder, name}] = m
	}
}

func was(list ...ids.Object) (out []uint64) {
	for _, o := range list {
		out = append(out, uint64(o))
	}
	return out
}

// did notes an operation that made an object what its names mean.
func (d *desk) did(op *pb.Operation, o ids.Object) {
	d.means.done(op, &pb.Result{Attr: &pb.Attr{Object: uint64(o)}}, "", d.now)
}

func rename(from, to string) *pb.Operation {
	return &pb.Operation{Op: &pb.Operation_Rename{Rename: &pb.Rename{Dir: uint64(folder), Name: []byte(from), NewDir: uint64(folder), NewName: []byte(to)}}}
}

func create(name string) *pb.Operation {
	return &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{Dir: uint64(folder), Name: []byte(name)}}}
}

func unlink(name string) *pb.Operation {
	return &pb.Operation{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: uint64(folder), Name: []byte(name)}}}
}

// TestSetNames_SaysWhatNamesMeantBefore does things to names, and looks at what a node
// must no longer show for the next operation.
func TestSetNames_SaysWhatNamesMeantBefore(t *testing.T) {
	type done struct {
		op *pb.Operation
		o  ids.Object
	}
	made := done{create("new"), moved}
	for _, x := range []struct {
		what         string
		done         []done
		op           *pb.Operation
		name, second []uint64
	}{
		{"after a create", []done{made}, create("new"), nil, nil},
		{"after a move, the old name", []done{made, {rename("new", "f"), moved}}, create("new"), was(moved), nil},
		{"after a move, another name moved to the old one", []done{made, {rename("new", "f"), moved}}, rename("x", "new"), nil, was(moved)},
		{"after a move, the new name", []done{made, {rename("new", "f"), moved}}, unlink("f"), nil, nil},
		{"after a removal", []done{made, {unlink("new"), 0}}, create("new"), was(moved), nil},
		{"after another file got the name", []done{made, {rename("new", "f"), moved}, {create("new"), later}}, unlink("new"), was(moved), nil},
		{"after two files had the name", []done{made, {unlink("new"), 0}, {create("new"), later}, {unlink("new"), 0}}, create("new"), was(moved, later), nil},
		{"after a move over a file", []done{made, {create("f"), later}, {rename("new", "f"), moved}}, unlink("f"), was(later), nil},
		{"after a move there and back", []done{made, {rename("new", "f"), moved}, {rename("f", "new"), moved}}, unlink("new"), nil, nil},
		{"after what is about no name", []done{made, {&pb.Operation{Op: &pb.Operation_Commit{Commit: &pb.Commit{Object: uint64(moved)}}}, moved}}, create("new"), nil, nil},
	} {
		d := newDesk(t)
		for _, o := range x.done {
			d.did(o.op, o.o)
		}
		check := func(when string, active bool, name, second []uint64) {
			t.Helper()
			d.setNames(t.Context(), x.op, active)
			if !slices.Equal(x.op.NameWas, name) || !slices.Equal(x.op.NewNameWas, second) {
				t.Errorf("%s, %s: got %v and %v, want %v and %v", x.what, when, x.op.NameWas, x.op.NewNameWas, name, second)
			}
		}
		check("at a copy", false, x.name, x.second)
		check("at the active", true, nil, nil)
		d.now += copiesFor
		check("at a copy, later", false, nil, nil)
		d.aside("new", "f")
		check("at the active, where the side's is not merged", true, x.name, x.second)
		d.did(x.op, 11)
		if d.now += copiesFor; len(d.means.get(named{folder, "new"}).was) == 0 {
			t.Errorf("%s: with the side's not merged it is forgotten what the name was taken from", x.what)
		}
	}
}

// TestSetNames_SaysWhichOwnNamesMayBeMissing has nodes lack a name that the client gave: that
// it is not there is no answer then, to who moves or removes it.
func TestSetNames_SaysWhichOwnNamesMayBeMissing(t *testing.T) {
	check := func(d *desk, what string, op *pb.Operation, active, want bool) {
		t.Helper()
		if got := d.setNames(t.Context(), op, active); got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	d := newDesk(t)
	d.did(create("new"), moved)
	check(d, "a move, at a copy", rename("new", "f"), false, true)
	check(d, "a removal, at a copy", unlink("new"), false, true)
	check(d, "a move, at the active", rename("new", "f"), true, false)
	check(d, "a move to the name, at a copy", rename("f", "new"), false, false)
	check(d, "a create, at a copy", create("new"), false, false)
	d.aside("new")
	check(d, "a move, at the active, while a side has it", rename("new", "f"), true, true)
	d.NoteName(folder, "new", later)
	check(d, "a name that another client gave since", rename("new", "f"), false, false)
	d = newDesk(t)
	d.did(create("new"), moved)
	d.now += copiesFor
	check(d, "a move, at a copy, later", rename("new", "f"), false, false)
}

func TestMeanings_ForgetsWhatItCannotTell(t *testing.T) {
	d := newDesk(t)
	d.did(create("a"), moved)
	d.did(create("b"), later)
	exchange := rename("a", "b")
	exchange.GetRename().Exchange = true
	d.did(exchange, moved)
	if a, b := d.Means(folder, "a"), d.Means(folder, "b"); a != 0 || b != 0 {
		t.Errorf("after an exchange the names mean %v and %v, want nothing that is known", a, b)
	}
	d.means.done(create("c"), &pb.Result{Kind: uint32(fault.Exists), Attr: &pb.Attr{Object: uint64(moved)}}, "", d.now)
	if c := d.Means(folder, "c"); c != 0 {
		t.Errorf("after a create that was refused the name means %v", c)
	}
	batch := &pb.Operation{Op: &pb.Operation_Batch{Batch: &pb.Batch{Operations: []*pb.Operation{create("d"), create("e")}}}}
	d.means.done(batch, &pb.Result{Results: []*pb.Result{{Attr: &pb.Attr{Object: 11}}, {Attr: &pb.Attr{Object: 12}}}}, "", d.now)
	if a, b := d.Means(folder, "d"), d.Means(folder, "e"); a != 11 || b != 12 {
		t.Errorf("after a batch the names mean %v and %v, want 11 and 12", a, b)
	}
}

// TestLacksName_RefusesWhatIsBehind has nodes show a name after this client changed it.
func TestLacksName_RefusesWhatIsBehind(t *testing.T) {
	none := &pb.ResolveResponse_Step{Kind: uint32(fault.NotFound)}
	shows := func(o ids.Object) *pb.ResolveResponse_Step { return &pb.ResolveResponse_Step{Object: uint64(o)} }
	copied, active := &pb.Copy{AgeNs: 1}, (*pb.Copy)(nil)
	for _, x := range []struct {
		what  string
		by    *pb.Copy
		step  *pb.ResolveResponse_Step
		name  string
		aside bool
		after time.Duration
		want  fault.Kind
	}{
		{"a copy has no new name", copied, none, "f", false, 0, fault.Again},
		{"a copy has no new name for long", copied, none, "f", false, copiesFor, fault.None},
		{"the active has no new name", active, none, "f", false, 0, fault.None},
		{"the active has no new name, of a side", active, none, "f", true, copiesFor, fault.Again},
		{"a copy has the old name", copied, shows(moved), "new", false, 0, fault.Again},
		{"a copy has the old name for long", copied, shows(moved), "new", false, copiesFor, fault.None},
		{"the active has the old name", active, shows(moved), "new", false, 0, fault.None},
		{"the active has the old name, moved at a side", active, shows(moved), "new", true, copiesFor, fault.Again},
		{"the old name means another file", copied, shows(later), "new", true, 0, fault.None},
		{"the old name is gone", copied, none, "new", true, 0, fault.None},
		{"the new name is there", copied, shows(moved), "f", true, 0, fault.None},
		{"a name that it did nothing to", copied, none, "other", true, 0, fault.None},
	} {
		d := newDesk(t)
		d.did(create("new"), moved)
		d.did(rename("new", "f"), moved)
		if d.now += x.after; x.aside {
			d.aside("new", "f")
		}
		req := &pb.ResolveRequest{Dir: uint64(folder), Names: [][]byte{[]byte(x.name)}}
		resp := &pb.ResolveResponse{Copy: x.by, Steps: []*pb.ResolveResponse_Step{x.step}}
		if got := fault.KindOf(d.noteRead(t.Context(), req, resp)); got != x.want {
			t.Errorf("%s: got %v, want %v", x.what, got, x.want)
		}
	}
}
