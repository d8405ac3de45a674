package tree

import (
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
)

// setAttr is chmod, chown, utimensat and truncate, several at once where a
// kernel joins them: everything is checked before anything is changed.
func (t *txn) setAttr(op *pb.SetAttr) error {
	n, err := t.inode(ids.Object(op.Object))
	if err != nil {
		return err
	}
	if err := t.maySetAttr(n, op); err != nil {
		return err
	}
	if op.Size != nil {
		if err := t.truncate(n, *op.Size); err != nil {
			return err
		}
	}
	if op.Uid != nil || op.Gid != nil {
		t.chown(n, op)
	}
	if op.Mode != nil {
		t.chmod(n, *op.Mode)
	}
	t.setTimes(n, op)
	t.change(n)
	if op.CtimeNs != nil {
		n.Ctime = *op.CtimeNs
	}
	t.result.Attr = n.Attr()
	return t.addContent(n.Inode, t.result.Attr)
}

func (t *txn) maySetAttr(n *loaded, op *pb.SetAttr) error {
	if op.Size != nil {
		if err := t.mayTruncate(n, *op.Size, op.ByHandle); err != nil {
			return err
		}
	}
	owns := t.c.owns(n.Inode)
	if op.Uid != nil && !t.c.root() && (*op.Uid != n.UID || t.c.UID != n.UID) {
		return refusal(fault.NotOwner)
	}
	if op.Gid != nil && !t.c.root() && (t.c.UID != n.UID || (*op.Gid != n.GID && !t.c.in(*op.Gid))) {
		return refusal(fault.NotOwner)
	}
	if (op.Mode != nil || op.AtimeNs != nil) && !owns {
		return refusal(fault.NotOwner)
	}
	// a kernel that buffers writes sends their times, by whoever may write
	if (op.MtimeNs != nil || op.CtimeNs != nil) && !owns && op.Size == nil && (!op.ByHandle || t.mayWriteOpen(n) != nil) {
		return refusal(fault.NotOwner)
	}
	if (op.AtimeNow || op.MtimeNow) && !owns {
		return t.access(n, mayWrite)
	}
	return nil
}

func (t *txn) mayTruncate(n *loaded, size uint64, byHandle bool) error {
	switch {
	case n.IsDir():
		return refusal(fault.IsDirectory)
	case !n.IsRegular():
		return refusal(fault.Invalid)
	case size > chunk.MaxFileSize:
		return refusal(fault.TooLarge)
	case byHandle:
		return t.mayWriteOpen(n)
	}
	return t.access(n, mayWrite)
}

// mayWriteOpen checks a write through an open file: the kernel checked when it
// was opened, and permissions may have changed since. A trusted host's kernel
// is believed; of others, the owner may write, who could permit it to himself.
func (t *txn) mayWriteOpen(n *loaded) error {
	if t.c.Trusted || t.c.UID == n.UID {
		return nil
	}
	return t.access(n, mayWrite)
}

func (t *txn) chown(n *loaded, op *pb.SetAttr) {
	if !n.IsDir() && op.Mode == nil {
		t.clearSetID(n.Inode)
	}
	if op.Uid != nil {
		n.UID = *op.Uid
	}
	if op.Gid != nil {
		n.GID = *op.Gid
	}
}

func (t *txn) chmod(n *loaded, mode uint32) {
	if !t.c.root() && !t.c.in(n.GID) {
		mode &^= setGID
	}
	n.Mode = n.Mode&TypeMask | mode&0o7777
	if len(n.ACL) > 0 {
		n.ACL = acl(n.ACL).chmod(mode)
	}
}

func (t *txn) setTimes(n *loaded, op *pb.SetAttr) {
	switch {
	case op.AtimeNow:
		n.Atime = t.now
	case op.AtimeNs != nil:
		n.Atime = *op.AtimeNs
	}
	switch {
	case op.MtimeNow:
		n.Mtime = t.now
	case op.MtimeNs != nil:
		n.Mtime = *op.MtimeNs
	}
}
