package tree

import (
	"encoding/binary"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// create makes an object and its name, or opens what the name already means.
func (t *txn) create(op *pb.Create, body []byte) error {
	if op.Nameless {
		return t.createNameless(op)
	}
	if err := checkName(op.Name); err != nil {
		return err
	}
	d, err := t.directory(ids.Object(op.Dir))
	if err != nil {
		return err
	}
	if err := t.access(d, mayExec); err != nil {
		return err
	}
	e, value, found, err := t.lookup(d.Object, op.Name)
	if err != nil {
		return err
	}
	if found {
		return t.openExisting(op, body, d, e)
	}
	if err := t.mayAdd(d); err != nil {
		return err
	}
	n, err := t.newInode(d.Inode, op)
	if err != nil {
		return err
	}
	if n.IsDir() && d.Nlink >= MaxLinks {
		return refusal(fault.TooManyLinks)
	}
	if op.Object != 0 {
		n.Object, err = numbers{t}.given(ids.Object(op.Object))
	} else {
		n.Object, err = numbers{t}.next()
	}
	if err != nil {
		return err
	}
	n.Parent = d.Object
	if made := t.add(n); op.Commit != nil {
		if err := t.first(made, op.Commit, body, false); err != nil {
			return err
		}
	}
	numbers{t}.give(op.Reserve)
	t.setEntry(d.Object, op.Name, value, n.Object, n.Mode)
	links := 0
	if n.IsDir() {
		links = 1
	}
	t.touchDir(d, links)
	t.result.Attr, t.result.Dir = n.Attr(), d.Attr()
	t.result.Creation = t.creation()
	if op.Commit == nil {
		return nil
	}
	return t.addContent(n, t.result.Attr)
}

// createNameless makes a file that no name leads to: its creator holds it open,
// and it goes when it is let go, unless Link has named it by then.
func (t *txn) createNameless(op *pb.Create) error {
	if op.Mode&TypeMask != TypeRegular || t.c.Client == 0 {
		return refusal(fault.Invalid)
	}
	d, err := t.directory(ids.Object(op.Dir))
	if err != nil {
		return err
	}
	if err := t.access(d, mayExec); err != nil {
		return err
	}
	if err := t.mayAdd(d); err != nil {
		return err
	}
	n, err := t.newInode(d.Inode, op)
	if err != nil {
		return err
	}
	if n.Object, err = (numbers{t}).next(); err != nil {
		return err
	}
	n.Nlink, t.nameless = 0, true
	t.opener(true)
	t.add(n)
	t.result.Attr = n.Attr()
	return nil
}

// openExisting answers a create that found the name taken.
func (t *txn) openExisting(op *pb.Create, body []byte, d *loaded, e Entry) error {
	if op.Exclusive || op.Object != 0 && !t.c.Side || op.Mode&TypeMask != TypeRegular {
		return refusal(fault.Exists)
	}
	t.result.Existed, t.result.Creation = true, e.Creation
	t.result.Dir = d.Attr()
	if e.Object.Slice() != t.c.Slice { // the caller goes there, with its content
		t.result.Attr = &pb.Attr{Object: uint64(e.Object), Mode: e.Type}
		return nil
	}
	n, err := t.inode(e.Object)
	if err != nil {
		return err
	}
	if n.IsDir() {
		return refusal(fault.IsDirectory)
	}
	if (op.Truncate || op.Commit != nil) && n.IsRegular() {
		if err := t.access(n, mayWrite); err != nil {
			return err
		}
	}
	switch {
	case op.Commit != nil:
		err = t.first(n, op.Commit, body, op.Truncate)
	case op.Truncate && n.IsRegular():
		err = t.truncate(n, 0)
	}
	if err != nil {
		return err
	}
	t.result.Attr = n.Attr()
	return t.addContent(n.Inode, t.result.Attr)
}

// newInode builds the object that a create asks for: mode, owner, ACLs and
// cues as its directory has it.
func (t *txn) newInode(d *Inode, op *pb.Create) (*Inode, error) {
	n := &Inode{
		Mode: op.Mode & (TypeMask | 0o7777), UID: t.c.UID, GID: t.c.GID, Nlink: 1, Rdev: op.Rdev,
		Atime: t.now, Mtime: t.now, Ctime: t.now, Btime: t.now, Change: uint64(t.c.Serial),
		Cues: mergeCues(d.Cues, op.Cues),
	}
	if op.MadeNs != 0 {
		n.Atime, n.Mtime, n.Ctime, n.Btime = op.MadeNs, op.MadeNs, op.MadeNs, op.MadeNs
	}
	if err := t.checkType(n, op.Target); err != nil {
		return nil, err
	}
	if d.Mode&setGID != 0 {
		n.GID = d.GID
		if n.IsDir() {
			n.Mode |= setGID
		} else if n.Mode&(setGID|0o010) == setGID|0o010 && !t.c.root() && !t.c.in(n.GID) {
			n.Mode &^= setGID
		}
	}
	switch {
	case n.Mode&TypeMask == TypeLink:
		n.Mode = TypeLink | 0o777
	case len(d.DefaultACL) > 0:
		access, mode := acl(d.DefaultACL).inherit(n.Mode)
		n.ACL, n.Mode = access, mode
		if n.IsDir() {
			n.DefaultACL = d.DefaultACL
		}
	default:
		n.Mode &^= op.Umask & 0o777
	}
	return n, nil
}

// checkType fills in what depends on the type of a new object.
func (t *txn) checkType(n *Inode, target []byte) error {
	switch n.Mode & TypeMask {
	case TypeRegular:
		n.Version = uint64(t.c.Serial)
	case TypeDir:
		n.Nlink = 2
	case TypeLink:
		switch {
		case len(target) == 0:
			return refusal(fault.NotFound)
		case len(target) > MaxTarget:
			return refusal(fault.NameTooLong)
		}
		n.Target, n.Size = target, uint64(len(target))
	case TypeChar, TypeBlock:
		if !t.c.root() && (n.Rdev != 0 || n.Mode&TypeMask == TypeBlock) {
			return refusal(fault.NotOwner)
		}
	case TypeFifo, TypeSocket:
	default:
		return refusal(fault.Invalid)
	}
	if n.Mode&TypeMask != TypeChar && n.Mode&TypeMask != TypeBlock {
		n.Rdev = 0
	}
	return nil
}

// mergeCues gives the cues of a new object: the path's, and its directory's
// where the path says nothing.
func mergeCues(dir, path *pb.Cues) *pb.Cues {
	if path == nil || (path.Site == "" && !path.KeepTogether && path.RepSites == 0 && path.RepLevel == 0 &&
		!path.WriteOnce && path.CoherenceNs == 0 && !path.EventualMerge) {
		return dir
	}
	out := &pb.Cues{}
	if dir != nil {
		out.Site, out.KeepTogether, out.RepSites, out.RepLevel = dir.Site, dir.KeepTogether, dir.RepSites, dir.RepLevel
		out.WriteOnce, out.CoherenceNs, out.EventualMerge = dir.WriteOnce, dir.CoherenceNs, dir.EventualMerge
	}
	if path.Site != "" {
		out.Site = path.Site
	}
	if path.RepSites != 0 {
		out.RepSites = path.RepSites
	}
	if path.RepLevel != 0 {
		out.RepLevel = path.RepLevel
	}
	if path.CoherenceNs != 0 {
		out.CoherenceNs = path.CoherenceNs
	}
	out.KeepTogether = out.KeepTogether || path.KeepTogether
	out.WriteOnce = out.WriteOnce || path.WriteOnce
	out.EventualMerge = out.EventualMerge || path.EventualMerge
	return out
}

// makeObject makes an object whose name will be in another slice. It has its
// link count from the start, and a mark for the sweeper until it is confirmed.
func (t *txn) makeObject(op *pb.MakeObject) error {
	parent := &Inode{Object: ids.Object(op.Parent)}
	if op.UseGid {
		parent.Mode, parent.GID = TypeDir|setGID, op.Gid
	}
	for _, x := range op.Xattrs {
		if x.Name != XattrDefaultACL {
			return refusal(fault.Invalid)
		}
		a, err := parseACL(x.Value)
		if err != nil {
			return err
		}
		parent.DefaultACL = a
	}
	n, err := t.newInode(parent, &pb.Create{Mode: op.Mode, Umask: op.Umask, Rdev: op.Rdev, Target: op.Target, Cues: op.Cues})
	if err != nil {
		return err
	}
	if n.Object, err = (numbers{t}).next(); err != nil {
		return err
	}
	if n.IsDir() {
		n.Parent = parent.Object
	}
	t.add(n)
	t.put(objectKey(keyNoname, n.Object), t.mark(parent.Object))
	numbers{t}.give(op.Reserve)
	t.result.Attr = n.Attr()
	if op.Open && t.c.Client != 0 {
		return t.addHold(n.Object, t.c.Client)
	}
	return nil
}

// mark is the value of the marks that a sweeper reads: the directory and when.
func (t *txn) mark(dir ids.Object) []byte {
	v := binary.BigEndian.AppendUint64(make([]byte, 0, 16), uint64(dir))
	return binary.BigEndian.AppendUint64(v, uint64(t.c.Time))
}

// linkName names an object of another slice, once.
func (t *txn) linkName(op *pb.LinkName) error {
	o := ids.Object(op.Object)
	if err := checkName(op.Name); err != nil {
		return err
	}
	if o.Slice() == t.c.Slice || o == 0 || op.Mode&TypeMask == 0 {
		return refusal(fault.Invalid)
	}
	d, err := t.directory(ids.Object(op.Dir))
	if err != nil {
		return err
	}
	if err := t.access(d, mayExec); err != nil {
		return err
	}
	_, value, found, err := t.lookup(d.Object, op.Name)
	if err != nil {
		return err
	}
	if found {
		return refusal(fault.Exists)
	}
	if err := t.mayAdd(d); err != nil {
		return err
	}
	for _, kind := range [...]byte{keyFence, keyNamed} {
		if _, ok, err := t.view.Get(objectKey(kind, o)); err != nil || ok {
			return orStale(err)
		}
	}
	links := 0
	if op.Mode&TypeMask == TypeDir {
		if links = 1; d.Nlink >= MaxLinks {
			return refusal(fault.TooManyLinks)
		}
	}
	t.setEntry(d.Object, op.Name, value, o, op.Mode)
	t.put(objectKey(keyNamed, o), t.mark(d.Object))
	t.touchDir(d, links)
	t.result.Dir, t.result.Creation = d.Attr(), t.creation()
	return nil
}

func orStale(err error) error {
	if err != nil {
		return err
	}
	return refusal(fault.Stale)
}
