package tree

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// flight is a coordinator under way, and what its operation does to the twin.
type flight struct {
	k       *Coordinator
	model   func() fault.Kind
	what    string
	decided bool
}

// TestCoordinator_ConcurrentOnesEqualTheModel runs several coordinators and
// ordinary operations at once, and applies each to the model at the moment that
// it is decided.
func TestCoordinator_ConcurrentOnesEqualTheModel(t *testing.T) {
	met := map[string]int{}
	for seed := range uint64(32) {
		p := newPair(t, seed, 3)
		p.crash = 0
		p.users = []Principal{{}}
		p.plant()
		p.concurrent(2500)
		p.compare()
		for k, n := range p.done {
			met[k] += n
		}
		if t.Failed() {
			for _, l := range p.log[max(0, len(p.log)-25):] {
				t.Log(l)
			}
			t.Fatalf("seed %d", seed)
		}
	}
	for _, want := range []string{"decided", "refused", "blocked", "crashed", "again"} {
		if met[want] == 0 {
			t.Errorf("%q was never met: %v", want, met)
		}
	}
}

// plant makes a tree over all slices to work on.
func (p *pair) plant() {
	p.t.Helper()
	dirs := []*thing{p.twin.root}
	for i := range 24 {
		d := dirs[p.rng.IntN(len(dirs))]
		mode := uint32(TypeDir | 0o777)
		if i%3 == 2 {
			mode = TypeRegular | 0o666
		}
		before := len(p.twin.all)
		p.createAcross(Principal{}, d, fmt.Sprintf("n%d", p.rng.IntN(6)), mode, 0, "", ids.Slice(1+(int(d.id.Slice())+p.rng.IntN(2))%3))
		if len(p.twin.all) > before && mode&TypeMask == TypeDir {
			for _, name := range slices.Sorted(maps.Keys(d.kids)) {
				if n := d.kids[name]; n.dir() && n.nlink == 2 {
					dirs = append(dirs, n)
				}
			}
		}
	}
	p.sweep()
}

func (p *pair) concurrent(steps int) {
	p.t.Helper()
	var flights []*flight
	for i := range steps {
		if len(flights) < 5 && p.rng.IntN(2) == 0 {
			if f := p.launch(); f != nil {
				flights = append(flights, f)
			}
		}
		if len(flights) > 0 && p.rng.IntN(6) > 0 {
			k := p.rng.IntN(len(flights))
			if !p.advance(flights[k]) {
				flights = append(flights[:k], flights[k+1:]...)
			}
		}
		if p.t.Failed() {
			return
		}
		if i%250 == 249 { // all die at once
			flights = nil
			p.done["crashed"]++
			p.recover()
			p.compare()
		}
	}
	p.recover()
}

// launch starts a rename, an unlink or a link: it is done at once where it
// needs one slice and nothing is in its way.
func (p *pair) launch() *flight {
	p.t.Helper()
	who := p.users[p.rng.IntN(len(p.users))]
	d, e := p.dir(), p.dir()
	var op *pb.Operation
	var model func() fault.Kind
	switch p.rng.IntN(6) {
	case 0:
		name := p.name(d)
		dir := p.rng.IntN(2) == 0
		if n := d.kids[name]; n != nil {
			dir = n.dir()
		}
		op = &pb.Operation{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: uint64(d.id), Name: []byte(name), Directory: dir}}}
		model = func() fault.Kind { return p.twin.unlink(who, d, name, dir) }
	case 1:
		p.stepCreateFree(who)
		return nil
	default:
		r := &pb.Rename{Dir: uint64(d.id), NewDir: uint64(e.id), Name: []byte(p.name(d)), NewName: []byte(p.name(e)), Exchange: p.rng.IntN(3) == 0}
		seen := [2]ids.Object{p.seen(d, string(r.Name)), p.seen(e, string(r.NewName))} // others may change it before it is done
		r.Object, r.Target = uint64(seen[0]), uint64(seen[1])
		op = &pb.Operation{Op: &pb.Operation_Rename{Rename: r}}
		model = func() fault.Kind {
			return p.twin.rename(who, d, string(r.Name), e, string(r.NewName), false, r.Exchange, seen)
		}
	}
	q := p.places[d.id.Slice()]
	c := p.context(q, who)
	op.TimeNs = int64(c.Time)
	o := Evaluate(q.over, p.world, c, op, nil)
	what := fmt.Sprintf("%v by %d", op, who.UID)
	switch {
	case o.Err != nil:
		p.t.Fatalf("%v: %v", op, o.Err)
	case o.Blocked != 0:
		p.done["blocked"]++
		return nil
	case o.Across:
		return &flight{k: NewCoordinator(c, op), model: model, what: what}
	}
	if o.Done() {
		p.commit(q, c, o)
		if kind := model(); kind != 0 {
			p.t.Errorf("%s: done, and the twin says %v", what, kind)
		}
		p.log = append(p.log, what+": done")
	}
	return nil
}

