package tree

import (
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// unlink removes a name, and the object where it was the last one and nobody
// has it open; with Directory set it is rmdir.
func (t *txn) unlink(op *pb.Unlink) error {
	if err := checkRemovable(op); err != nil {
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
	if !found {
		return refusal(fault.NotFound)
	}
	if op.Object != 0 && uint64(e.Object) != op.Object {
		return refusal(fault.Stale)
	}
	n, err := t.inode(e.Object)
	if err != nil {
		return err
	}
	if err := t.mayRemove(d, n, op.Directory); err != nil {
		return err
	}
	t.opener(op.Open)
	links, err := t.dropLink(n)
	if err != nil {
		return err
	}
	t.dropEntry(d.Object, op.Name, value)
	t.touchDir(d, links)
	t.result.Dir, t.result.Attr, t.result.Removed = d.Attr(), n.Attr(), uint64(n.Object)
	return nil
}

// opener adds the caller to the holders of what loses its last name.
func (t *txn) opener(open bool) {
	if open && t.c.Client != 0 {
		t.c.Holders = append(t.c.Holders[:len(t.c.Holders):len(t.c.Holders)], t.c.Client)
	}
}

func checkRemovable(op *pb.Unlink) error {
	if op.Directory {
		switch string(op.Name) {
		case ".":
			return refusal(fault.Invalid)
		case "..":
			return refusal(fault.NotEmpty)
		}
	}
	return checkName(op.Name)
}

// dropLink takes one name off an object that the caller may remove, and
// returns what that does to its directory's link count.
func (t *txn) dropLink(n *loaded) (links int, err error) {
	if n.IsDir() {
		empty, err := t.isEmpty(n.Object)
		if err != nil {
			return 0, err
		}
		if !empty {
			t.full = n.Object
			return 0, refusal(fault.NotEmpty)
		}
		n.Nlink, links = 0, -1
	} else {
		if n.Nlink == 0 {
			return 0, refusal(fault.Stale)
		}
		n.Nlink--
		// which of the names is left is not known: no directory covers it
		n.Parent = 0
	}
	t.change(n)
	return links, nil
}

// mayName lets whoever made a file without a name, and still holds it, give it
// one. A file that lost its names gets none again.
func (t *txn) mayName(n *loaded) error {
	hold, _, err := t.view.Get(pairKey(keyHold, uint64(n.Object), t.c.Client))
	if err == nil && (len(hold) == 0 || hold[0] != heldNameless) {
		err = refusal(fault.NotFound)
	}
	return err
}

// link gives an object another name.
func (t *txn) link(op *pb.Link) error {
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
	n, err := t.inode(ids.Object(op.Object))
	if err != nil {
		return err
	}
	_, value, found, err := t.lookup(d.Object, op.Name)
	switch {
	case err != nil:
		return err
	case found:
		return refusal(fault.Exists)
	}
	if err := t.mayAdd(d); err != nil {
		return err
	}
	switch {
	case n.IsDir():
		return refusal(fault.NotOwner)
	case n.Nlink >= MaxLinks:
		return refusal(fault.TooManyLinks)
	}
	if n.Nlink == 0 {
		if err := t.mayName(n); err != nil {
			return err
		}
	}
	n.Nlink++
	n.Parent = 0
	t.change(n)
	t.setEntry(d.Object, op.Name, value, n.Object, n.Mode)
	t.touchDir(d, 0)
	t.result.Attr, t.result.Dir, t.result.Creation = n.Attr(), d.Attr(), t.creation()
	return nil
}
