package tree

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// client runs one create of a client's, with content.
func (d *desk) client(who Principal, want fault.Kind, create *pb.Create, body []byte) *pb.Result {
	d.t.Helper()
	if body != nil {
		create.Commit = &pb.Commit{MtimeNs: 77}
		if len(body) > 0 {
			create.Commit.Extents = []*pb.Extent{{Length: uint64(len(body)), Source: &pb.Extent_BodyOffset{}}}
		}
	}
	r, _ := d.run(rootID, who, 5, &pb.Operation{TimeNs: 99, Op: &pb.Operation_Create{Create: create}}, body)
	if fault.Kind(r.Kind) != want {
		d.t.Fatalf("creating %s: got %v, want %v", create.Name, fault.Kind(r.Kind), want)
	}
	return r
}

func named(name string) *pb.Create {
	return &pb.Create{Dir: uint64(rootID), Name: []byte(name), Mode: TypeRegular | 0o644}
}

// TestReserve_EachNumberOnceAndNoOther makes files with numbers that were given
// in advance: each once, and none that was not given.
func TestReserve_EachNumberOnceAndNoOther(t *testing.T) {
	d := newDesk(t)
	ask := named("asks")
	ask.Reserve = 3
	r := d.client(alice, fault.None, ask, nil)
	first := ids.Object(r.First)
	if r.Numbers != 3 || first.Slice() != rootID.Slice() || first.Number() < clientNumbers {
		t.Fatalf("%d numbers from %v on", r.Numbers, first)
	}
	ask = named("asks again")
	ask.Reserve = 1 << 30
	r = d.client(alice, fault.None, ask, nil)
	if ids.Object(r.First) != first+3 || r.Numbers != MaxReserve {
		t.Errorf("then %d from %v on, want %d behind the first three", r.Numbers, ids.Object(r.First), MaxReserve)
	}
	with := func(name string, o ids.Object) *pb.Create {
		c := named(name)
		c.Object, c.MadeNs = uint64(o), 55
		return c
	}
	for _, size := range []int{0, 10, MaxInline + 1, 100_000} {
		body := bytes.Repeat([]byte{7}, size)
		c := with("f", first)
		c.Name = append(c.Name, byte('0'+len(c.Name)+size%7))
		r := d.client(alice, fault.None, c, body)
		if a := r.Attr; a.Object != uint64(first) || a.Size != uint64(size) || a.Uid != alice.UID || a.BtimeNs != 55 || a.MtimeNs != 77 || a.CtimeNs < 77 || r.Dir.MtimeNs != 99 {
			t.Errorf("a file of %d bytes has %v in %v", size, a, r.Dir)
		} else if got := d.content(a); !bytes.Equal(got, body) {
			t.Errorf("a file of %d bytes reads as %d others", size, len(got))
		}
		d.client(alice, fault.Exists, with(string(c.Name), first+1), body)
		d.client(alice, fault.Exists, with("same number", first), body)
		first++
	}
	d.client(alice, fault.Invalid, with("not given", first+MaxReserve), nil)
	d.client(alice, fault.Invalid, with("the active's", ids.NewObject(rootID.Slice(), 20)), nil)
	d.client(alice, fault.Invalid, with("another slice's", ids.NewObject(9, clientNumbers)), nil)
}

// TestReserve_NumberIsNotUsedAgain removes files whose numbers were given in
// advance, at once and when the last client that had one open lets it go. No
// client makes a file with such a number again, under whatever name.
func TestReserve_NumberIsNotUsedAgain(t *testing.T) {
	d := newDesk(t)
	ask := named("asks")
	ask.Reserve = 2 * usedBlock
	first := ids.Object(d.client(alice, fault.None, ask, nil).First)
	with := func(name string, o ids.Object) *pb.Create {
		c := named(name)
		c.Object = uint64(o)
		return c
	}
	gone := []ids.Object{first, first + 1, first + 7, first + usedBlock - 1, first + usedBlock}
	for i, o := range gone {
		d.client(alice, fault.None, with("f", o), nil)
		if i%2 == 0 {
			d.do(alice, fault.None, d.unlink("/f", false))
			continue
		}
		hold := &pb.Hold{Object: uint64(o), Client: 5}
		d.do(alice, fault.None, &pb.Operation{Op: &pb.Operation_Hold{Hold: hold}})
		d.do(alice, fault.None, d.unlink("/f", false))
		d.client(alice, fault.Exists, with("f", o), nil)
		d.do(alice, fault.None, &pb.Operation{Op: &pb.Operation_Hold{Hold: &pb.Hold{Object: uint64(o), Client: 5, Release: true}}})
	}
	for o := first; o < first+usedBlock+9; o++ {
		want := fault.None
		if slices.Contains(gone, o) {
			want = fault.Stale
		}
		d.client(alice, want, with(fmt.Sprintf("again%d", o), o), nil)
	}
}

// TestUseUp_NotesTwoNumbersOfABlock removes two objects in one evaluation. The
// second does not undo what the first noted.
func TestUseUp_NotesTwoNumbersOfABlock(t *testing.T) {
	x := txn{view: mapView{}}
	for _, n := range []uint64{clientNumbers + 3, clientNumbers + 9} {
		if err := (numbers{&x}).useUp(ids.NewObject(rootID.Slice(), n)); err != nil {
			t.Fatal(err)
		}
	}
	if last := x.mutations[len(x.mutations)-1].Value; last[0] != 1<<3 || last[1] != 1<<1 {
		t.Errorf("the block reads %x", last)
	}
}

// TestCreate_TakesContent makes files with content where the active numbers
// them, and replaces what is there.
func TestCreate_TakesContent(t *testing.T) {
	d := newDesk(t)
	r := d.client(alice, fault.None, named("f"), []byte("the first content"))
	first := r.Attr.Object
	replace := named("f")
	replace.Truncate = true
	if r = d.client(alice, fault.None, replace, []byte("another")); r.Attr.Object != first || !r.Existed || string(d.content(r.Attr)) != "another" {
		t.Errorf("replaced it is %v", r.Attr)
	}
	if r = d.client(alice, fault.None, named("f"), []byte("over")); string(d.content(r.Attr)) != "overher" {
		t.Errorf("spliced it reads %q", d.content(r.Attr))
	}
	d.client(bob, fault.Permission, named("f"), []byte("x"))
	excl := named("f")
	excl.Exclusive = true
	d.client(alice, fault.Exists, excl, []byte("x"))
}

// TestReadState_ReadsTheFormerState reads the state that was written without
// Given.
func TestReadState_ReadsTheFormerState(t *testing.T) {
	v := mapView{string([]byte{keyState}): {1, 5, 6, 7, 8, 9}}
	if s, err := ReadState(v); err != nil || s != (State{Objects: 5, Stored: 6, Next: 7, Locks: 8, Holds: 9}) {
		t.Errorf("%+v, %v", s, err)
	}
}

type mapView map[string][]byte

func (m mapView) Get(key []byte) ([]byte, bool, error) {
	v, ok := m[string(key)]
	return v, ok, nil
}

func (mapView) Scan(_, _ []byte, _ func(key, value []byte) bool) error { return nil }
