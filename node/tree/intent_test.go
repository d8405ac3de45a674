package tree

import (
	"encoding/binary"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/pb"
)

// across makes an object in another slice for the root, and names it.
func (d *desk) across(s ids.Slice, name string, mode uint32) ids.Object {
	d.t.Helper()
	r, _ := d.run(ids.NewObject(s, 1), super, 0, &pb.Operation{Op: &pb.Operation_MakeObject{MakeObject: &pb.MakeObject{Mode: mode, Parent: uint64(rootID)}}}, nil)
	d.do(super, fault.None, linkName(r.Attr.Object, name, mode))
	return ids.Object(r.Attr.Object)
}

func linkName(o uint64, name string, mode uint32) *pb.Operation {
	return &pb.Operation{Op: &pb.Operation_LinkName{LinkName: &pb.LinkName{Dir: uint64(rootID), Name: []byte(name), Object: o, Mode: mode}}}
}

// TestSweep_MeetsEveryMark sweeps in short rounds and settles nothing, as where
// the slices that it asks do not answer. Every mark of every duty has its turn,
// as often as any other.
func TestSweep_MeetsEveryMark(t *testing.T) {
	const each, limit = 20, 3
	w := newWorld(t, 1, 2)
	state := w.places[2].state
	for n := range uint64(each) {
		for _, kind := range []byte{keyNoname, keyNamed, keyFence} {
			state.values[string(objectKey(kind, ids.NewObject(2, 100+n)))] = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(rootID)), 5)
		}
	}
	from, met := map[Duty]ids.Object{}, map[Mark]int{}
	for range 3 * (each/limit + 1) {
		marks, err := Sweep(state, olderThan(1<<62), from, limit)
		if err != nil || len(marks) > 3*limit {
			t.Fatalf("a round met %d marks, %v", len(marks), err)
		}
		for _, m := range marks {
			met[m]++
		}
	}
	if len(met) != 3*each {
		t.Errorf("%d marks were met, there are %d", len(met), 3*each)
	}
	for m, times := range met {
		if times != 3 {
			t.Errorf("%v was met %d times in three sweeps", m, times)
		}
	}
}

// TestReap_FencesLateNames checks that an object which the sweeper reaps gets no
// name late, and that a named one is not reaped.
func TestReap_FencesLateNames(t *testing.T) {
	d := &desk{newWorld(t, 1, 2), t}
	reap := func(s ids.Slice, r *pb.Reap) *pb.Result {
		out, _ := d.run(ids.NewObject(s, 1), super, 0, &pb.Operation{Op: &pb.Operation_Reap{Reap: r}}, nil)
		return out
	}
	r, _ := d.run(ids.NewObject(2, 1), super, 0, &pb.Operation{Op: &pb.Operation_MakeObject{MakeObject: &pb.MakeObject{Mode: TypeRegular, Parent: uint64(rootID)}}}, nil)
	o := r.Attr.Object
	d.flush(d.places[2])
	marks, err := Sweep(d.places[2].state, olderThan(1<<62), map[Duty]ids.Object{}, 10)
	if err != nil || len(marks) != 1 || marks[0].Duty != DutyNoname || uint64(marks[0].Object) != o || marks[0].Dir != rootID {
		t.Fatalf("got marks %v, %v", marks, err)
	}
	if none, err := Sweep(d.places[2].state, olderThan(marks[0].Time), map[Duty]ids.Object{}, 10); err != nil || len(none) != 0 {
		t.Errorf("a mark of just now is listed: %v, %v", none, err)
	}
	if reap(1, &pb.Reap{Object: o, Fence: true, Dir: uint64(rootID)}).Existed {
		t.Error("a fence finds a name that is not there")
	}
	d.do(super, fault.Stale, linkName(o, "late", TypeRegular))
	reap(2, &pb.Reap{Object: o})
	if _, err := GetAttr(d.places[2].over, ids.Object(o), false, false); !fault.Is(err, fault.Stale) {
		t.Errorf("a reaped object: %v, want stale", err)
	}
	named := uint64(d.across(2, "named", TypeRegular))
	if !reap(1, &pb.Reap{Object: named, Fence: true, Dir: uint64(rootID)}).Existed {
		t.Error("a fence does not find the name")
	}
	d.do(super, fault.Stale, linkName(named, "twice", TypeRegular))
	if out, _ := d.run(rootID, super, 7, &pb.Operation{Op: &pb.Operation_Reap{Reap: &pb.Reap{Object: named}}}, nil); out.Kind != uint32(fault.Permission) {
		t.Error("a client may reap")
	}
}

