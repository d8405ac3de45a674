package tree

import (
	"errors"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// merging evaluates what a side log did to one object, over the state that its
// active has. Each change is an ordinary operation of root's, evaluated over those
// before it: the side has checked who may do it.
//
// The rules, all of which compare with what the side began from:
//   - What the side alone changed becomes so. What both changed alike stays.
//   - Of two contents of a file the newer one wins, by the time of writing; the
//     other one is kept as a file beside it, under a name that says so.
//   - Of two files made under one name the newer one has it; of two directories one
//     becomes the other. A directory keeps its name before a file.
//   - A name that the side took away goes only if nobody wrote the file meanwhile,
//     and a directory only if it is empty. What was removed meanwhile does not come
//     back, unless the side wrote it: then its content is kept as a file.
type merging struct {
	*batch
	m     *pb.Merge
	body  []byte
	notes []*pb.Conflict
	into  ids.Object // what the object is here, where that is another one
	lost  bool       // another content than the side's stayed
}

// evaluateMerge evaluates all of a Merge, or refuses all of it.
func evaluateMerge(v View, n Nodes, c Context, m *pb.Merge, body []byte) Outcome {
	const op fault.Op = "tree.evaluateMerge"
	if c.Client != 0 || ids.Object(m.Object).Slice() != c.Slice {
		return Outcome{Result: &pb.Result{Kind: uint32(fault.Permission), Message: fault.Permission.String()}}
	}
	state, err := ReadState(v)
	if err != nil {
		return Outcome{Err: fault.Wrap(fault.IO, op, "", err)}
	}
	c.Principal, c.Trusted, c.Side = Principal{}, true, true
	g := &merging{m: m, body: body, batch: &batch{layer: newLayer(v, 4), nodes: n, c: c, state: state, touches: map[touching]int{}}}
	err = g.run()
	if err == nil {
		err = g.remember()
	}
	if err == nil {
		err = g.keepNotes()
	}
	var no refusal
	var held blocked
	switch {
	case err == nil:
		return g.outcome()
	case errors.As(err, &no):
		return Outcome{Result: &pb.Result{Kind: uint32(no), Message: no.Error()}}
	case errors.As(err, &held):
		return Outcome{Blocked: Intent(held)}
	case errors.As(err, &acrossSlices{}):
		return Outcome{Result: &pb.Result{Kind: uint32(fault.Stale), Message: "what the side changed is in several slices now"}}
	case errors.As(err, &ended{}):
		return Outcome{Result: &pb.Result{Kind: uint32(fault.TooLarge), Message: "the merge is too large for one entry"}}
	}
	return Outcome{Err: fault.Wrap(fault.IO, op, "", err)}
}

func (g *merging) outcome() Outcome {
	needs := g.needs
	g.results = nil
	out := g.batch.outcome(0)
	out.Needs = needs
	out.Result.Results = nil
	at := ids.Object(g.m.Object)
	if g.into != 0 {
		at, out.Result.Existed = g.into, true
	}
	n, err := readInode(g.layer, at)
	if err != nil {
		return Outcome{Err: fault.Wrap(fault.IO, "tree.Evaluate", "", err)}
	}
	if n != nil {
		out.Result.Attr = n.Attr()
		if g.lost { // the next write at the side does not begin from what is here
			out.Result.Attr.Version = 0
		}
	}
	return out
}

// do evaluates one operation over those before it. One that is refused refuses the
// merge.
func (g *merging) do(o *pb.Operation, body []byte) error {
	kind, err := g.try(o, body)
	if err == nil && kind != fault.None {
		return refusal(kind)
	}
	return err
}

// try is do for an operation that may be refused, which then changes nothing.
func (g *merging) try(o *pb.Operation, body []byte) (fault.Kind, error) {
	g.results = g.results[:0]
	if err := g.batch.run(o, g.m.AtNs, body); err != nil {
		return fault.None, err
	}
	return fault.Kind(g.results[0].Kind), nil
}

func (g *merging) run() error {
	o := ids.Object(g.m.Object)
	x, err := readInode(g.layer, o)
	if err != nil {
		return err
	}
	gone := false
	if x == nil && g.m.Fresh {
		if gone, err = isUsedUp(g.layer, o); err != nil {
			return err
		}
	}
	switch {
	case g.m.Attr == nil:
		return g.removed(x)
	case x != nil:
		return g.changed(x)
	case !g.m.Fresh:
		return g.missing()
	case gone:
		return nil // it was merged, and removed since
	}
	return g.made()
}

// isUsedUp reports whether an object was in a state, and is gone.
func isUsedUp(v View, o ids.Object) (bool, error) {
	bits, err := numbers{&txn{view: v}}.usedBits(usedKey(o))
	at := o.Number() % usedBlock
	return bits != nil && bits[at/8]&(1<<(at%8)) != 0, err
}

// made makes what the side made, under its names.
func (g *merging) made() error {
	m := g.m
	if len(m.Gained) == 0 {
		return nil
	}
	dir, name, err := g.place(m.Gained[0], false)
	if err != nil || g.into != 0 {
		return err
	}
	a := m.Attr
	create := &pb.Create{Dir: uint64(dir), Name: name, Mode: a.Mode, Rdev: a.Rdev, Target: a.Target, Cues: a.Cues, Object: m.Object, MadeNs: a.BtimeNs}
	if a.Mode&TypeMask == TypeRegular {
		create.Commit = m.Content
	}
	if err := g.do(&pb.Operation{Op: &pb.Operation_Create{Create: create}}, g.body); err != nil {
		return err
	}
	if err := g.attributes(true); err != nil {
		return err
	}
	if err := g.seal(); err != nil {
		return err
	}
	return g.names(m.Gained[1:])
}

// remember notes which content of the side the file has, or had beside what won: who
// wrote that goes on from here.
func (g *merging) remember() error {
	x, err := readInode(g.layer, ids.Object(g.m.Object))
	if err != nil || x == nil || !x.IsRegular() || x.Side.Merged >= g.m.SideVersion {
		return err
	}
	g.c.SideLost = g.lost
	return g.do(&pb.Operation{Op: &pb.Operation_Commit{Commit: &pb.Commit{Object: g.m.Object, SideVersion: g.m.SideVersion}}}, nil)
}

// seal seals a write-once file that the side sealed, if it has the side's content.
func (g *merging) seal() error {
	if !g.m.Attr.Sealed || g.lost {
		return nil
	}
	return g.do(&pb.Operation{Op: &pb.Operation_Commit{Commit: &pb.Commit{Object: g.m.Object, Seal: true}}}, nil)
}

// changed brings what the side did to an object that is here.
func (g *merging) changed(x *Inode) error {
	newer := g.m.AtNs > x.Ctime
	if g.m.Wrote {
		if err := g.content(x); err != nil {
			return err
		}
	}
	if g.m.Changed {
		if err := g.attributes(newer); err != nil {
			return err
		}
	}
	if err := g.seal(); err != nil {
		return err
	}
	gained := g.m.Gained
	lost, err := g.namesLost(x)
	if err != nil {
		return err
	}
	for _, l := range lost {
		is, err := g.has(l)
		if err != nil || !is {
			if err != nil {
				return err
			}
			continue
		}
		o := &pb.Operation{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: l.Dir, Name: l.Name, Object: g.m.Object}}}
		if len(gained) > 0 {
			dir, name, err := g.place(gained[0], true)
			if err != nil {
				return err
			}
			gained = gained[1:]
			if name != nil {
				o.Op = &pb.Operation_Rename{Rename: &pb.Rename{Dir: l.Dir, Name: l.Name, NewDir: uint64(dir), NewName: name, Object: g.m.Object, NoReplace: true}}
			} // else it has that one already, of a rename that the active did late
		}
		if x.IsDir() && o.GetUnlink() != nil {
			continue
		}
		if err := g.do(o, nil); err != nil {
			return err
		}
	}
	if x.IsDir() {
		return nil
	}
	return g.names(gained)
}

