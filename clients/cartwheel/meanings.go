package cartwheel

import (
	"context"
	"runtime"
	"sync"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// A kernel looks both names of a rename up, asks for it by these names, and
// afterwards moves what it took the first to mean to the place of the second,
// whose object it takes for removed. So a rename says which objects the kernel
// was shown, and the active refuses it where the names mean others by then.

// maxShown bounds the names that are remembered: two generations of so many. A
// rename of a forgotten name is not checked.
const maxShown = 1 << 12

// readLate is how much later a clock may be read than the rest of a lease: two ends
// of one lease that are computed so are taken to be the same.
const readLate = time.Millisecond

// shownAt is a name as the kernel knows it.
type shownAt struct {
	dir  mount.Inode
	name string
}

// meaning is what a name was shown to mean (0: that it is not there), and until
// when the kernel believes it without asking.
type meaning struct {
	child mount.Inode
	until time.Duration
}

// meanings remembers what the kernel was told last that names mean, whether it may
// believe them or is to ask each time.
type meanings struct {
	mu           sync.Mutex // guards below
	young, older map[shownAt]meaning
	// refused are the threads whose last rename was refused because of what a name
	// means. The kernel looks both up again then, and asks once more.
	refused map[uint32]renameOf
}

// renameOf tells a thread's renames apart. The directories do not: looked up
// again, they may be others.
type renameOf struct{ name, newName string }

// note remembers what a name was shown to mean.
func (m *meanings) note(at shownAt, means meaning) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set(at, means)
}

// set is note with the mutex held.
func (m *meanings) set(at shownAt, means meaning) {
	if m.young == nil || len(m.young) >= maxShown {
		m.older, m.young = m.young, make(map[shownAt]meaning)
	}
	m.young[at] = means
	delete(m.older, at)
}

// get is what a name was shown to mean, the zero meaning where that is not known;
// the mutex is held.
func (m *meanings) get(at shownAt) meaning {
	if means, ok := m.young[at]; ok {
		return means
	}
	return m.older[at]
}

// pair returns what the kernel takes two names to mean.
func (m *meanings) pair(from, to shownAt) (source, target meaning) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.get(from), m.get(to)
}

// move follows the kernel, which moved a name, or exchanged two.
func (m *meanings) move(from, to shownAt, exchange bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	source, target := m.get(from), m.get(to)
	if !exchange {
		target = meaning{}
	}
	m.set(from, target)
	m.set(to, source)
}

// wasRefused reports whether a thread's rename is the one that was refused just
// before, and forgets that.
func (m *meanings) wasRefused(pid uint32, r renameOf) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	was, ok := m.refused[pid]
	delete(m.refused, pid)
	return ok && was == r
}

// refuse notes that a thread's rename is refused.
func (m *meanings) refuse(pid uint32, r renameOf) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refused == nil || len(m.refused) >= maxRefused {
		m.refused = map[uint32]renameOf{}
	}
	m.refused[pid] = r
}

// asksAgain reports whether a kernel is at work here that looks the names up anew
// and asks once more where a rename answers ESTALE. Linux does, once.
func (c *Client) asksAgain() bool { return runtime.GOOS == "linux" && c.notifier.Load() != nil }

// objectAt is the object of a node, 0 where the node is not known.
func (t *nodes) objectAt(id mount.Inode) ids.Object {
	if id == 0 {
		return 0
	}
	o, _, _ := t.find(id)
	return o
}

// renameShown renames what the kernel was shown. Where the names mean something
// else by now, it has the kernel look them up again and ask once more; where that
// was in vain too, whatever they mean is renamed, and the kernel, which moves
// what it was shown, looks them up afterwards. Only a directory is never replaced
// so: the kernel would let nobody make a name in the one that it was shown.
func (c *Client) renameShown(ctx context.Context, who mount.Caller, from, to shownAt, r renaming) error {
	run := func() error {
		return asCaller(who, func(p *pb.Principal) error {
			r.p = p
			return c.rename(ctx, r)
		})
	}
	if !c.asksAgain() {
		return run()
	}
	this := renameOf{r.name, r.newName}
	refused := c.meanings.wasRefused(who.PID, this)
	exchange := r.flags&mount.RenameExchange != 0
	source, target := c.meanings.pair(from, to)
	r.source, r.target = c.nodes.objectAt(source.child), c.nodes.objectAt(target.child)
	err := run()
	if fault.Is(err, fault.Stale) && !unknown(err) && (r.source != 0 || r.target != 0) {
		defer c.lookAnew([]shownAt{from, to}, []mount.Inode{source.child, target.child})
		if !refused {
			c.meanings.refuse(who.PID, this)
			return err
		}
		if r.source = 0; exchange || !c.nodes.isDir(target.child) {
			r.target = 0
		}
		err = run()
	}
	if err == nil {
		c.meanings.move(from, to, exchange)
		c.follow(to, source, r.to, r.newName)
		if exchange {
			c.follow(from, target, r.dir, r.name)
		}
	}
	return err
}

// follow notes that the kernel believes a name that it moved for as long as it
// believed the old one. Where no lease covers the new one for so long, it is to
// ask instead.
func (c *Client) follow(at shownAt, means meaning, dir ids.Object, name string) {
	left := c.names.Means(dir, name, c.nodes.objectAt(means.child))
	now := c.boot()
	if means.child == 0 || means.until <= now {
		return
	}
	if now+left+readLate < means.until || !c.nodes.tell(at.dir, at.name, means.child, now, means.until) {
		c.lookAnew([]shownAt{at}, []mount.Inode{means.child})
	}
}

// lookAnew has the kernel look names up that may mean something else than it was
// shown. An open of what it was shown is refused until it has heard of it.
func (c *Client) lookAnew(names []shownAt, children []mount.Inode) {
	out := c.nodes.lookAnew(names, children)
	c.tellKernel(&out, true, nil) // it has the directories locked until it is answered
}

func (t *nodes) lookAnew(names []shownAt, children []mount.Inode) (out notice) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, at := range names {
		out.names = append(out.names, nameNotice(at))
		if dir := t.byID[at.dir]; dir != nil {
			t.untold(dir, at.name)
		}
	}
	for _, child := range children {
		if n := t.byID[child]; n != nil {
			t.untell(n, &out)
			n.misnamed = out.number
			out.attrs = append(out.attrs, n.id)
		}
	}
	return out
}