// TestLocks_ALockedNameKeepsItsDirectory checks that a directory with a locked
// name in it is neither removed nor given to readers of that name.
func TestLocks_ALockedNameKeepsItsDirectory(t *testing.T) {
	d := &desk{newWorld(t, 1, 2), t}
	d.make(super, "/d", TypeDir|0o755)
	dir := d.id("/d")
	p := d.places[1]
	step := func(phase pb.Step_Phase, i Intent, detail []byte) Outcome {
		c := d.context(p, super)
		o := Evaluate(p.over, d.world, c, &pb.Operation{Op: &pb.Operation_Step{Step: &pb.Step{Intent: uint64(i), Phase: phase, Detail: detail}}}, nil)
		if o.Done() {
			d.commit(p, c, o)
		}
		return o
	}
	i := NewIntent(2, 5)
	o := step(pb.Step_PREPARE, i, appendLocks(nil, []LockKey{{Object: dir, Name: []byte("x")}}))
	if len(o.Touched) != 1 || o.Touched[0].Object != dir || string(o.Touched[0].Name) != "x" {
		t.Errorf("a lock on a name touches %v", o.Touched)
	}
	if at, ok, err := OldestPrepared(p.over); err != nil || !ok || uint64(at) != d.clock {
		t.Errorf("oldest prepared: %d %v %v, want %d", at, ok, err, d.clock)
	}
	early := &pb.Step{Intent: uint64(i), Phase: pb.Step_COMMIT, Hlc: d.clock + 2}
	if o := Evaluate(p.over, d.world, d.context(p, super), &pb.Operation{Op: &pb.Operation_Step{Step: early}}, nil); fault.Kind(o.Result.GetKind()) != fault.ClockSkew {
		t.Errorf("a step of a later time: %v", o.Result)
	}
	evaluate := func(op *pb.Operation) Intent {
		return Evaluate(p.over, d.world, d.context(p, super), op, nil).Blocked
	}
	if evaluate(d.unlink("/d", true)) != i {
		t.Error("rmdir is not blocked by a lock on a name in the directory")
	}
	if evaluate(createOp(dir, "x", TypeRegular)) != i {
		t.Error("create is not blocked by the lock on its name")
	}
	if evaluate(createOp(dir, "y", TypeRegular)) != 0 {
		t.Error("create is blocked by the lock on another name")
	}
	if _, err := Lookup(p.over, dir, []byte("x")); !fault.Is(err, fault.Busy) {
		t.Errorf("lookup of a locked name: %v, want busy", err)
	}
	if held, err := NamesLocked(p.over, dir); err != nil || held != i {
		t.Errorf("names locked: %v %v", held, err)
	}
	other := NewIntent(2, 6)
	if o := step(pb.Step_PREPARE, other, appendLocks(nil, []LockKey{{Object: dir}})); o.Blocked != i {
		t.Error("a lock on the directory is granted beside one on its name")
	}
	step(pb.Step_ABORT, i, nil)
	if o := step(pb.Step_PREPARE, other, appendLocks(nil, []LockKey{{Object: dir}})); !o.Done() {
		t.Error("a lock is not granted after the abort")
	}
	if evaluate(createOp(dir, "y", TypeRegular)) != other {
		t.Error("create is not blocked by the lock on the directory")
	}
	step(pb.Step_ABORT, other, nil)
	d.do(super, fault.None, d.unlink("/d", true))
}

// TestUnlink_OpenFileOfAnotherSliceStays checks that a file of another slice
// stays readable for the client that has it open, and goes with the last holder.
func TestUnlink_OpenFileOfAnotherSliceStays(t *testing.T) {
	d := &desk{newWorld(t, 1, 2), t}
	o := d.across(2, "f", TypeRegular|0o644)
	op := d.unlink("/f", false)
	op.GetUnlink().Open = true
	if r, _ := d.run(rootID, super, 42, op, nil); r.Kind != 0 || r.Removed != uint64(o) {
		t.Fatalf("unlink: %v", r)
	}
	a, err := GetAttr(d.places[2].over, o, true, false)
	if err != nil || a.Nlink != 0 {
		t.Fatalf("an open file without a name: %v, %v", a, err)
	}
	d.flush(d.places[2])
	if held, err := Holds(d.places[2].state, 42); err != nil || len(held) != 1 || held[0] != o {
		t.Errorf("holds: %v, %v", held, err)
	}
	if all, err := Holders(d.places[2].state); err != nil || len(all) != 1 || all[0] != 42 {
		t.Errorf("holders: %v, %v", all, err)
	}
	hold := &pb.Operation{Op: &pb.Operation_Hold{Hold: &pb.Hold{Object: uint64(o), Client: 42, Release: true}}}
	if r, _ := d.run(o, super, 42, hold, nil); r.Kind != 0 {
		t.Fatalf("release: %v", r)
	}
	if _, err := GetAttr(d.places[2].over, o, false, false); !fault.Is(err, fault.Stale) {
		t.Errorf("after the last holder: %v, want stale", err)
	}
}

// TestEvaluate_TouchesConflictingLeases checks which leases an operation
// conflicts with.
func TestEvaluate_TouchesConflictingLeases(t *testing.T) {
	d := newDesk(t)
	d.make(super, "/d", TypeDir|0o755)
	d.make(super, "/d/f", TypeRegular|0o644)
	dir, f := d.id("/d"), d.id("/d/f")
	for _, c := range []struct {
		name string
		op   *pb.Operation
		want []Touch
	}{
		{"create", createOp(dir, "n", TypeRegular), []Touch{{Object: dir, What: pb.Grant_NAMES, Name: []byte("n")}}},
		{"write", commitOp(uint64(f), 0, 1), []Touch{{Object: f, What: pb.Grant_FILE}, {Object: dir, What: pb.Grant_NAMES}}},
		{"chmod of a directory", setMode(uint64(dir), 0o700), []Touch{{Object: dir, What: pb.Grant_NAMES}}},
		{"unlink", d.unlink("/d/f", false), []Touch{{Object: dir, What: pb.Grant_NAMES, Name: []byte("f")}, {Object: f, What: pb.Grant_FILE, Unlinked: true}}},
	} {
		o := Evaluate(d.places[1].over, d.world, d.context(d.places[1], super), c.op, []byte("x"))
		if len(o.Touched) != len(c.want) {
			t.Errorf("%s: got %v, want %v", c.name, o.Touched, c.want)
			continue
		}
		for i, w := range c.want {
			g := o.Touched[i]
			if g.Object != w.Object || g.What != w.What || string(g.Name) != string(w.Name) || g.Unlinked != w.Unlinked {
				t.Errorf("%s: got %v, want %v", c.name, o.Touched, c.want)
			}
		}
	}
}

// olderThan makes a sweep look at every mark older than a time.
func olderThan(t hlc.Time) func(Duty) hlc.Time { return func(Duty) hlc.Time { return t } }
