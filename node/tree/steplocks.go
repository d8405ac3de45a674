package tree

import (
	"encoding/binary"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/protocol/pb"
)

// takeLocks locks for an intent, all or nothing, and says which leases cover
// what is locked: they are revoked before, and none is granted until it ends.
func (t stepping) takeLocks(i Intent, locks []LockKey) error {
	for _, k := range locks {
		if k.Object.Slice() != t.c.Slice {
			return refusal(fault.Invalid)
		}
		var held Intent
		var err error
		if k.Name == nil {
			held, err = namesHolder(t.view, k.Object, i)
		} else if held, err = holder(t.view, k.Object, k.Name); held == i {
			held = 0
		}
		if err != nil {
			return err
		}
		if held != 0 {
			return blocked(held)
		}
	}
	value := binary.BigEndian.AppendUint64(nil, uint64(i))
	for _, k := range locks {
		t.put(k.key(), value)
		if err := t.touchLocked(k); err != nil {
			return err
		}
	}
	t.state.Locks += uint64(len(locks))
	t.stateDirty = true
	return nil
}

func (t stepping) touchLocked(k LockKey) error {
	if k.Name != nil {
		t.touched = append(t.touched, Touch{Object: k.Object, What: pb.Grant_NAMES, Name: k.Name})
		return nil
	}
	if k.Object == treeLock {
		return nil
	}
	n, err := readInode(t.view, k.Object)
	if err != nil || n == nil {
		return err
	}
	if n.IsDir() {
		t.touched = append(t.touched, Touch{Object: k.Object, What: pb.Grant_NAMES, Unlinked: true})
		return nil
	}
	t.touched = append(t.touched, Touch{Object: k.Object, What: pb.Grant_FILE, Unlinked: true})
	if n.Parent != 0 {
		t.touched = append(t.touched, Touch{Object: n.Parent, What: pb.Grant_NAMES})
	}
	return nil
}

func (t stepping) dropLocks(locks []LockKey) {
	for _, k := range locks {
		t.remove(k.key())
	}
	t.state.Locks -= min(t.state.Locks, uint64(len(locks)))
	t.stateDirty = true
}
