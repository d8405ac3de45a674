package tree

import (
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/protocol/pb"
)

// A write-once file is written until a commit seals it, as the close of its writer
// does. From then on its content is what it is for as long as the file is there; its
// names, its owner and its times may change.

// mayRewrite refuses to change the content of a sealed file, as EPERM.
func mayRewrite(n *Inode) error {
	if n.Sealed {
		return refusal(fault.NotOwner)
	}
	return nil
}

// sealed seals a file if its commit asks for that: only a write-once one may be. An
// empty one stays as it is, since it has not been written yet.
func sealed(n *Inode, op *pb.Commit) error {
	if !op.Seal {
		return nil
	}
	if !n.Cues.GetWriteOnce() {
		return refusal(fault.Invalid)
	}
	n.Sealed = n.Size > 0
	return nil
}

// seal is a commit that does nothing but seal: neither content nor times change. It
// may come twice.
func (t *txn) seal(n *loaded) error {
	was := n.Sealed
	if err := sealed(n.Inode, &pb.Commit{Seal: true}); err != nil {
		return err
	}
	if n.Sealed != was {
		n.dirty, n.whole = true, true
		t.number(n)
	}
	t.result.Attr = n.Attr()
	return t.addContent(n.Inode, t.result.Attr)
}
