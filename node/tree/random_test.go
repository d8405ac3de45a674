package tree

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
)

// pair runs the same operations on a world and on its twin.
type pair struct {
	*world
	twin  *twin
	users []Principal
	log   []string
	done  map[string]int             // outcomes met, so that a test can demand variety
	spare map[ids.Slice][]ids.Object // given in advance, never taken
	taken map[ids.Object]bool        // of those given, objects were made of
}

func newPair(t testing.TB, seed uint64, slices int) *pair {
	return &pair{
		world: newWorld(t, seed, slices), twin: newTwin(), done: map[string]int{}, spare: map[ids.Slice][]ids.Object{}, taken: map[ids.Object]bool{},
		users: []Principal{{}, {}, {UID: 1, GID: 1, Groups: []uint32{7}}, {UID: 2, GID: 2, Groups: []uint32{7, 1}}},
	}
}

func (p *pair) pick() *thing {
	ids := slices.Sorted(maps.Keys(p.twin.all))
	return p.twin.all[ids[p.rng.IntN(len(ids))]]
}

func (p *pair) dir() *thing {
	for {
		if n := p.pick(); n.dir() || p.rng.IntN(40) == 0 {
			return n
		}
	}
}

func (p *pair) name(d *thing) string {
	if len(d.kids) > 0 && p.rng.IntN(3) > 0 {
		names := slices.Sorted(maps.Keys(d.kids))
		return names[p.rng.IntN(len(names))]
	}
	return fmt.Sprintf("n%d", p.rng.IntN(6))
}

// TestEvaluate_RandomOperationsEqualTheModel compares random operations with the
// model, over one slice and over several, with coordinators that crash.
func TestEvaluate_RandomOperationsEqualTheModel(t *testing.T) {
	for _, c := range []struct {
		name   string
		slices int
		crash  float64
		steps  int
	}{{"one slice", 1, 0, 1500}, {"three slices", 3, 0, 1000}, {"three slices with crashes", 3, 0.06, 1000}} {
		t.Run(c.name, func(t *testing.T) {
			met := map[string]int{}
			for seed := range uint64(5) {
				p := newPair(t, seed, c.slices)
				p.crash = c.crash
				p.steps(c.steps)
				for k, n := range p.done {
					met[k] += n
				}
				if c.slices > 1 && p.along == 0 {
					t.Errorf("seed %d: no facts came along with a step", seed)
				}
				if c.crash > 0 && p.crashed == 0 {
					t.Errorf("seed %d: no coordinator crashed", seed)
				}
			}
			for _, want := range []string{"rename 0", "rename 9", "rename 8", "rename 6", "rename 7", "unlink 0", "rmdir 8", "link 0", "create 0", "create 4", "write 0", "rename 4", "rename 5", "reaped 0", "rename 3", fmt.Sprintf("rename %d", fault.Stale), "given and gone"} {
				if met[want] == 0 && (c.slices > 1 || want != "reaped 0") {
					t.Errorf("%q was never met: %v", want, met)
				}
			}
		})
	}
}

func (p *pair) steps(n int) {
	p.t.Helper()
	defer func() {
		if p.t.Failed() {
			for _, l := range p.log[max(0, len(p.log)-12):] {
				p.t.Log(l)
			}
		}
	}()
	for i := range n {
		p.step()
		if i%50 == 49 || i == n-1 {
			p.compare()
		}
		if p.t.Failed() {
			return
		}
	}
}

// step does one operation on both.
func (p *pair) step() {
	p.t.Helper()
	who := p.users[p.rng.IntN(len(p.users))]
	switch k := p.rng.IntN(20); {
	case k < 5:
		p.stepCreate(who)
	case k < 8:
		p.stepUnlink(who)
	case k < 12:
		p.stepRename(who)
	case k < 14:
		p.stepLink(who)
	case k < 17:
		p.stepWrite(who)
	case k < 18:
		p.stepChmod(who)
	case k < 19:
		p.stepChown(who)
	default:
		n, client, release := p.pick(), uint64(1+p.rng.IntN(3)), p.rng.IntN(2) == 0
		p.both("hold", func() fault.Kind { p.twin.hold(n, client, release); return 0 },
			who, client, n.id, &pb.Operation{Op: &pb.Operation_Hold{Hold: &pb.Hold{Object: uint64(n.id), Client: client, Release: release}}}, nil)
	}
}

func (p *pair) stepLink(who Principal) {
	p.t.Helper()
	n, d := p.pick(), p.dir()
	name := p.name(d)
	p.both("link", func() fault.Kind { return p.twin.link(who, n, d, name) },
		who, 0, d.id, &pb.Operation{Op: &pb.Operation_Link{Link: &pb.Link{Object: uint64(n.id), Dir: uint64(d.id), Name: []byte(name)}}}, nil)
}

