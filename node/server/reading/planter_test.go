package reading

import (
	"bytes"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/store/meta"
	"cartwheel.dev/node/tree"
)

// chunks keeps what entries carry. It implements operate.Chunks.
type chunks map[chunk.Address][]byte

func (c chunks) Node(a chunk.Address) ([]byte, error) {
	if data, ok := c[a]; ok {
		return data, nil
	}
	return nil, fault.E(fault.Missing, "test.Node", a.String(), "")
}

func (c chunks) Has(a chunk.Address) bool { return c[a] != nil }

func (c chunks) PutInline(list []tree.Chunk) error {
	for _, x := range list {
		c[x.Address] = bytes.Clone(x.Data)
	}
	return nil
}

// planter runs operations as the slices' loops do, and commits them at once.
// It is for one goroutine at a time.
type planter struct {
	*testing.T
	db      *meta.DB
	clock   hlc.Time
	serials map[ids.Slice]ids.Serial
	chunks  chunks
}

func (p *planter) view(id ids.Slice) tree.View { return operate.Committed(p.db, id) }

func (p *planter) context(id ids.Slice, who tree.Principal) tree.Context {
	p.clock += 1 << 20
	return tree.Context{Slice: id, Serial: p.serials[id] + 1, Time: p.clock, Node: "n1", Principal: who}
}

// commit writes what an outcome changes.
func (p *planter) commit(c tree.Context, o tree.Outcome) {
	p.Helper()
	p.serials[c.Slice] = c.Serial
	batch := p.db.NewBatch()
	if err := operate.ApplyEntry(batch, p.chunks, &replica.Entry{Slice: c.Slice, Serial: c.Serial, Time: c.Time}, o.Mutations, o.Inline); err != nil {
		p.Fatalf("applying an operation: %v", err)
	}
	if err := batch.Commit(); err != nil {
		p.Fatalf("committing an operation: %v", err)
	}
}

// format makes a slice, with the root directory where it is the root's.
func (p *planter) format(id ids.Slice) {
	p.Helper()
	c := p.context(id, root)
	p.commit(c, tree.Outcome{Mutations: tree.Format(c, nil, int64(c.Time))})
}

// run evaluates an operation in a slice, and wants it to be done.
func (p *planter) run(id ids.Slice, who tree.Principal, client uint64, op *pb.Operation, body []byte) *pb.Result {
	p.Helper()
	c := p.context(id, who)
	c.Client, op.TimeNs = client, int64(c.Time)
	o := tree.Evaluate(p.view(id), p.chunks, c, op, body)
	if o.Err != nil || o.Result.GetKind() != 0 || o.Across || o.Blocked != 0 {
		p.Fatalf("%v: got %+v", op, o)
	}
	if len(o.Mutations) > 0 {
		p.commit(c, o)
	}
	return o.Result
}

// create makes an object of a mode, type included, that belongs to an owner.
func (p *planter) create(dir ids.Object, name string, mode uint32, who tree.Principal) ids.Object {
	p.Helper()
	m := &pb.Create{Dir: uint64(dir), Name: []byte(name), Mode: mode}
	if mode&tree.TypeMask == tree.TypeLink {
		m.Target = []byte("target")
	}
	o := ids.Object(p.run(dir.Slice(), root, 0, &pb.Operation{Op: &pb.Operation_Create{Create: m}}, nil).Attr.Object)
	p.chown(o, who)
	return o
}

// chown gives an object that is root's to another owner.
func (p *planter) chown(o ids.Object, who tree.Principal) {
	p.Helper()
	if who.UID == root.UID {
		return
	}
	set := &pb.SetAttr{Object: uint64(o), Uid: &who.UID, Gid: &who.GID}
	p.run(o.Slice(), root, 0, &pb.Operation{Op: &pb.Operation_SetAttr{SetAttr: set}}, nil)
}

func (p *planter) mkdir(dir ids.Object, name string, perm uint32, who tree.Principal) ids.Object {
	p.Helper()
	return p.create(dir, name, tree.TypeDir|perm, who)
}

// file makes a regular file with content.
func (p *planter) file(dir ids.Object, name string, perm uint32, who tree.Principal, content string) ids.Object {
	p.Helper()
	o := p.create(dir, name, tree.TypeRegular|perm, who)
	if content != "" {
		p.write(o, content)
	}
	return o
}

