package tree

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// clerk runs batches at a desk.
type clerk struct {
	*desk
	next ids.Object // of the numbers that it was given
}

func newClerk(t testing.TB) *clerk {
	c := &clerk{desk: newDesk(t)}
	c.next = ids.Object(c.batch(alice, &pb.Batch{Reserve: MaxReserve}, nil).Result.First)
	return c
}

// batch evaluates a batch and commits it.
func (c *clerk) batch(who Principal, b *pb.Batch, body []byte) Outcome {
	c.t.Helper()
	p := c.places[1]
	at := c.context(p, who)
	at.Client, at.OnlyMade = 5, true
	o := Evaluate(p.over, c, at, &pb.Operation{TimeNs: 99, Op: &pb.Operation_Batch{Batch: b}}, body)
	if o.Err != nil {
		c.t.Fatal(o.Err)
	}
	if o.Done() {
		c.commit(p, at, o)
	}
	return o
}

func (c *clerk) create(dir ids.Object, name string, mode uint32) *pb.Operation {
	op := createOp(dir, name, mode)
	op.GetCreate().Object = uint64(c.next)
	c.next++
	return op
}

func (c *clerk) kinds(o Outcome) (out []fault.Kind) {
	for _, r := range o.Result.GetResults() {
		out = append(out, fault.Kind(r.Kind))
	}
	return out
}

func list(operations ...*pb.Operation) *pb.Batch { return &pb.Batch{Operations: operations} }

// TestBatch_RefusesOthersWhole refuses batches with what may not be in one: nothing
// of them is done.
func TestBatch_RefusesOthersWhole(t *testing.T) {
	c := newClerk(t)
	named := commitOp(uint64(rootID), 0, 1)
	named.GetCommit().Extents[0].Source = &pb.Extent_Chunk{Chunk: make([]byte, 32)}
	content := c.create(rootID, "content", TypeRegular|0o644)
	content.GetCreate().Commit = named.GetCommit()
	nameless := c.create(rootID, "x", TypeRegular|0o644)
	nameless.GetCreate().Nameless = true
	for what, op := range map[string]*pb.Operation{
		"a create without a number": createOp(rootID, "x", TypeRegular|0o644), "a file without a name": nameless,
		"a commit that names a chunk": named, "a create that names a chunk": content, "nothing": {}, "a missing one": nil,
		"a hold": {Op: &pb.Operation_Hold{Hold: &pb.Hold{}}}, "a step": {Op: &pb.Operation_Step{Step: &pb.Step{}}},
		"an object made apart": {Op: &pb.Operation_MakeObject{MakeObject: &pb.MakeObject{}}},
		"a batch":              {Op: &pb.Operation_Batch{Batch: &pb.Batch{}}},
	} {
		o := c.batch(alice, list(c.create(rootID, "first", TypeRegular|0o644), op), nil)
		if fault.Kind(o.Result.GetKind()) != fault.Invalid || len(o.Mutations) > 0 {
			t.Errorf("%s: got %+v, want it refused as invalid", what, o)
		}
	}
	many := make([]*pb.Operation, MaxBatch+1)
	for i := range many {
		many[i] = setMode(uint64(rootID), 0o777)
	}
	if o := c.batch(super, list(many...), nil); fault.Kind(o.Result.Kind) != fault.Invalid {
		t.Errorf("%d operations: got %v, want them refused", len(many), o.Result.Kind)
	}
	if o := c.batch(super, list(many[:MaxBatch]...), nil); len(o.Result.Results) != MaxBatch {
		t.Errorf("%d operations: %d ran", MaxBatch, len(o.Result.Results))
	}
}

// TestBatch_GoesOnBehindARefusal refuses each operation by itself.
func TestBatch_GoesOnBehindARefusal(t *testing.T) {
	c := newClerk(t)
	d := c.create(rootID, "d", TypeDir|0o755)
	dir := ids.Object(d.GetCreate().Object)
	f := c.create(dir, "f", TypeRegular|0o644)
	f.GetCreate().Commit = &pb.Commit{Extents: []*pb.Extent{{Length: 5, Source: &pb.Extent_BodyOffset{}}}}
	file := f.GetCreate().Object
	tail := commitOp(file, 5, 6)
	tail.GetCommit().Extents[0].Source = &pb.Extent_BodyOffset{BodyOffset: 5}
	o := c.batch(alice, list(d, f, c.create(dir, "f", TypeRegular|0o644), tail, unlinkOp(rootID, "d", true), unlinkOp(dir, "none", false),
		c.create(rootID, "g", TypeRegular|0o644), setMode(file, 0o600), setMode(uint64(rootID), 0o700)), []byte("some content"))
	want := []fault.Kind{0, 0, fault.Exists, 0, fault.NotEmpty, fault.NotFound, 0, 0, fault.NotOwner}
	if got := c.kinds(o); !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	if got := c.content(c.attr("/d/f")); string(got) != "some conten" || c.attr("/d/f").Mode != TypeRegular|0o600 {
		t.Errorf("the file reads %q and is %v", got, c.attr("/d/f"))
	}
	if a := o.Result.Results[0].Attr; a == nil || a.Object != d.GetCreate().Object || o.Result.Results[4].Attr != nil || o.Result.Results[7].Attr != nil {
		t.Errorf("got attributes of other operations than creates and commits: %v", o.Result)
	}
	if len(o.Touched) != 1 || o.Touched[0].Object != rootID || len(o.Touched[0].Name) != 0 {
		t.Errorf("touched is %+v, want the root alone, for several names", o.Touched)
	}
}

