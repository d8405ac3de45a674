package tree

import (
	"math/rand/v2"
	"slices"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/pb"
)

// formerly is the content that a file had until a time.
type formerly struct {
	object ids.Object
	root   chunk.Address
	since  hlc.Time
	until  hlc.Time
}

// collecting is a pair in which collections run between all other operations.
type collecting struct {
	*pair
	current  map[ids.Object]chunk.Address
	began    map[ids.Object]hlc.Time
	former   []formerly
	keeps    map[ids.Slice][]hlc.Time
	horizons map[ids.Slice]hlc.Time // of the latest collection
	dropped  int
}

func newCollecting(t testing.TB, seed uint64, places int) *collecting {
	c := &collecting{pair: newPair(t, seed, places), current: map[ids.Object]chunk.Address{},
		began: map[ids.Object]hlc.Time{}, keeps: map[ids.Slice][]hlc.Time{}, horizons: map[ids.Slice]hlc.Time{}}
	c.committed = c.note
	return c
}

// note keeps which contents files had, and until when.
func (p *collecting) note(mutations []Mutation, at hlc.Time) {
	for i := range mutations {
		m := &mutations[i]
		if m.Key[0] != keyInode {
			continue
		}
		o, root := objectOf(m.Key), chunk.Address{}
		if m.Value != nil {
			n, err := DecodeInode(o, m.Value)
			if err != nil {
				p.t.Fatal(err)
			}
			root = n.Root
		}
		if was := p.current[o]; was != root && !was.IsZero() {
			p.former = append(p.former, formerly{o, was, p.began[o], at})
		}
		if p.current[o] != root {
			p.began[o] = at
		}
		p.current[o] = root
	}
}

// collect runs one collection in a slice, with a horizon some operations ago; what it
// names may have been collected since it was listed.
func (p *collecting) collect(id ids.Slice, behind int) (changed bool) {
	p.t.Helper()
	q := p.places[id]
	c := p.context(q, Principal{})
	horizon := max(c.Time-hlc.Time(1+behind), p.horizons[id])
	op := &pb.Collect{Horizon: uint64(horizon), Kept: true}
	for _, at := range p.keeps[id] {
		op.Keeps = append(op.Keeps, uint64(at))
	}
	keeps, err := Keepable(q.state, horizon, p.keeps[id])
	if err != nil {
		p.t.Fatal(err)
	}
	err = ListDead(q.state, nil, func(d Dead) bool {
		if d.Time <= horizon && !Keep(keeps, d.Since, d.Time) {
			op.Dead = append(op.Dead, d.Key)
		}
		return d.Time <= horizon && len(op.Dead) < 1+p.rng.IntN(5)
	})
	if err != nil {
		p.t.Fatal(err)
	}
	unused, _, err := Unused(q.state, chunk.Address{}, horizon, keeps, 1+p.rng.IntN(200))
	if err != nil {
		p.t.Fatal(err)
	}
	op.Unused = chunk.AppendAddresses(nil, unused...)
	o := Evaluate(q.over, p, c, &pb.Operation{Op: &pb.Operation_Collect{Collect: op}}, nil)
	if o.Err != nil || o.Result.Kind != 0 {
		p.t.Fatalf("a collection of slice %d: %v, %v", id, o.Result, o.Err)
	}
	p.horizons[id] = horizon
	if !o.Done() {
		return false
	}
	p.commit(q, c, o)
	for i := range o.Mutations {
		if _, ok := DroppedRef(&o.Mutations[i]); ok {
			p.dropped++
		}
	}
	return true
}

// sweepChunks takes away the chunks that no slice has a row for, as the packs of a node
// that is a member of all of them do.
func (p *collecting) sweepChunks() {
	for a := range p.chunks {
		if !p.hasRow(a) {
			delete(p.chunks, a)
		}
	}
}

// hasRow reports whether a slice has a row for a chunk, or an entry that is not applied
// brings or names it.
func (p *collecting) hasRow(a chunk.Address) bool {
	key := string(refsKey(&a))
	for _, q := range p.places {
		if q.state.values[key] != nil {
			return true
		}
		for _, x := range q.backlog {
			for i := range x.mutations {
				if string(x.mutations[i].Key) == key && x.mutations[i].Value != nil {
					return true
				}
			}
		}
	}
	return false
}

