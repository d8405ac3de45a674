// Package memfs is the in-memory twin of the client library: a file system
// with the whole of POSIX that holds everything in maps under one lock. It is
// the oracle for the bindings and for the suite of mounttest; it is neither
// fast nor durable. A Store may be mounted several times, each through a View
// of its own, which then tell one another what changed; all methods may be
// called at once from many goroutines.
package memfs

import (
	"sync"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
)

// Options sets what a Store does. The zero value is good.
type Options struct {
	// Now answers nanoseconds since 1970; nil: the system's clock.
	Now func() int64
	// Capacity is the number of bytes of content that fit; 0: 1 TiB.
	Capacity int64
	// Valid is how long kernels may keep names and attributes.
	Valid time.Duration
}

// Store is the content of one file system.
type Store struct {
	now      func() int64
	capacity int64
	valid    time.Duration

	mu      sync.Mutex // guards everything below, and all inodes and handles
	inodes  map[mount.Inode]*inode
	next    mount.Inode
	handles map[mount.Handle]*handle
	opened  mount.Handle
	used    int64 // bytes of pages
	views   []*View
	waiting map[lockOwner]lockOwner // who waits for whose POSIX lock
}

// View is one mount of a Store. It implements mount.FileSystem.
type View struct {
	*Store
	id       int
	notifier mount.Notifier
}

var (
	_ mount.FileSystem      = (*View)(nil)
	_ mount.NamelessCreator = (*View)(nil)
)

type handle struct {
	inode *inode
	flags mount.OpenFlags
}

// New makes an empty Store: a root directory of mode 0755 owned by root.
func New(o Options) *Store {
	s := &Store{
		now: o.Now, capacity: o.Capacity, valid: o.Valid,
		inodes:  map[mount.Inode]*inode{},
		handles: map[mount.Handle]*handle{},
		waiting: map[lockOwner]lockOwner{},
	}
	if s.now == nil {
		s.now = func() int64 { return time.Now().UnixNano() }
	}
	if s.capacity == 0 {
		s.capacity = 1 << 40
	}
	root := s.makeInode(mount.TypeDir | 0o755)
	root.attr.Nlink = 2
	root.parent = root.node
	return s
}

// View opens another mount of the Store.
func (s *Store) View() *View {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := &View{Store: s, id: len(s.views)}
	s.views = append(s.views, v)
	return v
}

// Objects counts the objects in memory, for tests of what is forgotten.
func (s *Store) Objects() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.inodes)
}

// Handles counts the open handles.
func (s *Store) Handles() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.handles)
}

// Init implements mount.FileSystem.
func (v *View) Init(n mount.Notifier) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.notifier = n
}

// Destroy implements mount.FileSystem.
func (v *View) Destroy() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.notifier = nil
}

func (s *Store) makeInode(mode uint32) *inode {
	s.next++
	now := s.now()
	i := &inode{node: s.next, attr: mount.Attr{
		Ino: uint64(s.next), Mode: mode, Atime: now, Mtime: now, Ctime: now, Btime: now,
	}}
	if mode&mount.TypeMask == mount.TypeDir {
		i.entries = newEntries()
	}
	s.inodes[i.node] = i
	return i
}

// get finds a known inode.
func (s *Store) get(node mount.Inode) (*inode, error) {
	if i := s.inodes[node]; i != nil {
		return i, nil
	}
	return nil, fail(fault.Stale)
}

// directory finds a directory that callers may make names in or look at.
func (s *Store) directory(node mount.Inode) (*inode, error) {
	i, err := s.get(node)
	if err != nil {
		return nil, err
	}
	if i.entries == nil {
		return nil, fail(fault.NotDirectory)
	}
	return i, nil
}

// settle drops an inode that nothing refers to.
func (s *Store) settle(i *inode) {
	if i.node == mount.Root || i.attr.Nlink > 0 || i.lookups > 0 || i.handles > 0 {
		return
	}
	s.used -= i.content.clear()
	delete(s.inodes, i.node)
}

// entry answers a lookup of i and counts it.
func (s *Store) entry(i *inode) mount.Entry {
	i.lookups++
	return mount.Entry{Node: i.node, Generation: 1, Attr: i.stat(), AttrValid: s.valid, EntryValid: s.valid}
}

func fail(k fault.Kind) error { return fault.E(k, "memfs", "", "") }

// tell runs fn on every other view's notifier.
func (v *View) tell(fn func(mount.Notifier)) {
	for _, other := range v.views {
		if other != v && other.notifier != nil {
			fn(other.notifier)
		}
	}
}

func (v *View) tellEntry(dir *inode, name string) {
	v.tell(func(n mount.Notifier) {
		n.InvalidateEntry(dir.node, name)
		n.InvalidateInode(dir.node, -1, 0)
	})
}

func (v *View) tellGone(dir, child *inode, name string) {
	v.tell(func(n mount.Notifier) {
		n.Delete(dir.node, child.node, name)
		n.InvalidateInode(dir.node, -1, 0)
		n.InvalidateInode(child.node, -1, 0)
	})
}

func (v *View) tellAttr(i *inode) {
	v.tell(func(n mount.Notifier) { n.InvalidateInode(i.node, -1, 0) })
}

func (v *View) tellContent(i *inode, offset, length int64) {
	v.tell(func(n mount.Notifier) { n.InvalidateInode(i.node, offset, length) })
}