func unlinkOp(dir ids.Object, name string, directory bool) *pb.Operation {
	return &pb.Operation{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: uint64(dir), Name: []byte(name), Directory: directory}}}
}

// TestBatch_EndsBeforeWhatCannotRunInIt runs what is before an operation that meets
// a lock, needs another slice or would make the entry too large, and nothing behind.
func TestBatch_EndsBeforeWhatCannotRunInIt(t *testing.T) {
	c := newClerk(t)
	c.make(alice, "/locked", TypeDir|0o755)
	locked := c.id("/locked")
	across := &pb.Operation{Op: &pb.Operation_Link{Link: &pb.Link{Object: uint64(ids.NewObject(9, 20)), Dir: uint64(rootID), Name: []byte("l")}}}
	for what, last := range map[string]*pb.Operation{"across": across, "blocked": c.create(locked, "x", TypeRegular|0o644), "large": large(c)} {
		body := make([]byte, 4<<20)
		if what == "blocked" {
			c.lock(locked)
		}
		before, behind := c.create(rootID, what, TypeRegular|0o644), c.create(rootID, what+" behind", TypeRegular|0o644)
		o := c.batch(alice, list(before, last, behind), body)
		if got := c.kinds(o); o.Result == nil || o.Result.Kind != 0 || !slices.Equal(got, []fault.Kind{0}) {
			t.Errorf("%s: got %v, want the first one alone", what, got)
		}
		c.id("/" + what)
		o = c.batch(alice, list(last, behind), body)
		switch what {
		case "blocked":
			if o.Blocked == 0 || o.Result != nil {
				t.Errorf("a batch whose first operation meets a lock: %+v", o)
			}
		default:
			if o.Result == nil || o.Result.Kind != 0 || len(o.Result.Results) != 0 || o.Across || o.Done() {
				t.Errorf("%s first: got %+v, want nothing done", what, o)
			}
		}
	}
}

// large is a create of a file with more content than a batch takes.
func large(c *clerk) *pb.Operation {
	op := c.create(rootID, "too large", TypeRegular|0o644)
	op.GetCreate().Commit = &pb.Commit{Extents: []*pb.Extent{{Length: 4 << 20, Source: &pb.Extent_BodyOffset{}}}}
	return op
}

// lock has an intent hold a directory.
func (c *clerk) lock(o ids.Object) {
	p := c.places[1]
	state, err := ReadState(p.over)
	if err != nil {
		c.t.Fatal(err)
	}
	state.Locks++
	at := c.context(p, super)
	c.commit(p, at, Outcome{Mutations: []Mutation{{Key: objectKey(keyLock, o), Value: intentKey(keyIntent, 77)[1:]}, {Key: []byte{keyState}, Value: appendState(nil, &state)}}})
}

// TestBatch_StaysBelowAnEntry fills a batch until it ends by itself.
func TestBatch_StaysBelowAnEntry(t *testing.T) {
	c := newClerk(t)
	body := make([]byte, 100_000)
	var all []*pb.Operation
	for i := range 100 {
		op := c.create(rootID, fmt.Sprint(i), TypeRegular|0o644)
		op.GetCreate().Commit = &pb.Commit{Extents: []*pb.Extent{{Length: 50_000, Source: &pb.Extent_BodyOffset{BodyOffset: uint64(i)}}}}
		all = append(all, op)
	}
	for i := range body {
		body[i] = byte(i * i >> 5)
	}
	for rest := all; len(rest) > 0; {
		o := c.batch(alice, list(rest...), body)
		n := len(o.Result.Results)
		size := len(AppendData(nil, o.Mutations, o.Inline))
		if n == 0 || size+o.Beside > maxBatchBytes || o.Beside > size/10 || n < len(rest) && size < maxBatchBytes/2 {
			t.Fatalf("%d of %d operations in %d bytes", n, len(rest), size)
		}
		rest = rest[n:]
	}
	c.id("/99")
}

// TestBatch_ResultsFitAnAnswer makes files whose small content comes back with each.
func TestBatch_ResultsFitAnAnswer(t *testing.T) {
	c := newClerk(t)
	var all []*pb.Operation
	for i := range 500 {
		op := c.create(rootID, fmt.Sprint(i), TypeRegular|0o644)
		op.GetCreate().Commit = &pb.Commit{Extents: []*pb.Extent{{Length: 4000, Source: &pb.Extent_BodyOffset{}}}}
		all = append(all, op)
	}
	o := c.batch(alice, list(all...), make([]byte, 4000))
	if n := len(o.Result.Results); n < 200 || n == len(all) || o.Beside > maxResultBytes || proto.Size(o.Result) > maxResultBytes {
		t.Errorf("%d results have %d bytes, counted as %d", n, proto.Size(o.Result), o.Beside)
	}
}