// keep makes a snapshot of a slice now and then, and deletes one.
func (p *collecting) keep(id ids.Slice) {
	switch list := p.keeps[id]; {
	case p.rng.IntN(40) == 0:
		p.keeps[id] = append(list, p.context(p.places[id], Principal{}).Time)
	case p.rng.IntN(60) == 0 && len(list) > 0:
		i := p.rng.IntN(len(list))
		p.keeps[id] = slices.Delete(list, i, i+1)
	}
}

// retained demands that every content is there that a file had behind the horizon, or at a
// kept time.
func (p *collecting) retained() {
	p.t.Helper()
	p.former = slices.DeleteFunc(p.former, func(v formerly) bool {
		return v.until <= p.horizons[v.object.Slice()] && !Keep(p.keeps[v.object.Slice()], v.since, v.until)
	})
	check := func(o ids.Object, root chunk.Address) {
		var visit func(a chunk.Address, isNode bool) error
		visit = func(a chunk.Address, isNode bool) error {
			data, ok := p.chunks[a]
			if !ok {
				p.t.Fatalf("%v: chunk %v is gone, horizon %v", o, a, p.horizons[o.Slice()])
			}
			if !isNode {
				return nil
			}
			var bad error
			err := chunk.Refs(data, func(b chunk.Address, isNode bool) {
				if err := visit(b, isNode); err != nil {
					bad = err
				}
			})
			if err == nil {
				err = bad
			}
			return err
		}
		if err := visit(root, true); err != nil {
			p.t.Fatal(err)
		}
	}
	for o, root := range p.current {
		if !root.IsZero() {
			check(o, root)
		}
	}
	for _, v := range p.former {
		check(v.object, v.root)
	}
}

// collectAll collects until nothing is left to do, with no time retained.
func (p *collecting) collectAll() {
	p.t.Helper()
	p.recover()
	clear(p.keeps)
	for id := range p.places {
		for n := 0; p.collect(id, 0); n++ {
			p.flush(p.places[id])
			if n > 100_000 {
				p.t.Fatalf("collecting in slice %d does not end", id)
			}
		}
	}
	p.sweepChunks()
	p.retained()
	live := map[chunk.Address]bool{}
	for id, q := range p.places {
		if err := ListDead(q.state, nil, func(d Dead) bool {
			p.t.Errorf("slice %d: the dead manifest %v is left", id, d.Root)
			return true
		}); err != nil {
			p.t.Fatal(err)
		}
		for k, value := range q.state.values {
			if k[0] != keyRefs {
				continue
			}
			if refs, err := DecodeRefs(value); err != nil || refs.Count == 0 {
				p.t.Errorf("slice %d: a row with a count of zero is left: %v", id, err)
			}
			live[chunk.Address([]byte(k)[1:])] = true
		}
	}
	if len(live) != len(p.chunks) {
		p.t.Errorf("%d chunks are left, %d are needed", len(p.chunks), len(live))
	}
}

// TestCollect_KeepsWhatIsNeededAndNothingElse runs collections between random operations
// over slices whose coordinators crash. The model of packs loses each chunk at once
// whose last row goes: content is then read and compared.
func TestCollect_KeepsWhatIsNeededAndNothingElse(t *testing.T) {
	for _, c := range []struct {
		name   string
		places int
		crash  float64
	}{{"one slice", 1, 0}, {"three slices with crashes", 3, 0.06}} {
		t.Run(c.name, func(t *testing.T) {
			dropped := 0
			for seed := range uint64(20) {
				p := newCollecting(t, seed+100, c.places)
				p.crash = c.crash
				for i := range 900 {
					p.step()
					p.keep(ids.Slice(1 + p.rng.IntN(c.places)))
					if p.rng.IntN(3) == 0 {
						p.collect(ids.Slice(1+p.rng.IntN(c.places)), p.rng.IntN(60))
						p.sweepChunks()
						p.retained()
					}
					if i%90 == 89 {
						p.compare()
					}
					if t.Failed() {
						t.Fatalf("seed %d, step %d", seed, i)
					}
				}
				p.compare()
				p.collectAll()
				dropped += p.dropped
			}
			if dropped < 300 {
				t.Errorf("only %d rows were dropped", dropped)
			}
		})
	}
}

