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
	if op.Name == XattrACL || op.Name == XattrDefaultACL {
		if err := t.setACL(n, op); err != nil {
			return err
		}
	} else {
		if err := t.maySetXattr(n, op); err != nil {
			return err
		}
		if err := t.storeXattr(n, op); err != nil {
			return err
		}
	}
	t.change(n)
	t.result.Attr = n.Attr()
	return nil
}

func (t *txn) maySetXattr(n *loaded, op *pb.SetXattr) error {
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
		if n.IsDir() && n.Mode&sticky != 0 && !t.c.owns(n.Inode) {
			return refusal(fault.NotOwner)
		}
		return t.access(n, mayWrite)
	case "trusted", "security":
		if op.Name == xattrCapability && op.Remove {
			return t.access(n, mayWrite) // kernels do it for whoever writes
		}
		if !t.c.root() {
			return refusal(fault.NotOwner)
		}
		return nil
	}
	return refusal(fault.NotSupported)
}

// storeXattr writes one attribute under a key of its own.
func (t *txn) storeXattr(n *loaded, op *pb.SetXattr) error {
	key := nameKey(keyXattr, n.Object, []byte(op.Name))
	old, exists, err := t.view.Get(key)
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
		t.remove(key)
	} else {
		if size += len(op.Name) + len(op.Value); size > MaxXattrs {
			return refusal(fault.NoSpace)
		}
		t.put(key, append([]byte{}, op.Value...))
	}
	n.Xattrs = uint32(max(size, 0))
	return nil
}

// setACL sets or removes one of the ACLs.
func (t *txn) setACL(n *loaded, op *pb.SetXattr) error {
	if n.Mode&TypeMask == TypeLink {
		return refusal(fault.NotSupported)
	}
	if !t.c.owns(n.Inode) {
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
	if !t.c.root() && !t.c.in(n.GID) {
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
