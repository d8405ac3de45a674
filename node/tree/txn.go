package tree

import (
	"bytes"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// refusal is an ordinary failure of an operation: it becomes a result.
type refusal fault.Kind

func (r refusal) Error() string { return fault.Kind(r).String() }

// blocked is a lock that an intent holds.
type blocked Intent

func (blocked) Error() string { return "held by an intent" }

// acrossSlices is met where an operation reaches out of its slice.
type acrossSlices struct{}

func (acrossSlices) Error() string { return "needs several slices" }

// loaded is an inode as one evaluation sees it.
type loaded struct {
	*Inode
	before ids.Object // its parent as it was read
	fresh  bool       // made by this operation
	dirty  bool
	// delta counts what touchDir did; whole is set when anything else changed.
	delta int
	whole bool
}

// txn is one evaluation: what it read, what it will write.
type txn struct {
	view  View
	nodes Nodes
	c     *Context
	now   int64
	// wide views hold several slices: the coordinator's evaluation, which holds
	// all locks already.
	wide     bool
	nameless bool // makes a file without a name
	// full is the directory that was to be removed and has names; 0: none was.
	full ids.Object
	// part is an operation of a batch: the batch writes the slice's state and gives
	// numbers. before is how many mutations those before it made.
	part   bool
	before int
	// sent: the caller keeps all bytes of the file that this operation wrote.
	sent bool

	state      State
	stateDirty bool
	inodes     []loaded // of room: pointers into it stay good
	room       [8]loaded
	mutations  []Mutation
	inline     []Chunk
	needs      []byte
	touched    []Touch
	result     *pb.Result
}

func (t *txn) put(key, value []byte) {
	t.mutations = append(t.mutations, Mutation{Key: key, Value: value})
}

func (t *txn) remove(key []byte) { t.put(key, nil) }

// creation is this operation's ID, as entries keep it.
func (t *txn) creation() uint64 { return uint64(NewIntent(t.c.Slice, t.c.Serial)) }

// local answers acrossSlices where the view has nothing of the object's slice.
func (t *txn) local(o ids.Object) error {
	if !t.wide && o.Slice() != t.c.Slice {
		return acrossSlices{}
	}
	return nil
}

// inode reads an object for this evaluation. One that does not exist is Stale.
func (t *txn) inode(o ids.Object) (*loaded, error) {
	for i := range t.inodes {
		if t.inodes[i].Object == o {
			return &t.inodes[i], nil
		}
	}
	if err := t.local(o); err != nil {
		return nil, err
	}
	if err := t.unlocked(o, nil); err != nil {
		return nil, err
	}
	n, err := readInode(t.view, o)
	if err != nil {
		return nil, err
	}
	if n == nil {
		return nil, refusal(fault.Stale)
	}
	if len(t.inodes) == len(t.room) {
		return nil, refusal(fault.TooLarge)
	}
	t.inodes = append(t.inodes, loaded{Inode: n, before: n.Parent})
	return &t.inodes[len(t.inodes)-1], nil
}

// directory reads an object that must be a directory with a name.
func (t *txn) directory(o ids.Object) (*loaded, error) {
	d, err := t.inode(o)
	if err != nil {
		return nil, err
	}
	if !d.IsDir() {
		return nil, refusal(fault.NotDirectory)
	}
	return d, nil
}

func readInode(v View, o ids.Object) (*Inode, error) {
	var buf [9]byte
	key := append(buf[:0], objectKey(keyInode, o)...)
	value, ok, err := v.Get(key)
	if err != nil || !ok {
		return nil, err
	}
	return DecodeInode(o, value)
}

// add takes in an object that this operation makes.
func (t *txn) add(n *Inode) *loaded {
	t.inodes = append(t.inodes, loaded{Inode: n, fresh: true, dirty: true, whole: true})
	return &t.inodes[len(t.inodes)-1]
}

// change marks an object as written: its ctime and change number move.
func (t *txn) change(n *loaded) {
	n.dirty, n.whole = true, true
	n.Ctime = t.now
	t.number(n)
}

// number gives a changed object this operation's serial. Serials of two slices
// do not compare: what an intent changes elsewhere gets its number there, when
// it is applied, and the answer has the one before.
func (t *txn) number(n *loaded) {
	if n.Object.Slice() == t.c.Slice {
		n.Change = uint64(t.c.Serial)
	}
}

// touchDir marks a directory whose names changed.
func (t *txn) touchDir(d *loaded, links int) {
	d.dirty = true
	d.delta += links
	d.Nlink = uint32(int(d.Nlink) + links)
	d.Mtime, d.Ctime = t.now, t.now
	t.number(d)
}

// lookup finds a name; value is what the key holds, for replacing it.
func (t *txn) lookup(d ids.Object, name []byte) (e Entry, value []byte, ok bool, err error) {
	if err = t.unlocked(d, name); err != nil {
		return e, nil, false, err
	}
	value, ok, err = t.view.Get(nameKey(keyEntry, d, name))
	if err != nil || !ok {
		return e, nil, false, err
	}
	e, ok, err = firstEntry(value)
	return e, value, ok, err
}

// setEntry gives a name a new first entry.
func (t *txn) setEntry(d ids.Object, name []byte, old []byte, object ids.Object, mode uint32) {
	e := Entry{Object: object, Creation: t.creation(), Type: mode & TypeMask}
	value := appendEntries(make([]byte, 0, 1+entrySize), e)
	if rest := otherEntries(old); rest != nil {
		value = append(value, rest[1:]...)
	}
	t.put(nameKey(keyEntry, d, name), value)
	t.touched = append(t.touched, Touch{Object: d, What: pb.Grant_NAMES, Name: bytes.Clone(name)})
}

// dropEntry takes a name's first entry away.
func (t *txn) dropEntry(d ids.Object, name []byte, old []byte) {
	t.put(nameKey(keyEntry, d, name), otherEntries(old))
	t.touched = append(t.touched, Touch{Object: d, What: pb.Grant_NAMES, Name: bytes.Clone(name)})
}

// isEmpty reports whether a directory has no names; one whose names are locked
// blocks.
func (t *txn) isEmpty(d ids.Object) (bool, error) {
	if t.state.Locks > 0 && !t.wide {
		if err := t.noNameLocked(d); err != nil {
			return false, err
		}
	}
	empty := true
	prefix := objectKey(keyEntry, d)
	err := t.view.Scan(prefix, endOf(prefix), func(_, _ []byte) bool {
		empty = false
		return false
	})
	return empty, err
}