// has reports whether a name means the object here.
func (g *merging) has(n *pb.Named) (bool, error) {
	e, found, err := g.find(n.Dir, n.Name)
	return found && uint64(e.Object) == g.m.Object, err
}

func (g *merging) find(dir uint64, name []byte) (Entry, bool, error) {
	value, ok, err := g.layer.Get(nameKey(keyEntry, ids.Object(dir), name))
	if err != nil || !ok {
		return Entry{}, false, err
	}
	return firstEntry(value)
}

// keep makes a file beside what won.
func (g *merging) keep(won, dir ids.Object, name, spare []byte, why string, content *pb.Commit, a *pb.Attr, body []byte) error {
	create := &pb.Create{Dir: uint64(dir), Name: spare, Mode: TypeRegular | a.Mode&0o777, Commit: content, Exclusive: true}
	if err := g.do(&pb.Operation{Op: &pb.Operation_Create{Create: create}}, body); err != nil {
		return err
	}
	kept, _, err := g.find(uint64(dir), spare)
	if err != nil {
		return err
	}
	g.note(won, dir, name, kept.Object, spare, why)
	return g.do(&pb.Operation{Op: &pb.Operation_SetAttr{SetAttr: &pb.SetAttr{Object: uint64(kept.Object), Uid: &a.Uid, Gid: &a.Gid, MtimeNs: &a.MtimeNs}}}, nil)
}

// removed takes away the names that the side took, where nobody wrote the object
// meanwhile.
func (g *merging) removed(x *Inode) error {
	if x == nil {
		return nil
	}
	for _, l := range g.m.Lost {
		is, err := g.has(l)
		if err != nil {
			return err
		}
		if !is {
			continue
		}
		if x.IsRegular() && x.Version != g.m.BaseVersion {
			g.note(x.Object, ids.Object(l.Dir), l.Name, 0, nil, "it was removed at the side, and written elsewhere: it stays")
			continue
		}
		kind, err := g.try(&pb.Operation{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: l.Dir, Name: l.Name, Object: g.m.Object, Directory: x.IsDir()}}}, nil)
		switch {
		case err != nil:
			return err
		case kind == fault.NotEmpty:
			g.note(x.Object, ids.Object(l.Dir), l.Name, 0, nil, "it was removed at the side, and has names now: it stays")
		case kind != fault.None:
			return refusal(kind)
		}
	}
	return nil
}

// missing keeps what the side wrote into a file that was removed meanwhile: under the
// name that the side gave it, or beside the one that it had. What the side did not
// write stays removed.
func (g *merging) missing() error {
	const why = "it was removed elsewhere, and written at the side"
	if !g.m.Wrote {
		return nil
	}
	if len(g.m.Gained) == 0 {
		return g.keepSide(0, why)
	}
	n := g.m.Gained[0]
	dir, err := g.home(n.Dir)
	if err != nil {
		return err
	}
	if e, found, err := g.find(uint64(dir), n.Name); err != nil || found {
		other, err := readInode(g.layer, e.Object)
		if err != nil {
			return err
		}
		if other != nil {
			if same, err := g.isSame(other); err != nil || same {
				return err
			}
		}
	}
	dir, name, err := g.place(n, false)
	if err != nil || name == nil {
		return err
	}
	return g.keep(0, dir, n.Name, name, why, g.m.Content, g.m.Attr, g.body)
}
