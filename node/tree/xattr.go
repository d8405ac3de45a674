package tree

import (
	"strings"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// xattrCapability holds a program's privileges; a write takes it away.
const xattrCapability = "security.capability"

// setXattr sets or removes one extended attribute.
func (t *txn) setXattr(op *pb.SetXattr) error {
	n, err := t.inode(ids.Object(op.Object))
	if err != nil {
		return err
	}
	x := xattrChange{t, n, op}
	if op.Name == XattrACL || op.Name == XattrDefaultACL {
		err = x.setACL()
	} else if err = x.check(); err == nil {
		err = x.store()
	}
	if err != nil {
		return err
	}
	t.change(n)
	t.result.Attr = n.Attr()
	return nil
}

// xattrChange is a setXattr while it is checked and made.
type xattrChange struct {
	*txn
	n  *loaded
	op *pb.SetXattr
}

func (c xattrChange) check() error {
	n, op := c.n, c.op
	switch {
	case len(op.Name) > MaxName:
		return refusal(fault.TooSmall)
	case len(op.Value) > MaxXattr:
		return refusal(fault.TooLarge)
	}
	space, name, ok := strings.Cut(op.Name, ".")
	if !ok || name == "" {
		return refusal(fault.NotSupported)
	}
	switch space {
	case "user":
		if strings.HasPrefix(name, "cartwheel.") {
			return refusal(fault.NotSupported)
		}
		if !n.IsRegular() && !n.IsDir() {
			return refusal(fault.NotOwner)
		}
		if n.IsDir() && n.Mode&sticky != 0 && !c.c.owns(n.Inode) {
			return refusal(fault.NotOwner)
		}
		return c.access(n, mayWrite)
	case "trusted", "security":
		if op.Name == xattrCapability && op.Remove {
			return c.access(n, mayWrite) // kernels do it for whoever writes
		}
		if !c.c.root() {
			return refusal(fault.NotOwner)
		}
		return nil
	}
	return refusal(fault.NotSupported)
}

// store writes one attribute under a key of its own.
func (c xattrChange) store() error {
	n, op := c.n, c.op
	key := nameKey(keyXattr, n.Object, []byte(op.Name))
	old, exists, err := c.view.Get(key)
	switch {
	case err != nil:
		return err
	case exists && op.Create:
		return refusal(fault.Exists)
	case !exists && (op.Replace || op.Remove):
		return refusal(fault.NoAttribute)
	}
	size := int(n.Xattrs)
	if exists {
		size -= len(op.Name) + len(old)
	}
	if op.Remove {
		c.remove(key)
	} else {
		if size += len(op.Name) + len(op.Value); size > MaxXattrs {
			return refusal(fault.NoSpace)
		}
		c.put(key, append([]byte{}, op.Value...))
	}
	n.Xattrs = uint32(max(size, 0))
	return nil
}

// setACL sets or removes one of the ACLs.
func (c xattrChange) setACL() error {
	n, op := c.n, c.op
	if n.Mode&TypeMask == TypeLink {
		return refusal(fault.NotSupported)
	}
	if !c.c.owns(n.Inode) {
		return refusal(fault.NotOwner)
	}
	value := op.Value
	if op.Remove {
		value = nil
	}
	a, err := parseACL(value)
	if err != nil {
		return err
	}
	old := &n.ACL
	if op.Name == XattrDefaultACL {
		old = &n.DefaultACL
	}
	switch {
	case len(*old) > 0 && op.Create:
		return refusal(fault.Exists)
	case len(*old) == 0 && op.Replace:
		return refusal(fault.NoAttribute)
	case op.Name == XattrDefaultACL && !n.IsDir() && a != nil:
		return refusal(fault.Permission)
	case op.Name == XattrDefaultACL:
		n.DefaultACL = append([]byte(nil), a...)
		return nil
	}
	n.ACL = nil
	if a == nil {
		return nil
	}
	n.Mode = n.Mode&^0o777 | a.mode()
	if !c.c.root() && !c.c.in(n.GID) {
		n.Mode &^= setGID
	}
	if !a.minimal() {
		n.ACL = append([]byte(nil), a...)
	}
	return nil
}

// dropCapability removes the privileges of a program that is written to.
func (t *txn) dropCapability(n *loaded) error {
	if n.Xattrs == 0 {
		return nil
	}
	key := nameKey(keyXattr, n.Object, []byte(xattrCapability))
	old, ok, err := t.view.Get(key)
	if err != nil || !ok {
		return err
	}
	n.Xattrs -= min(n.Xattrs, uint32(len(xattrCapability)+len(old)))
	t.remove(key)
	return nil
}