func (p *pair) stepChmod(who Principal) {
	p.t.Helper()
	n, mode := p.pick(), uint32(p.rng.IntN(0o10000))
	if p.rng.IntN(4) > 0 {
		mode |= 0o700
	}
	p.both("chmod", func() fault.Kind { return p.twin.chmod(who, n, mode) },
		who, 0, n.id, setAttr(n, &pb.SetAttr{Mode: &mode}), nil)
}

func (p *pair) stepChown(who Principal) {
	p.t.Helper()
	n := p.pick()
	uid, gid := uint32(p.rng.IntN(3)), []uint32{0, 1, 2, 7}[p.rng.IntN(4)]
	p.both("chown", func() fault.Kind { return p.twin.chown(who, n, uid, gid) },
		who, 0, n.id, setAttr(n, &pb.SetAttr{Uid: &uid, Gid: &gid}), nil)
}

func setAttr(n *thing, a *pb.SetAttr) *pb.Operation {
	a.Object = uint64(n.id)
	return &pb.Operation{Op: &pb.Operation_SetAttr{SetAttr: a}}
}

// both runs an operation on both and compares the outcomes. Where the
// coordinator crashed, the world recovers and must have done all or nothing.
func (p *pair) both(what string, model func() fault.Kind, who Principal, client uint64, target ids.Object, op *pb.Operation, body []byte) *pb.Result {
	p.t.Helper()
	r, ok := p.run(target, who, client, op, body)
	if !ok {
		done := p.settled()
		if !done {
			p.log = append(p.log, fmt.Sprintf("%s %v by %d: crashed, nothing done", what, op, who.UID))
			return nil
		}
		model()
		p.log = append(p.log, fmt.Sprintf("%s %v by %d: crashed, done", what, op, who.UID))
		return nil
	}
	want := model()
	p.log = append(p.log, fmt.Sprintf("%s %v by %d: %v", what, op, who.UID, fault.Kind(r.Kind)))
	p.done[fmt.Sprintf("%s %d", what, r.Kind)]++
	p.numbered(r)
	if fault.Kind(r.Kind) != want {
		p.t.Errorf("%s %v by uid %d: got %v, want %v", what, op, who.UID, fault.Kind(r.Kind), want)
	}
	return r
}

// numbered checks that no answer claims a later change than the record has:
// a client that keeps the latest would never take in what follows.
func (p *pair) numbered(r *pb.Result) {
	p.t.Helper()
	for _, a := range []*pb.Attr{r.Attr, r.Dir, r.NewDir} {
		if a == nil || p.gathers != nil {
			continue
		}
		o := ids.Object(a.Object)
		if n, err := GetAttr(p.places[o.Slice()].over, o, false, false); err == nil && n.Change < a.Change {
			p.t.Errorf("%v: the answer says change %d, the record %d", o, a.Change, n.Change)
		}
	}
}

// settled recovers after a crash and reports whether the intent had been decided.
func (p *pair) settled() bool {
	decided := false
	for _, q := range p.places {
		p.flush(q)
		open, err := OpenIntents(q.state)
		if err != nil {
			p.t.Fatal(err)
		}
		for _, o := range open {
			decided = decided || o.Decided
		}
	}
	p.recover()
	return decided
}

func (p *pair) stepCreate(who Principal) {
	p.t.Helper()
	d := p.dir()
	name := p.name(d)
	mode := []uint32{TypeRegular, TypeRegular, TypeDir, TypeLink, TypeFifo}[p.rng.IntN(5)] | uint32(p.rng.IntN(0o10000)) | 0o600
	if p.rng.IntN(3) > 0 {
		mode |= 0o777
	}
	umask := uint32(0o22)
	target := ""
	if mode&TypeMask == TypeLink {
		target = "t"
	}
	home := ids.Slice(1 + p.rng.IntN(len(p.places)))
	if home != d.id.Slice() && d.dir() && p.rng.IntN(2) == 0 {
		p.createAcross(who, d, name, mode, umask, target, home)
		return
	}
	excl, trunc := p.rng.IntN(2) == 0, p.rng.IntN(2) == 0
	given, reserve := p.given(d), uint32(p.rng.IntN(3))
	excl = excl || given != 0
	var n *thing
	var existed bool
	if k := d.kids[name]; k != nil && k.id.Slice() != d.id.Slice() {
		trunc = false // the client does that at the object's slice
		excl = excl || k.dir()
	}
	r := p.both("create", func() (k fault.Kind) {
		n, existed, k = p.twin.create(who, d, name, mode, umask, target, excl, trunc)
		return k
	}, who, 9, d.id, &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{
		Dir: uint64(d.id), Name: []byte(name), Mode: mode, Umask: umask, Target: []byte(target), Exclusive: excl, Truncate: trunc, Object: uint64(given), Reserve: reserve,
	}}}, nil)
	if r == nil || r.Kind != 0 || n == nil {
		return
	}
	for i := range r.Numbers {
		o := ids.Object(r.First) + ids.Object(i)
		p.spare[o.Slice()] = append(p.spare[o.Slice()], o)
	}
	if r.Existed != existed {
		p.t.Errorf("create: existed %v, want %v", r.Existed, existed)
	}
	if !existed {
		p.named(n, r.Attr.Object)
	}
}