// TestBatch_NamesOnlyWhatItMade refuses operations on an object that the batch was to
// make, and did not, where nothing else gives the right to name it.
func TestBatch_NamesOnlyWhatItMade(t *testing.T) {
	c := newClerk(t)
	d := c.create(rootID, "d", TypeDir|0o777)
	c.batch(bob, list(d), nil)
	again := createOp(rootID, "other", TypeDir|0o777)
	again.GetCreate().Object = d.GetCreate().Object
	in := c.create(ids.Object(d.GetCreate().Object), "f", TypeRegular|0o644)
	if got, want := c.kinds(c.batch(alice, list(again, in, setMode(again.GetCreate().Object, 0o700)), nil)), []fault.Kind{fault.Exists, fault.Stale, fault.Stale}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	taken, made := c.create(rootID, "d", TypeDir|0o755), createOp(rootID, "e", TypeDir|0o755)
	made.GetCreate().Object = taken.GetCreate().Object
	in.GetCreate().Dir = taken.GetCreate().Object
	if got, want := c.kinds(c.batch(alice, list(taken, made, in), nil)), []fault.Kind{fault.Exists, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("made after all: got %v, want %v", got, want)
	}
}

// TestBatch_HoldersAreOfOneObject keeps each file that loses its name for those who
// have that one open.
func TestBatch_HoldersAreOfOneObject(t *testing.T) {
	c := newClerk(t)
	c.make(alice, "/a", TypeRegular|0o644)
	c.make(alice, "/b", TypeRegular|0o644)
	a, b := c.id("/a"), c.id("/b")
	p := c.places[1]
	at := c.context(p, alice)
	at.Client, at.HeldBy = 5, []Holder{{a, 8}}
	second := unlinkOp(rootID, "b", false)
	o := Evaluate(p.over, c, at, &pb.Operation{Op: &pb.Operation_Batch{Batch: list(unlinkOp(rootID, "a", false), second)}}, nil)
	c.commit(p, at, o)
	if held, err := HasOpen(p.over, a, 8); !held || err != nil {
		t.Errorf("the first file is not held by who has it open: %v", err)
	}
	if _, err := GetAttr(p.over, b, false, false); !fault.Is(err, fault.Stale) && !fault.Is(err, fault.NotFound) {
		t.Errorf("the second file, which nobody has open: %v", err)
	}
}

// TestBatch_SaysWhatIsAlone lists the directories that are there at its end.
func TestBatch_SaysWhatIsAlone(t *testing.T) {
	c := newClerk(t)
	stays, goes, shared, refused := c.create(rootID, "stays", TypeDir|0o755), c.create(rootID, "goes", TypeDir|0o755), c.create(rootID, "shared", TypeDir|0o755), c.create(rootID, "stays", TypeDir|0o755)
	for _, op := range []*pb.Operation{stays, goes, refused} {
		op.GetCreate().Alone = true
	}
	o := c.batch(alice, list(stays, goes, shared, refused, unlinkOp(rootID, "goes", true)), nil)
	if want := []ids.Object{ids.Object(stays.GetCreate().Object)}; !slices.Equal(o.Alone, want) {
		t.Errorf("got %v, want %v", o.Alone, want)
	}
}

// TestLayer_ScansWhatItLaysOver scans a layer while it grows.
func TestLayer_ScansWhatItLaysOver(t *testing.T) {
	base := newMemory()
	key := func(n byte) []byte { return nameKey(keyEntry, 7, []byte{n}) }
	if err := base.apply([]Mutation{{Key: key(2), Value: []byte{2}}, {Key: key(4), Value: []byte{4}}}, 1); err != nil {
		t.Fatal(err)
	}
	l := newLayer(base, 1)
	prefix := objectKey(keyEntry, 7)
	for _, x := range []struct {
		add  Mutation
		want string
	}{{Mutation{Key: key(5), Value: []byte{5}}, "\x02\x04\x05"}, {Mutation{Key: key(1), Value: []byte{1}}, "\x01\x02\x04\x05"},
		{Mutation{Key: key(2)}, "\x01\x04\x05"}, {Mutation{Key: key(4), Value: []byte{9}}, "\x01\x09\x05"}, {Mutation{Key: key(5)}, "\x01\x09"}} {
		l.add([]Mutation{x.add})
		var got []byte
		for _, to := range [][]byte{endOf(prefix), {keyEntry + 1}} {
			got = got[:0]
			if err := l.Scan(prefix, to, func(_, v []byte) bool { got = append(got, v...); return true }); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, []byte(x.want)) {
				t.Errorf("got %x, want %x", got, x.want)
			}
		}
		_ = l.Scan(prefix, endOf(prefix), func(_, v []byte) bool { got = v; return false })
		if got[0] != x.want[0] {
			t.Errorf("a scan that stops at once got %x", got)
		}
	}
}
