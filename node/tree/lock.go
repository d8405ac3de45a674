package tree

import (
	"encoding/binary"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// LockKey is what an intent holds: a whole object, or one name in a directory.
// Who holds a name keeps the directory from being removed, and lets others use
// its other names.
type LockKey struct {
	Object ids.Object
	Name   []byte // nil: the object
}

func (k LockKey) key() []byte { return nameKey(keyLock, k.Object, k.Name) }

// Locked returns the intent that holds an object, or the name in it where name
// is not nil; 0 where none does. Readers wait for it: until it is done, nobody
// knows which of two states is the one.
func Locked(v View, o ids.Object, name []byte) (Intent, error) {
	s, err := ReadState(v)
	if err != nil || s.Locks == 0 {
		return 0, err
	}
	return holder(v, o, name)
}

func holder(v View, o ids.Object, name []byte) (Intent, error) {
	i, err := lockAt(v, objectKey(keyLock, o))
	if err != nil || i != 0 || name == nil {
		return i, err
	}
	return lockAt(v, nameKey(keyLock, o, name))
}

func lockAt(v View, key []byte) (Intent, error) {
	value, ok, err := v.Get(key)
	if err != nil || !ok {
		return 0, err
	}
	if len(value) != 8 {
		return 0, fault.E(fault.Corrupt, "tree.Locked", objectOf(key).String(), "a lock is malformed")
	}
	return Intent(binary.BigEndian.Uint64(value)), nil
}

// NamesLocked returns an intent that holds any name in a directory, or the
// directory itself: who lists it waits for it.
func NamesLocked(v View, o ids.Object) (Intent, error) {
	s, err := ReadState(v)
	if err != nil || s.Locks == 0 {
		return 0, err
	}
	return namesHolder(v, o, 0)
}

// namesHolder finds an intent other than mine below an object's lock prefix.
func namesHolder(v View, o ids.Object, mine Intent) (Intent, error) {
	var found Intent
	prefix := objectKey(keyLock, o)
	err := v.Scan(prefix, endOf(prefix), func(_, value []byte) bool {
		if len(value) == 8 {
			if i := Intent(binary.BigEndian.Uint64(value)); i != mine {
				found = i
			}
		}
		return found == 0
	})
	return found, err
}

// treeLock is what a move of a directory to another parent holds: no object,
// but the lowest number of the root's slice, so that it is locked first.
const treeLock = ids.Object(uint64(ids.RootSlice) << ids.NumberBits)

// unlocked blocks the operation where an intent holds the object or name.
func (t *txn) unlocked(o ids.Object, name []byte) error {
	if t.wide || t.state.Locks == 0 {
		return nil
	}
	i, err := holder(t.view, o, name)
	if err == nil && i != 0 {
		err = blocked(i)
	}
	return err
}

func (t *txn) noNameLocked(d ids.Object) error {
	i, err := namesHolder(t.view, d, 0)
	if err == nil && i != 0 {
		err = blocked(i)
	}
	return err
}

func appendLocks(dst []byte, locks []LockKey) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(locks)))
	for _, k := range locks {
		dst = binary.BigEndian.AppendUint64(dst, uint64(k.Object))
		dst = appendBytes(dst, k.Name)
	}
	return dst
}

func (r *reader) locks() []LockKey {
	out := make([]LockKey, r.count(9))
	for i := range out {
		out[i].Object = ids.Object(r.uint64())
		if name := r.bytes(); len(name) > 0 {
			out[i].Name = name
		}
	}
	return out
}
