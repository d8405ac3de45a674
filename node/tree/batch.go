package tree

import (
	"errors"
	"slices"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/protocol/pb"
)

const (
	// MaxBatch bounds the operations of one batch; one with more is Invalid.
	MaxBatch = 4096
	// maxBatchBytes bounds what a batch's entry carries, mutations, chunks and
	// results together: below what an entry of the log may have.
	maxBatchBytes = 3 << 20
	// maxResultBytes bounds the results alone: with a lease and tickets for each
	// object that was made they must go into the head of one frame.
	maxResultBytes = 1 << 20
	// maxDead is how many mutations a batch may have seen when one of its operations
	// notes a dead manifest (txn.dead numbers those by them).
	maxDead = 1 << 16
)

// batch evaluates operations of one client one behind the other, and gathers what
// the entry that makes them true has. It implements Nodes over the chunks that
// they brought.
type batch struct {
	*layer
	nodes             Nodes
	c                 Context // as the batch came
	one               Context // what the operation being evaluated is told
	txn               txn
	state             State
	counts            bool // the state is to be written
	seen              int  // mutations of the operations so far, those of one key each counted
	chunked, answered int  // bytes of the chunks and of the results

	chunks  map[chunk.Address][]byte
	inline  []Chunk
	needs   []byte // of a merge, which may name chunks
	touched []Touch
	touches map[touching]int // in touched
	made    map[ids.Object]*pb.Create
	refused map[ids.Object]struct{} // what creates would have made that were refused
	results []*pb.Result
}

// touching is what one Touch is about.
type touching struct {
	object ids.Object
	what   pb.Grant_What
}

// ended says that a batch goes no further: it ends before the operation that was
// evaluated last.
type ended struct{}

func (ended) Error() string { return "the batch ends here" }

// evaluateBatch evaluates the operations of a batch in their order, each over what
// those before it left. One that is refused changes nothing. The batch ends before
// the first one that is blocked, needs another slice or would make it too large:
// the result has none for that one and those behind it.
func evaluateBatch(v View, n Nodes, c *Context, op *pb.Operation, body []byte) Outcome {
	list := op.GetBatch().GetOperations()
	if !mayBatch(list) {
		return Outcome{Result: &pb.Result{Kind: uint32(fault.Invalid), Message: fault.Invalid.String()}}
	}
	state, err := ReadState(v)
	if err != nil {
		return Outcome{Err: fault.Wrap(fault.IO, "tree.Evaluate", "", err)}
	}
	b := &batch{layer: newLayer(v, len(list)), nodes: n, c: *c, state: state,
		touches: make(map[touching]int, len(list)+2), results: make([]*pb.Result, 0, len(list))}
	for _, o := range list {
		at := o.TimeNs
		if at == 0 {
			at = op.TimeNs
		}
		err := b.run(o, at, body)
		var held blocked
		switch {
		case err == nil:
			continue
		case errors.As(err, &held) && plant.On(plant.BatchRunsOn):
			b.results = append(b.results, &pb.Result{})
			continue
		case errors.As(err, &held) && len(b.results) == 0:
			return Outcome{Blocked: Intent(held)}
		case errors.As(err, &held), errors.As(err, &acrossSlices{}), errors.As(err, &ended{}):
		default:
			return Outcome{Err: fault.Wrap(fault.IO, "tree.Evaluate", "", err)}
		}
		break
	}
	return b.outcome(op.GetBatch().Reserve)
}

// mayBatch reports whether a batch has only what may be in one.
func mayBatch(list []*pb.Operation) bool {
	if len(list) > MaxBatch {
		return false
	}
	for _, o := range list {
		var commit *pb.Commit
		switch o := o.GetOp().(type) {
		case *pb.Operation_Create:
			if o.Create.GetObject() == 0 || o.Create.Nameless {
				return false
			}
			commit = o.Create.Commit
		case *pb.Operation_Commit:
			commit = o.Commit
		case *pb.Operation_Unlink, *pb.Operation_Rename, *pb.Operation_Link, *pb.Operation_SetAttr, *pb.Operation_SetXattr:
		default:
			return false
		}
		for _, e := range commit.GetExtents() {
			if _, named := e.GetSource().(*pb.Extent_Chunk); named {
				return false
			}
		}
	}
	return true
}

// run evaluates one operation and takes in what it does, or its refusal. After an
// error it has done nothing.
func (b *batch) run(o *pb.Operation, at int64, body []byte) error {
	b.one = b.c
	t := &b.txn
	*t = txn{view: b.layer, nodes: b, c: &b.one, now: at, part: true, before: b.seen, state: b.state, result: &pb.Result{},
		mutations: t.mutations[:0], touched: t.touched[:0]}
	if t.now == 0 {
		t.now = int64(b.c.Time)
	}
	t.inodes = t.room[:0]
	err := b.mayName(o)
	if err == nil {
		err = t.dispatch(o, body)
	}
	if err == nil {
		err = t.finish()
	}
	var no refusal
	switch {
	case err == nil:
		return b.take(o)
	case errors.As(err, &no):
		if create := o.GetCreate(); create != nil && b.made[ids.Object(create.Object)] == nil {
			if b.refused == nil {
				b.refused = map[ids.Object]struct{}{}
			}
			b.refused[ids.Object(create.Object)] = struct{}{}
		}
		return b.answer(&pb.Result{Kind: uint32(no), Message: no.Error()}, 0)
	}
	return err
}