// TestCollect_WalksManifestsOfSeveralLevels splices a large file whose extents repeat, so
// that nodes repeat too, and whose chunks are now and then the bytes of its own nodes.
func TestCollect_WalksManifestsOfSeveralLevels(t *testing.T) {
	for seed := range uint64(4) {
		p := newCollecting(t, seed+3, 1)
		n, _, _ := p.twin.create(Principal{}, p.twin.root, "big", TypeRegular|0o644, 0, "", true, false)
		r, _ := p.run(p.twin.root.id, Principal{}, 0, &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{
			Dir: uint64(p.twin.root.id), Name: []byte("big"), Mode: n.mode, Exclusive: true}}}, nil)
		p.named(n, r.Attr.Object)
		highest := uint8(0)
		for i := range 60 {
			if p.rng.IntN(9) == 0 {
				size := uint64(p.rng.IntN(len(n.data) + 1))
				p.both("truncate", func() fault.Kind { return p.twin.truncate(Principal{}, n, int(size)) },
					Principal{}, 0, n.id, setAttr(n, &pb.SetAttr{Size: &size}), nil)
			} else {
				p.spliceAlike(n, 1+p.rng.IntN(1500))
			}
			if a, err := GetAttr(p.places[1].over, n.id, true, false); err == nil && a.Content != nil {
				highest = max(highest, uint8(a.Content.Height))
			}
			for range p.rng.IntN(12) {
				p.keep(1)
				p.collect(1, p.rng.IntN(40))
			}
			p.sweepChunks()
			p.retained()
			if i%10 == 9 {
				p.compare()
			}
		}
		if highest < 1 {
			t.Errorf("seed %d: the manifest has one level only", seed)
		}
		p.both("unlink", func() fault.Kind { return p.twin.unlink(Principal{}, p.twin.root, "big", false) }, Principal{}, 0, p.twin.root.id,
			&pb.Operation{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: uint64(p.twin.root.id), Name: []byte("big")}}}, nil)
		p.collectAll()
		if len(p.chunks) != 0 {
			t.Errorf("seed %d: %d chunks are left of nothing", seed, len(p.chunks))
		}
	}
}

// spliceAlike commits pieces of few different chunks, some of which are manifest nodes.
func (p *collecting) spliceAlike(n *thing, count int) {
	p.t.Helper()
	kinds := make([][]byte, 3)
	for i := range kinds {
		kinds[i] = make([]byte, 20+i)
		fill(rand.New(rand.NewPCG(uint64(i), 5)), kinds[i])
	}
	if root := p.current[n.id]; !root.IsZero() && p.rng.IntN(2) == 0 {
		nodes := [][]byte{p.chunks[root]}
		if err := chunk.Refs(p.chunks[root], func(a chunk.Address, isNode bool) {
			if isNode {
				nodes = append(nodes, p.chunks[a])
			}
		}); err != nil {
			p.t.Fatal(err)
		}
		kinds = append(kinds, nodes[p.rng.IntN(len(nodes))])
	}
	c := &pb.Commit{Object: uint64(n.id)}
	at := p.rng.IntN(len(n.data) + 1)
	from, only, large := at, p.rng.IntN(3) == 0, 0
	var data []byte
	for i := range count {
		k := 0
		if !only {
			k = p.rng.IntN(len(kinds))
		}
		if k == 3 {
			if large++; large > 2 {
				k = 0
			}
		}
		piece := kinds[k][:len(kinds[k])-i%2*min(1, k%3)]
		a := chunk.Sum(kinds[k])
		p.chunks[a] = kinds[k]
		c.Extents = append(c.Extents, &pb.Extent{Offset: uint64(at), Length: uint64(len(piece)),
			Source: &pb.Extent_Chunk{Chunk: a[:]}, ChunkSize: uint32(len(kinds[k]))})
		data = append(data, piece...)
		at += len(piece)
	}
	p.both("write", func() fault.Kind { return p.twin.write(Principal{}, n, from, data) },
		Principal{}, 0, n.id, &pb.Operation{Op: &pb.Operation_Commit{Commit: c}}, nil)
}

