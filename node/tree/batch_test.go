package tree

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
)

// gathering is a batch while it is made: each operation is evaluated by itself
// over what those before it left, with the serial and time of the batch.
type gathering struct {
	w       *world
	p       *place
	c       Context
	state   *memory
	dead    int
	op      *pb.Batch
	body    []byte
	results []*pb.Result
	touched []Touch
	made    map[ids.Object]bool
	chunks  map[chunk.Address][]byte // that there are without the batch
}

// gather begins a batch in a world of one slice.
func (w *world) gather(who Principal, client uint64) *gathering {
	p := w.places[1]
	w.flush(p)
	c := w.context(p, who)
	c.Client = client
	w.gathers = &gathering{w: w, p: p, c: c, state: p.state.clone(), op: &pb.Batch{}, chunks: maps.Clone(w.chunks), made: map[ids.Object]bool{}}
	return w.gathers
}

func (m *memory) clone() *memory {
	out := &memory{values: maps.Clone(m.values), groups: map[string]map[string]bool{}, times: maps.Clone(m.times)}
	for g, keys := range m.groups {
		out.groups[g] = maps.Clone(keys)
	}
	return out
}

// run evaluates an operation by itself and puts it into the batch.
func (g *gathering) run(op *pb.Operation, body []byte) *pb.Result {
	g.w.t.Helper()
	op = proto.CloneOf(op)
	if op.TimeNs == 0 {
		op.TimeNs = int64(g.c.Time) + int64(len(g.results))
	}
	if create := op.GetCreate(); create != nil {
		create.Reserve = 0 // only the batch's counts
	}
	o := Evaluate(g.state, g.w, g.c, op, body)
	if o.Err != nil || o.Blocked != 0 || o.Across {
		g.w.t.Fatalf("%v by itself: %+v", op, o)
	}
	if o.Done() {
		for i := range o.Mutations {
			if key := o.Mutations[i].Key; key[0] == keyDead { // by itself it does not know of the others
				g.dead++
				o.Mutations[i].Key = append(bytes.Clone(key[:len(key)-2]), byte(g.dead>>8), byte(g.dead))
			}
		}
		if err := g.state.apply(o.Mutations, g.c.Time); err != nil {
			g.w.t.Fatal(err)
		}
		for _, x := range o.Inline {
			g.w.chunks[x.Address] = bytes.Clone(x.Data)
		}
		g.touched = append(g.touched, o.Touched...)
	}
	commit := op.GetCommit()
	if create := op.GetCreate(); create != nil {
		commit = create.Commit
		g.made[ids.Object(create.Object)] = g.made[ids.Object(create.Object)] || o.Result.Kind == 0
	}
	for _, e := range commit.GetExtents() {
		if src, ok := e.Source.(*pb.Extent_BodyOffset); ok {
			src.BodyOffset += uint64(len(g.body))
		}
	}
	g.body = append(g.body, body...)
	g.op.Operations = append(g.op.Operations, op)
	g.results = append(g.results, o.Result)
	return o.Result
}

// end evaluates the batch, compares what it does with what its operations did one
// by one, and commits it. The chunks that its operations brought are out of its
// reach, but for those in the batch itself.
func (g *gathering) end() Outcome {
	w := g.w
	w.t.Helper()
	w.gathers = nil
	chunks := w.chunks
	w.chunks = g.chunks
	o := Evaluate(g.p.over, w, g.c, &pb.Operation{Op: &pb.Operation_Batch{Batch: g.op}}, g.body)
	if o.Err != nil || o.Blocked != 0 || o.Across || o.Result.Kind != 0 || len(o.Result.Results) != len(g.results) {
		w.t.Fatalf("a batch of %d: %+v", len(g.results), o)
	}
	for i, r := range o.Result.Results {
		want := &pb.Result{Kind: g.results[i].Kind, Message: g.results[i].Message}
		if create, commit := g.op.Operations[i].GetCreate(), g.op.Operations[i].GetCommit(); create != nil || commit != nil {
			want.Attr = g.results[i].Attr
		}
		if !proto.Equal(r, want) {
			w.t.Errorf("operation %d, %v: got %v, want %v", i, g.op.Operations[i], r, want)
		}
	}
	g.compare(&o)
	if o.Done() {
		w.commit(g.p, g.c, o)
		w.flush(g.p)
	}
	w.chunks = chunks
	return o
}