// mayName refuses an object that was to be made in this batch, and was not, where
// its maker's right to name it came from that alone.
func (b *batch) mayName(o *pb.Operation) error {
	if !b.c.OnlyMade || len(b.refused) == 0 {
		return nil
	}
	for _, named := range namedBy(o) {
		if _, not := b.refused[ids.Object(named)]; not {
			return refusal(fault.Stale)
		}
	}
	return nil
}

// namedBy returns the objects that an operation of a batch names by ID; 0: none.
func namedBy(o *pb.Operation) [2]uint64 {
	switch o := o.Op.(type) {
	case *pb.Operation_Create:
		return [2]uint64{o.Create.Dir}
	case *pb.Operation_Unlink:
		return [2]uint64{o.Unlink.Dir}
	case *pb.Operation_Rename:
		return [2]uint64{o.Rename.Dir, o.Rename.NewDir}
	case *pb.Operation_Link:
		return [2]uint64{o.Link.Object, o.Link.Dir}
	case *pb.Operation_SetAttr:
		return [2]uint64{o.SetAttr.Object}
	case *pb.Operation_SetXattr:
		return [2]uint64{o.SetXattr.Object}
	case *pb.Operation_Commit:
		return [2]uint64{o.Commit.Object}
	}
	return [2]uint64{}
}

// take takes in what an operation does, unless that is too much for one entry.
func (b *batch) take(o *pb.Operation) error {
	t, create := &b.txn, o.GetCreate()
	r := &pb.Result{}
	if create != nil || o.GetCommit() != nil {
		r.Attr = t.result.Attr
	}
	more := 0
	for i := range t.mutations {
		more += mutationSize(&t.mutations[i])
	}
	for i := range t.inline {
		more += inlineSize(&t.inline[i])
	}
	if len(b.results) > 0 && b.seen+len(t.mutations) > maxDead {
		return ended{}
	}
	if err := b.answer(r, more); err != nil {
		return err
	}
	if create != nil {
		if b.made == nil {
			b.made = map[ids.Object]*pb.Create{}
		}
		b.made[ids.Object(create.Object)] = create
		delete(b.refused, ids.Object(create.Object))
	}
	b.add(t.mutations)
	b.keep(t.inline)
	b.needs = append(b.needs, t.needs...)
	b.touch(t.touched)
	b.seen += len(t.mutations)
	b.state, b.counts = t.state, b.counts || t.stateDirty
	return nil
}

// answer adds an operation's result, unless that and what else the operation
// brings to the entry are too much.
func (b *batch) answer(r *pb.Result, more int) error {
	size := proto.Size(r) + 4
	if b.layer.size+b.chunked+b.answered+size+more > maxBatchBytes || b.answered+size > maxResultBytes {
		return ended{}
	}
	b.answered += size
	b.results = append(b.results, r)
	return nil
}

// keep lets later operations read the chunks that one brought.
func (b *batch) keep(inline []Chunk) {
	if b.chunks == nil && len(inline) > 0 {
		b.chunks = map[chunk.Address][]byte{}
	}
	for i := range inline {
		if _, known := b.chunks[inline[i].Address]; !known {
			b.chunks[inline[i].Address] = inline[i].Data
			b.inline = append(b.inline, inline[i])
			b.chunked += inlineSize(&inline[i])
		}
	}
}

// Node implements Nodes.
func (b *batch) Node(a chunk.Address) ([]byte, error) {
	if data, ok := b.chunks[a]; ok {
		return data, nil
	}
	return b.nodes.Node(a)
}

// touch joins what an operation touches with the rest. Nobody has a lease on what
// the batch itself made.
func (b *batch) touch(touched []Touch) {
	for i := range touched {
		x := &touched[i]
		if b.made[x.Object] != nil {
			continue
		}
		k := touching{x.Object, x.What}
		at, known := b.touches[k]
		if !known {
			b.touches[k] = len(b.touched)
			b.touched = append(b.touched, *x)
			continue
		}
		if y := &b.touched[at]; string(y.Name) != string(x.Name) {
			y.Name = nil // it is about several
		}
		b.touched[at].Unlinked = b.touched[at].Unlinked || x.Unlinked
	}
}

// outcome ends the batch. It gives numbers in advance whatever became of its
// operations.
func (b *batch) outcome(reserve uint32) Outcome {
	r := &pb.Result{Results: b.results}
	last := numbers{&txn{c: &b.c, state: b.state, result: r}}
	if last.give(reserve); b.counts || last.stateDirty {
		b.add([]Mutation{{Key: []byte{keyState}, Value: appendState(make([]byte, 0, 32), &last.state)}})
	}
	if len(b.list) > 0 {
		r.Serial = uint64(b.c.Serial)
	}
	return Outcome{Result: r, Mutations: b.list, Inline: b.inline, Touched: b.touched, Alone: b.alone(), Beside: b.answered}
}

// alone lists the directories that were made for a client that can use a lease of
// kind ALONE on them, and that are there.
func (b *batch) alone() (out []ids.Object) {
	for o, create := range b.made {
		if !create.Alone || create.Mode&TypeMask != TypeDir {
			continue
		}
		if at, ok := b.at[string(objectKey(keyInode, o))]; ok && b.list[at].Value != nil {
			out = append(out, o)
		}
	}
	slices.Sort(out)
	return out
}