// TestCollect_RefusesClientsAndTheFuture checks who may collect, and what.
func TestCollect_RefusesClientsAndTheFuture(t *testing.T) {
	w := newWorld(t, 1, 1)
	q := w.places[1]
	for _, c := range []struct {
		name    string
		client  uint64
		collect func(now hlc.Time) *pb.Collect
		want    fault.Kind
	}{
		{"a client", 5, func(now hlc.Time) *pb.Collect { return &pb.Collect{Horizon: uint64(now - 1)} }, fault.Permission},
		{"a horizon ahead", 0, func(now hlc.Time) *pb.Collect { return &pb.Collect{Horizon: uint64(now)} }, fault.Invalid},
		{"a key of another kind", 0, func(now hlc.Time) *pb.Collect {
			return &pb.Collect{Horizon: uint64(now - 1), Dead: [][]byte{{keyState}}}
		}, fault.Invalid},
		{"a manifest that is still retained", 0, func(now hlc.Time) *pb.Collect {
			return &pb.Collect{Horizon: uint64(now - 2), Dead: [][]byte{append(pairKey(keyDead, uint64(now-1), 3), 0, 0)}}
		}, fault.Invalid},
		{"a manifest twice", 0, func(now hlc.Time) *pb.Collect {
			key := append(pairKey(keyDead, uint64(now-5), 3), 0, 0)
			return &pb.Collect{Horizon: uint64(now - 1), Dead: [][]byte{key, key}}
		}, fault.Invalid},
		{"keys that do not ascend", 0, func(now hlc.Time) *pb.Collect {
			return &pb.Collect{Horizon: uint64(now - 1), ForgetFrom: []byte("b"), ForgetTo: []byte("b")}
		}, fault.Invalid},
		{"half an address", 0, func(now hlc.Time) *pb.Collect {
			return &pb.Collect{Horizon: uint64(now - 1), Unused: []byte{1, 2}}
		}, fault.Invalid},
	} {
		context := w.context(q, Principal{})
		context.Client = c.client
		o := Evaluate(q.over, w, context, &pb.Operation{Op: &pb.Operation_Collect{Collect: c.collect(context.Time)}}, nil)
		if o.Err != nil || fault.Kind(o.Result.Kind) != c.want || len(o.Mutations) > 0 {
			t.Errorf("%s: got %v with %d mutations, %v, want %v", c.name, o.Result, len(o.Mutations), o.Err, c.want)
		}
	}
}

// TestCollect_TellsWhatToForget takes a range of keys through the encoding of an entry.
func TestCollect_TellsWhatToForget(t *testing.T) {
	w := newWorld(t, 1, 1)
	q := w.places[1]
	c := w.context(q, Principal{})
	o := Evaluate(q.over, w, c, &pb.Operation{Op: &pb.Operation_Collect{Collect: &pb.Collect{Horizon: 7, ForgetFrom: []byte("i\x00a"), ForgetTo: []byte("x")}}}, nil)
	if !o.Done() || len(o.Mutations) != 1 || !IsForgetting(&o.Mutations[0]) || Versioned(o.Mutations[0].Key) {
		t.Fatalf("got %+v", o)
	}
	mutations, _, err := DecodeData(AppendData(nil, o.Mutations, nil))
	if err != nil {
		t.Fatal(err)
	}
	f, err := ForgottenOf(&mutations[0])
	if err != nil || string(f.From) != "i\x00a" || string(f.To) != "x" || f.Horizon != 7 {
		t.Errorf("got %+v, %v", f, err)
	}
	if _, err := ForgottenOf(&Mutation{Key: mutations[0].Key, Value: mutations[0].Value[:9]}); !fault.Is(err, fault.Corrupt) {
		t.Errorf("half of it: got %v, want Corrupt", err)
	}
}
