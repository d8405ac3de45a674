package tree

import (
	"slices"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/protocol/pb"
)

// What access asks for.
const (
	mayExec  = 1
	mayWrite = 2
	mayRead  = 4
)

// in reports whether the principal belongs to a group.
func (p *Principal) in(gid uint32) bool { return p.GID == gid || slices.Contains(p.Groups, gid) }

// In reports whether the principal belongs to a group.
func (p *Principal) In(gid uint32) bool { return p.in(gid) }

// root reports whether the principal is privileged.
func (p *Principal) root() bool { return p.UID == 0 }

// owns reports whether the principal may do what only the owner may.
func (p *Principal) owns(n *Inode) bool { return p.root() || p.UID == n.UID }

// allowed reports whether the object's mode and ACL give what is wanted.
func (p *Principal) allowed(n *Inode, want uint32) bool {
	if p.root() {
		return want&mayExec == 0 || n.IsDir() || n.Mode&0o111 != 0
	}
	if len(n.ACL) > 0 {
		return acl(n.ACL).allows(p, n.UID, n.GID, want)
	}
	bits := n.Mode
	switch {
	case p.UID == n.UID:
		bits >>= 6
	case p.in(n.GID):
		bits >>= 3
	}
	return bits&want == want
}

// Allowed reports whether an object's mode and ACL, which its attributes have,
// give a principal what is wanted: read 4, write 2, execute or search 1.
func Allowed(a *pb.Attr, p *Principal, want uint32) bool {
	n := Inode{Mode: a.Mode, UID: a.Uid, GID: a.Gid}
	for _, x := range a.Xattrs {
		if x.Name == XattrACL {
			n.ACL = x.Value
		}
	}
	return p.allowed(&n, want)
}

// access refuses what mode and ACL do not give.
func (t *txn) access(n *loaded, want uint32) error {
	if !t.c.allowed(n.Inode, want) {
		return refusal(fault.Permission)
	}
	return nil
}

// mayRemove checks what the kernels call may_delete: the directory writable,
// the sticky bit, and whether the victim's type is the one expected.
func (t *txn) mayRemove(d, victim *loaded, directory bool) error {
	if err := t.access(d, mayWrite|mayExec); err != nil {
		return err
	}
	if d.Mode&sticky != 0 && !t.c.root() && t.c.UID != victim.UID && t.c.UID != d.UID {
		return refusal(fault.NotOwner)
	}
	switch {
	case directory && !victim.IsDir():
		return refusal(fault.NotDirectory)
	case directory && victim.Object == victim.Parent:
		return refusal(fault.Busy)
	case !directory && victim.IsDir():
		return refusal(fault.IsDirectory)
	}
	return nil
}

// mayAdd checks what the kernels call may_create.
func (t *txn) mayAdd(d *loaded) error {
	if d.Nlink == 0 {
		return refusal(fault.NotFound)
	}
	return t.access(d, mayWrite|mayExec)
}

// dropsSetGID reports whether a change by this principal clears set-gid.
func (t *txn) dropsSetGID(n *Inode) bool {
	return n.Mode&setGID != 0 && (n.Mode&0o010 != 0 || (!t.c.root() && !t.c.in(n.GID)))
}

// clearSetID removes the set-id bits that a change of content or owner takes away.
func (t *txn) clearSetID(n *Inode) {
	n.Mode &^= setUID
	if t.dropsSetGID(n) {
		n.Mode &^= setGID
	}
}

// checkName refuses what cannot be a name.
func checkName(name []byte) error {
	if len(name) > MaxName {
		return refusal(fault.NameTooLong)
	}
	if len(name) == 0 || string(name) == "." || string(name) == ".." {
		return refusal(fault.Invalid)
	}
	for _, b := range name {
		if b == '/' || b == 0 {
			return refusal(fault.Invalid)
		}
	}
	return nil
}
