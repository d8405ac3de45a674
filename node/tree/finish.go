package tree

import (
	"cartwheel.dev/node/protocol/pb"
)

// finish turns what changed into mutations and touches.
func (t *txn) finish() error {
	for i := range t.inodes {
		n := &t.inodes[i]
		if !n.dirty {
			continue
		}
		if !n.fresh {
			t.touch(n)
		}
		if n.Nlink == 0 && !t.wide {
			held, err := t.holdOrHeld(n.Object)
			if err != nil {
				return err
			}
			if !held {
				if err := t.reapNow(n.Inode); err != nil {
					return err
				}
				continue
			}
		}
		t.put(objectKey(keyInode, n.Object), AppendInode(make([]byte, 0, 160), n.Inode))
	}
	if t.stateDirty && !t.part {
		t.put([]byte{keyState}, appendState(make([]byte, 0, 32), &t.state))
	}
	return nil
}

// touch says which leases cover what changed of an object.
func (t *txn) touch(n *loaded) {
	if n.IsDir() {
		if n.Nlink > 0 {
			for i := range t.touched {
				if t.touched[i].Object == n.Object && t.touched[i].What == pb.Grant_NAMES {
					return
				}
			}
		}
		t.touched = append(t.touched, Touch{Object: n.Object, What: pb.Grant_NAMES, Unlinked: n.Nlink == 0})
		return
	}
	t.touched = append(t.touched, Touch{Object: n.Object, What: pb.Grant_FILE, Unlinked: n.Nlink == 0})
	if n.before != 0 {
		for i := range t.touched {
			if t.touched[i].Object == n.before {
				return
			}
		}
		t.touched = append(t.touched, Touch{Object: n.before, What: pb.Grant_NAMES})
	}
}