// given takes one of the numbers that were given in advance for a new object of
// a directory's slice, now and then, and forgets it; 0 says none.
func (p *pair) given(d *thing) ids.Object {
	s := p.spare[d.id.Slice()]
	if len(s) == 0 || p.gathers == nil && p.rng.IntN(2) == 0 {
		return 0
	}
	at := p.rng.IntN(len(s))
	o := s[at]
	p.spare[d.id.Slice()] = slices.Delete(s, at, at+1)
	return o
}

func (p *pair) named(n *thing, object uint64) {
	n.id = ids.Object(object)
	if p.twin.all[n.id] != nil {
		p.t.Errorf("object %v was given twice", n.id)
	}
	p.twin.all[n.id] = n
	if n.id.Number() >= clientNumbers {
		p.taken[n.id] = true
	}
}

// createAcross does what a client does where the object goes elsewhere.
func (p *pair) createAcross(who Principal, d *thing, name string, mode, umask uint32, target string, home ids.Slice) {
	p.t.Helper()
	make := &pb.MakeObject{Mode: mode, Umask: umask, Target: []byte(target), Parent: uint64(d.id), UseGid: d.mode&setGID != 0, Gid: d.gid}
	r, _ := p.run(ids.NewObject(home, 1), who, 0, &pb.Operation{Op: &pb.Operation_MakeObject{MakeObject: make}}, nil)
	if r.Kind != 0 {
		p.t.Errorf("make: %v", fault.Kind(r.Kind))
		return
	}
	var n *thing
	if p.rng.IntN(10) > 0 { // else the client is gone, and the sweeper reaps it
		l := p.both("linkName", func() (k fault.Kind) {
			n, _, k = p.twin.create(who, d, name, mode, umask, target, true, false)
			return k
		}, who, 0, d.id, &pb.Operation{Op: &pb.Operation_LinkName{LinkName: &pb.LinkName{Dir: uint64(d.id), Name: []byte(name), Object: r.Attr.Object, Mode: mode}}}, nil)
		if l.Kind == 0 && n != nil {
			p.named(n, r.Attr.Object)
		}
	}
	if p.rng.IntN(2) == 0 {
		p.sweep()
	}
}

// sweep does a sweeper's duties in all slices.
func (p *pair) sweep() {
	p.t.Helper()
	reap := func(s ids.Slice, r *pb.Reap) *pb.Result {
		out, _ := p.run(ids.NewObject(s, 1), Principal{}, 0, &pb.Operation{Op: &pb.Operation_Reap{Reap: r}}, nil)
		if out.Kind != 0 {
			p.t.Errorf("reap %v: %v", r, fault.Kind(out.Kind))
		}
		return out
	}
	for id, q := range p.places {
		p.flush(q)
		marks, err := Sweep(q.state, olderThan(1<<62), map[Duty]ids.Object{}, 100)
		if err != nil {
			p.t.Fatal(err)
		}
		for _, m := range marks {
			o := uint64(m.Object)
			switch m.Duty {
			case DutyNoname:
				named := reap(m.Dir.Slice(), &pb.Reap{Object: o, Fence: true, Dir: uint64(m.Dir)}).Existed
				reap(id, &pb.Reap{Object: o, Confirm: named})
				if !named {
					p.done["reaped 0"]++
				}
			case DutyNamed:
				reap(m.Object.Slice(), &pb.Reap{Object: o, Confirm: true})
				reap(id, &pb.Reap{Object: o, Forget: true})
			}
		}
	}
}

