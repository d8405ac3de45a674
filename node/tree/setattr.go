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
	c := attrChange{t, n, op}
	if err := c.check(); err != nil {
		return err
	}
	if op.Size != nil {
		if err := t.truncate(n, *op.Size); err != nil {
			return err
		}
	}
	if op.Uid != nil || op.Gid != nil {
		c.chown()
	}
	if op.Mode != nil {
		c.chmod(*op.Mode)
	}
	c.setTimes()
	t.change(n)
	if op.CtimeNs != nil {
		n.Ctime = *op.CtimeNs
	}
	t.result.Attr = n.Attr()
	return t.addContent(n.Inode, t.result.Attr)
}

// attrChange is a setAttr while it is checked and made.
type attrChange struct {
	*txn
	n  *loaded
	op *pb.SetAttr
}

func (c attrChange) check() error {
	n, op := c.n, c.op
	if op.Size != nil {
		if err := c.mayTruncate(); err != nil {
			return err
		}
	}
	owns := c.c.owns(n.Inode)
	if op.Uid != nil && !c.c.root() && (*op.Uid != n.UID || c.c.UID != n.UID) {
		return refusal(fault.NotOwner)
	}
	if op.Gid != nil && !c.c.root() && (c.c.UID != n.UID || (*op.Gid != n.GID && !c.c.in(*op.Gid))) {
		return refusal(fault.NotOwner)
	}
	if (op.Mode != nil || op.AtimeNs != nil) && !owns {
		return refusal(fault.NotOwner)
	}
	// a kernel that buffers writes sends their times, by whoever may write
	if (op.MtimeNs != nil || op.CtimeNs != nil) && !owns && op.Size == nil && (!op.ByHandle || c.mayWriteOpen(n) != nil) {
		return refusal(fault.NotOwner)
	}
	if (op.AtimeNow || op.MtimeNow) && !owns {
		return c.access(n, mayWrite)
	}
	return nil
}

func (c attrChange) mayTruncate() error {
	n, size := c.n, *c.op.Size
	switch {
	case n.IsDir():
		return refusal(fault.IsDirectory)
	case !n.IsRegular():
		return refusal(fault.Invalid)
	case size > chunk.MaxFileSize:
		return refusal(fault.TooLarge)
	case c.op.ByHandle:
		return c.mayWriteOpen(n)
	}
	return c.access(n, mayWrite)
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

func (c attrChange) chown() {
	n, op := c.n, c.op
	if !n.IsDir() && op.Mode == nil {
		c.clearSetID(n.Inode)
	}
	if op.Uid != nil {
		n.UID = *op.Uid
	}
	if op.Gid != nil {
		n.GID = *op.Gid
	}
}

func (c attrChange) chmod(mode uint32) {
	n := c.n
	if !c.c.root() && !c.c.in(n.GID) {
		mode &^= setGID
	}
	n.Mode = n.Mode&TypeMask | mode&0o7777
	if len(n.ACL) > 0 {
		n.ACL = acl(n.ACL).chmod(mode)
	}
}

func (c attrChange) setTimes() {
	n, op := c.n, c.op
	switch {
	case op.AtimeNow:
		n.Atime = c.now
	case op.AtimeNs != nil:
		n.Atime = *op.AtimeNs
	}
	switch {
	case op.MtimeNow:
		n.Mtime = c.now
	case op.MtimeNs != nil:
		n.Mtime = *op.MtimeNs
	}
}
