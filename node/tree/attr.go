package tree

import (
	"bytes"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// Attr returns what stat answers, without content and extended attributes, in
// memory of its own.
func (n *Inode) Attr() *pb.Attr {
	return &pb.Attr{
		Object: uint64(n.Object), Mode: n.Mode, Uid: n.UID, Gid: n.GID, Nlink: n.Nlink, Rdev: n.Rdev,
		Size: n.Size, Stored: n.Stored, AtimeNs: n.Atime, MtimeNs: n.Mtime, CtimeNs: n.Ctime, BtimeNs: n.Btime,
		Target: bytes.Clone(n.Target), Version: n.Version, Change: n.Change, Cues: n.Cues, Parent: uint64(n.Parent),
		HasAcl: len(n.ACL) > 0 || len(n.DefaultACL) > 0, Xattrs: n.acls(),
		NoXattrs: n.Xattrs == 0, Sealed: n.Sealed, SideVersion: n.Side.Merged, SideBegan: n.Side.Began,
	}
}

// acls returns the ACLs as extended attributes, which every Attr carries.
func (n *Inode) acls() []*pb.Xattr {
	var out []*pb.Xattr
	if len(n.ACL) > 0 {
		out = append(out, &pb.Xattr{Name: XattrACL, Value: bytes.Clone(n.ACL)})
	}
	if len(n.DefaultACL) > 0 {
		out = append(out, &pb.Xattr{Name: XattrDefaultACL, Value: bytes.Clone(n.DefaultACL)})
	}
	return out
}

// addContent fills in the content of a regular file; while an operation is
// evaluated, what it writes counts. What the caller sent and keeps is left out:
// neither the answer nor the result that is kept for retries has it again.
func (t *txn) addContent(n *Inode, a *pb.Attr) error {
	if !n.IsRegular() {
		return nil
	}
	if n.Beside && t.sent {
		a.Content = contentOf(n, nil)
		a.Content.Sent = true
		return nil
	}
	if n.Beside {
		key := objectKey(keyContent, n.Object)
		for i := len(t.mutations) - 1; i >= 0; i-- {
			if bytes.Equal(t.mutations[i].Key, key) {
				a.Content = contentOf(n, t.mutations[i].Value)
				return nil
			}
		}
	}
	return addContent(t.view, n, a)
}

func addContent(v View, n *Inode, a *pb.Attr) error {
	if !n.IsRegular() {
		return nil
	}
	var inline []byte
	if n.Beside {
		value, ok, err := v.Get(objectKey(keyContent, n.Object))
		if err != nil {
			return err
		}
		if !ok || uint64(len(value)) != n.Size {
			return fault.E(fault.Corrupt, "tree.Attr", n.Object.String(), "the content beside the record is not there")
		}
		inline = bytes.Clone(value)
	}
	a.Content = contentOf(n, inline)
	return nil
}

func contentOf(n *Inode, inline []byte) *pb.Content {
	c := &pb.Content{Size: n.Size, Inline: inline, Stored: n.Stored}
	if !n.Root.IsZero() {
		c.Root, c.Height = append([]byte(nil), n.Root[:]...), uint32(n.Height)
	}
	return c
}

// GetAttr reads an object for an answer. An object that does not exist is
// Stale; one that an intent holds is Busy: wait and read again.
func GetAttr(v View, o ids.Object, content, xattrs bool) (*pb.Attr, error) {
	const op fault.Op = "tree.GetAttr"
	if held, err := Locked(v, o, nil); err != nil || held != 0 {
		return nil, busy(op, o, err)
	}
	n, a, err := getInode(v, o, content)
	for content && n != nil && n.Beside {
		// A commit may have come between the record and the content beside it.
		now, again := readInode(v, o)
		if again != nil || now != nil && now.Change == n.Change {
			break
		}
		n, a, err = getInode(v, o, content)
	}
	if err != nil {
		return nil, fault.Wrap(fault.IO, op, o.String(), err)
	}
	if n == nil {
		return nil, fault.E(fault.Stale, op, o.String(), "the object does not exist")
	}
	if xattrs && n.Xattrs > 0 {
		err = scanXattrs(v, o, func(name string, value []byte) bool {
			a.Xattrs = append(a.Xattrs, &pb.Xattr{Name: name, Value: bytes.Clone(value)})
			return true
		})
	}
	return a, fault.Wrap(fault.IO, op, o.String(), err)
}

// getInode reads a record, nil where there is none, with what is shown of it.
// The record is returned also where its content is not there.
func getInode(v View, o ids.Object, content bool) (*Inode, *pb.Attr, error) {
	n, err := readInode(v, o)
	if err != nil || n == nil {
		return nil, nil, err
	}
	a := n.Attr()
	if content {
		err = addContent(v, n, a)
	}
	return n, a, err
}

// own gives the record memory of its own, for answers that outlive the view.
func (n *Inode) own() {
	n.Target, n.ACL, n.DefaultACL = bytes.Clone(n.Target), bytes.Clone(n.ACL), bytes.Clone(n.DefaultACL)
}

func scanXattrs(v View, o ids.Object, fn func(name string, value []byte) bool) error {
	prefix := objectKey(keyXattr, o)
	return v.Scan(prefix, endOf(prefix), func(key, value []byte) bool {
		return fn(string(key[len(prefix):]), value)
	})
}

func busy(op fault.Op, o ids.Object, err error) error {
	if err != nil {
		return fault.Wrap(fault.IO, op, o.String(), err)
	}
	return fault.E(fault.Busy, op, o.String(), "an operation over several slices holds it")
}

// Directory reads a directory and refuses a principal who may not do what want
// says there: 4 read, 1 search. For the read path.
func Directory(v View, o ids.Object, p *Principal, want uint32) (*Inode, error) {
	const op fault.Op = "tree.Directory"
	n, err := readInode(v, o)
	switch {
	case err != nil:
		return nil, fault.Wrap(fault.IO, op, o.String(), err)
	case n == nil:
		return nil, fault.E(fault.Stale, op, o.String(), "the object does not exist")
	case !n.IsDir():
		return nil, fault.E(fault.NotDirectory, op, o.String(), "")
	case p != nil && !p.allowed(n, want):
		return nil, fault.E(fault.Permission, op, o.String(), "")
	}
	n.own()
	return n, nil
}

// Access refuses a principal who may not do what want says (4 read, 2 write,
// 1 search or run) with an object.
func Access(n *Inode, p *Principal, want uint32) error {
	if p.allowed(n, want) {
		return nil
	}
	return fault.E(fault.Permission, "tree.Access", n.Object.String(), "")
}

// Lookup finds a name in a directory; NotFound where there is none, Busy where
// an intent holds the name.
func Lookup(v View, dir ids.Object, name []byte) (Entry, error) {
	const op fault.Op = "tree.Lookup"
	if len(name) > MaxName {
		return Entry{}, fault.E(fault.NameTooLong, op, "", "")
	}
	if held, err := Locked(v, dir, name); err != nil || held != 0 {
		return Entry{}, busy(op, dir, err)
	}
	value, ok, err := v.Get(nameKey(keyEntry, dir, name))
	if err != nil {
		return Entry{}, fault.Wrap(fault.IO, op, dir.String(), err)
	}
	if ok {
		var e Entry
		if e, ok, err = firstEntry(value); ok || err != nil {
			return e, err
		}
	}
	return Entry{}, fault.E(fault.NotFound, op, dir.String(), "no such name")
}

// NamedEntry is one line of a listing.
type NamedEntry struct {
	Name []byte
	Entry
}

// List returns up to limit names above after, in order, and whether there are
// more. A page costs what it returns, however large the directory is.
func List(v View, dir ids.Object, after []byte, limit int) (out []NamedEntry, more bool, err error) {
	const op fault.Op = "tree.List"
	prefix := objectKey(keyEntry, dir)
	from := prefix
	if len(after) > 0 {
		from = append(nameKey(keyEntry, dir, after), 0)
	}
	var bad error
	err = v.Scan(from, endOf(prefix), func(key, value []byte) bool {
		e, ok, err := firstEntry(value)
		if err != nil {
			bad = err
			return false
		}
		if !ok {
			return true
		}
		if len(out) >= limit {
			more = true
			return false
		}
		out = append(out, NamedEntry{Name: bytes.Clone(key[len(prefix):]), Entry: e})
		return true
	})
	if err == nil {
		err = bad
	}
	return out, more, fault.Wrap(fault.IO, op, dir.String(), err)
}