func (p *pair) stepUnlink(who Principal) {
	p.t.Helper()
	d := p.dir()
	name, dir := p.name(d), p.rng.IntN(2) == 0
	what := "unlink"
	if n := d.kids[name]; n != nil && p.rng.IntN(8) > 0 {
		dir = n.dir()
	}
	if dir {
		what = "rmdir"
	}
	client, open := uint64(0), p.rng.IntN(4) == 0
	if open {
		client = 5
	}
	n := d.kids[name]
	r := p.both(what, func() fault.Kind {
		var held bool
		if n != nil && open && (n.nlink == 1 || n.dir()) {
			if held = n.holders[client]; !held {
				p.twin.hold(n, client, false)
			}
		}
		k := p.twin.unlink(who, d, name, dir)
		if k != 0 && n != nil && open && !held {
			delete(n.holders, client)
		}
		return k
	}, who, client, d.id, &pb.Operation{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: uint64(d.id), Name: []byte(name), Directory: dir, Open: open}}}, nil)
	if r != nil && r.Kind == 0 && n != nil && r.Removed != uint64(n.id) {
		p.t.Errorf("unlink removed %d, want %v", r.Removed, n.id)
	}
}

func (p *pair) stepRename(who Principal) {
	p.t.Helper()
	d, e := p.dir(), p.dir()
	if p.rng.IntN(4) == 0 {
		e = d
	}
	r := &pb.Rename{Dir: uint64(d.id), NewDir: uint64(e.id), Name: []byte(p.name(d)), NewName: []byte(p.name(e))}
	switch p.rng.IntN(6) {
	case 0:
		r.NoReplace = true
	case 1, 2:
		r.Exchange = true
	}
	seen := [2]ids.Object{p.seen(d, string(r.Name)), p.seen(e, string(r.NewName))}
	r.Object, r.Target = uint64(seen[0]), uint64(seen[1])
	p.both("rename", func() fault.Kind {
		return p.twin.rename(who, d, string(r.Name), e, string(r.NewName), r.NoReplace, r.Exchange, seen)
	}, who, 0, d.id, &pb.Operation{Op: &pb.Operation_Rename{Rename: r}}, nil)
}

// seen is what a caller may take a name to mean: 0 where it does not say, often
// what the name means, now and then something else.
func (p *pair) seen(d *thing, name string) ids.Object {
	n := d.kids[name]
	switch k := p.rng.IntN(16); {
	case k == 0:
		return p.pick().id
	case k < 8 && n != nil:
		return n.id
	}
	return 0
}

// stepWrite commits a few bytes somewhere, appends, or truncates.
func (p *pair) stepWrite(who Principal) {
	p.t.Helper()
	n := p.pick()
	if p.rng.IntN(3) == 0 {
		size := uint64(p.rng.IntN(3) * p.rng.IntN(12000))
		p.both("truncate", func() fault.Kind { return p.twin.truncate(who, n, int(size)) },
			who, 0, n.id, setAttr(n, &pb.SetAttr{Size: &size}), nil)
		return
	}
	data := make([]byte, 1+p.rng.IntN(5000))
	fill(p.rng, data)
	offset := p.rng.IntN(len(n.data) + 4000)
	if p.rng.IntN(4) == 0 {
		offset = 0
	}
	c := &pb.Commit{Object: uint64(n.id)}
	x := &pb.Extent{Offset: uint64(offset), Length: uint64(len(data)), Source: &pb.Extent_BodyOffset{}}
	c.Extents = []*pb.Extent{x}
	body := data
	how := p.rng.IntN(6)
	if how == 1 && p.gathers != nil {
		how = 5 // a batch names no chunks
	}
	switch how {
	case 0:
		c.Append, offset, x.Offset = true, -1, 0
	case 1: // of a stored chunk
		whole := append(bytes.Clone(data), data...)
		a := chunk.Sum(whole)
		p.chunks[a] = whole
		x.Source = &pb.Extent_Chunk{Chunk: a[:]}
		x.ChunkOffset, x.ChunkSize = uint64(len(data)), uint32(len(whole))
		body = nil
	case 2:
		clear(data)
		x.Source, body = &pb.Extent_Hole{Hole: true}, nil
	case 3: // two pieces
		if len(data) > 1 {
			k := uint64(len(data) / 2)
			x.Length = k
			c.Extents = append(c.Extents, &pb.Extent{Offset: x.Offset + k, Length: uint64(len(data)) - k, Source: &pb.Extent_BodyOffset{BodyOffset: k}})
		}
	}
	at := offset
	if at < 0 {
		at = len(n.data)
	}
	r := p.both("write", func() fault.Kind { return p.twin.write(who, n, offset, data) },
		who, 0, n.id, &pb.Operation{Op: &pb.Operation_Commit{Commit: c}}, body)
	if r != nil && r.Kind == 0 && c.Append && r.Offset != uint64(at) {
		p.t.Errorf("appended at %d, want %d", r.Offset, at)
	}
}

func fill(rng *rand.Rand, b []byte) {
	for i := range b {
		b[i] = byte(1 + rng.IntN(255))
	}
}