func (p *planter) write(o ids.Object, content string) {
	p.Helper()
	extent := &pb.Extent{Length: uint64(len(content)), Source: &pb.Extent_BodyOffset{}}
	commit := &pb.Commit{Object: uint64(o), Extents: []*pb.Extent{extent}}
	p.run(o.Slice(), root, 0, &pb.Operation{Op: &pb.Operation_Commit{Commit: commit}}, []byte(content))
}

// apart makes an object in another slice than the directory that names it.
func (p *planter) apart(dir ids.Object, name string, id ids.Slice, mode uint32, who tree.Principal) ids.Object {
	p.Helper()
	m := &pb.MakeObject{Parent: uint64(dir), Mode: mode}
	o := p.run(id, root, 0, &pb.Operation{Op: &pb.Operation_MakeObject{MakeObject: m}}, nil).Attr.Object
	link := &pb.LinkName{Dir: uint64(dir), Name: []byte(name), Object: o, Mode: mode & tree.TypeMask}
	p.run(dir.Slice(), root, 0, &pb.Operation{Op: &pb.Operation_LinkName{LinkName: link}}, nil)
	p.chown(ids.Object(o), who)
	return ids.Object(o)
}

func (p *planter) unlink(dir ids.Object, name string) {
	p.Helper()
	p.run(dir.Slice(), root, 0, &pb.Operation{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: uint64(dir), Name: []byte(name)}}}, nil)
}

// hold notes that a client has a file open.
func (p *planter) hold(o ids.Object, client uint64) {
	p.Helper()
	p.run(o.Slice(), root, client, &pb.Operation{Op: &pb.Operation_Hold{Hold: &pb.Hold{Object: uint64(o), Client: client}}}, nil)
}

func (p *planter) setXattr(o ids.Object, name, value string) {
	p.Helper()
	set := &pb.SetXattr{Object: uint64(o), Name: name, Value: []byte(value)}
	p.run(o.Slice(), root, 0, &pb.Operation{Op: &pb.Operation_SetXattr{SetXattr: set}}, nil)
}

// intent is an operation over several slices that is under way.
type intent struct {
	p *planter
	k *tree.Coordinator
}

// move begins to move a name to a directory of another slice, and stops when
// both directories' names are locked.
func (p *planter) move(dir ids.Object, name string, to ids.Object) *intent {
	p.Helper()
	rename := &pb.Rename{Dir: uint64(dir), Name: []byte(name), NewDir: uint64(to), NewName: []byte(name)}
	c := p.context(dir.Slice(), root)
	i := &intent{p: p, k: tree.NewCoordinator(c, &pb.Operation{TimeNs: int64(c.Time), Op: &pb.Operation_Rename{Rename: rename}})}
	for !i.locks(dir) || !i.locks(to) {
		i.step()
	}
	return i
}

func (i *intent) locks(dir ids.Object) bool {
	i.p.Helper()
	held, err := tree.NamesLocked(i.p.view(dir.Slice()), dir)
	if err != nil {
		i.p.Fatalf("reading the locks: %v", err)
	}
	return held != 0
}

// finish runs an intent to its end.
func (i *intent) finish() {
	i.p.Helper()
	for !i.k.Done() {
		i.step()
	}
	if r := i.k.Result(); r.Kind != 0 {
		i.p.Fatalf("the intent came to %v", r)
	}
}

func (i *intent) step() {
	i.p.Helper()
	actions := i.k.Next()
	if len(actions) == 0 {
		i.p.Fatal("the coordinator has ended")
	}
	answers := make([]tree.Answer, len(actions))
	for n, a := range actions {
		if a.Step == nil {
			answers[n].Facts, answers[n].Err = tree.ReadFacts(i.p.view(a.Slice), a.Asks)
			continue
		}
		c := i.p.context(a.Slice, root)
		o := tree.Evaluate(i.p.view(a.Slice), i.p.chunks, c, &pb.Operation{TimeNs: int64(c.Time), Op: &pb.Operation_Step{Step: a.Step}}, nil)
		if o.Err != nil || o.Blocked != 0 {
			i.p.Fatalf("a step came to %+v", o)
		}
		if len(o.Mutations) > 0 {
			i.p.commit(c, o)
		}
		answers[n] = tree.Answer{Result: o.Result, Time: c.Time}
	}
	i.k.Answer(answers)
}