func (g *gathering) compare(o *Outcome) {
	w := g.w
	w.t.Helper()
	keys := map[string]bool{}
	for i := range o.Mutations {
		if k := string(o.Mutations[i].Key); keys[k] {
			w.t.Errorf("key %q is written twice", k)
		} else {
			keys[k] = true
		}
	}
	got := g.p.state.clone()
	if err := got.apply(o.Mutations, g.c.Time); err != nil {
		w.t.Fatal(err)
	}
	left, leftDead := splitDead(got.values)
	right, rightDead := splitDead(g.state.values)
	if !maps.EqualFunc(left, right, bytes.Equal) {
		for k, v := range left {
			if !bytes.Equal(v, right[k]) {
				w.t.Errorf("key %q is %x, and %x one by one", k, v, right[k])
			}
		}
		w.t.Errorf("%d keys, and %d one by one", len(left), len(right))
	}
	if !slices.Equal(leftDead, rightDead) {
		w.t.Errorf("%d dead manifests, and %d one by one", len(leftDead), len(rightDead))
	}
	for _, x := range g.touched {
		has := slices.ContainsFunc(o.Touched, func(y Touch) bool {
			return x.Object == y.Object && x.What == y.What && (y.Unlinked || !x.Unlinked) && (len(y.Name) == 0 || string(y.Name) == string(x.Name))
		})
		if !has && !g.made[x.Object] {
			w.t.Errorf("%+v is not touched by the batch: %+v", x, o.Touched)
		}
	}
}

// splitDead keeps dead manifests apart, whose keys have a number that means nothing.
func splitDead(all map[string][]byte) (rest map[string][]byte, dead []string) {
	rest = map[string][]byte{}
	for k, v := range all {
		if k[0] == keyDead {
			dead = append(dead, string(v))
		} else {
			rest[k] = v
		}
	}
	slices.Sort(dead)
	return rest, dead
}

// TestBatch_EqualsItsOperationsOneByOne compares random batches with their
// operations, evaluated one by one with the same serial and time, and both with the
// model.
func TestBatch_EqualsItsOperationsOneByOne(t *testing.T) {
	met := map[string]int{}
	for seed := range uint64(8) {
		p := newPair(t, seed, 1)
		p.reserve(4000)
		for range 40 {
			all := p.users
			p.users = []Principal{all[p.rng.IntN(len(all))]}
			p.gather(p.users[0], 5)
			for range 1 + p.rng.IntN(40) {
				p.batchStep(p.users[0])
			}
			p.gathers.end()
			p.users = all
			if p.compare(); t.Failed() {
				t.FailNow()
			}
		}
		for k, n := range p.done {
			met[k] += n
		}
	}
	for _, want := range []string{"create 0", "create 4", "unlink 0", "rmdir 0", "rmdir 8", "rename 0", "rename 4", "link 0", "write 0", "truncate 0", "chmod 0", "chown 0"} {
		if met[want] == 0 {
			t.Errorf("%q was never met: %v", want, met)
		}
	}
}

// reserve takes numbers for objects that batches make.
func (p *pair) reserve(n uint32) {
	p.t.Helper()
	op := &pb.Operation{Op: &pb.Operation_Batch{Batch: &pb.Batch{Reserve: n}}}
	r, _ := p.run(rootID, Principal{}, 5, op, nil)
	for i := range r.Numbers {
		p.spare[1] = append(p.spare[1], ids.Object(r.First)+ids.Object(i))
	}
	if r.Numbers != min(n, MaxReserve) || r.Serial == 0 {
		p.t.Fatalf("asked for %d numbers: %v", n, r)
	}
}

// batchStep runs one operation that may be in a batch.
func (p *pair) batchStep(who Principal) {
	p.t.Helper()
	switch k := p.rng.IntN(20); {
	case k < 7:
		p.stepCreate(who)
	case k < 10:
		p.stepUnlink(who)
	case k < 13:
		p.stepRename(who)
	case k < 15:
		p.stepLink(who)
	case k < 18:
		p.stepWrite(who)
	case k < 19:
		p.stepChmod(who)
	default:
		p.stepChown(who)
	}
}