// stepCreateFree makes an object with a new name, unless an intent is in the way.
func (p *pair) stepCreateFree(who Principal) {
	p.t.Helper()
	d := p.dir()
	name := p.name(d)
	mode := []uint32{TypeRegular, TypeDir}[p.rng.IntN(2)] | 0o777
	q := p.places[d.id.Slice()]
	c := p.context(q, who)
	o := Evaluate(q.over, p.world, c, &pb.Operation{TimeNs: 1, Op: &pb.Operation_Create{Create: &pb.Create{
		Dir: uint64(d.id), Name: []byte(name), Mode: mode, Exclusive: true}}}, nil)
	if o.Err != nil {
		p.t.Fatal(o.Err)
	}
	if !o.Done() {
		return
	}
	p.commit(q, c, o)
	n, _, kind := p.twin.create(who, d, name, mode, 0, "", true, false)
	if kind != 0 {
		p.t.Errorf("create %v/%s: done, and the twin says %v", d.id, name, kind)
		return
	}
	p.log = append(p.log, fmt.Sprintf("create %v/%s: done", d.id, name))
	p.named(n, o.Result.Attr.Object)
}

// advance does one round of a coordinator; false when it is at its end.
func (p *pair) advance(f *flight) bool {
	p.t.Helper()
	actions := f.k.Next()
	answers := make([]Answer, len(actions))
	for i, a := range actions {
		answers[i] = p.try(a)
		if a.Final && answers[i].Err == nil && answers[i].Result.Kind == 0 && !f.decided {
			f.decided = true
			p.done["decided"]++
			p.log = append(p.log, f.what+": decided")
			if kind := f.model(); kind != 0 {
				p.t.Errorf("%s: decided, and the twin says %v", f.what, kind)
			}
		}
	}
	f.k.Answer(answers)
	if !f.k.Done() {
		return true
	}
	kind := fault.Kind(f.k.Result().Kind)
	if kind == fault.None && !f.decided {
		p.done["nothing"]++
	}
	if kind != fault.None {
		p.done["refused"]++
		if f.decided {
			p.t.Errorf("%s: decided, and its result is %v", f.what, kind)
		}
	}
	if f.k.attempts > 0 {
		p.done["again"]++
	}
	return false
}

// try does an action and answers Busy at once where an intent is in the way.
func (p *pair) try(a Action) Answer {
	p.t.Helper()
	q := p.places[a.Slice]
	if a.Step == nil {
		p.flush(q)
		f, err := ReadFacts(q.state, a.Asks)
		return Answer{Facts: f, Err: err}
	}
	c := p.context(q, Principal{})
	o := Evaluate(q.over, p.world, c, &pb.Operation{TimeNs: int64(c.Time), Op: &pb.Operation_Step{Step: a.Step}}, nil)
	switch {
	case o.Err != nil:
		p.t.Fatalf("%v: %v", a.Step, o.Err)
	case o.Blocked != 0:
		return Answer{Result: &pb.Result{Kind: uint32(fault.Busy)}}
	}
	if o.Done() {
		p.commit(q, c, o)
	}
	return Answer{Result: o.Result, Time: c.Time, Facts: p.behind(q, a, o.Result)}
}
