package inodes

import (
	"sync"
	"sync/atomic"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
)

// tellLimit is how long a revocation's answer waits for the kernel to be told.
// A kernel that is held up by an operation which in turn waits for another
// client must not hold that client up; until it is told, opens answer ESTALE.
const tellLimit = 100 * time.Millisecond

// Kernel tells the kernel that has the tree mounted what it may believe no
// longer. Where none has, all is as if it had been told.
type Kernel struct {
	table    *Table
	notifier atomic.Pointer[mount.Notifier]
	waits    waits
}

// NewKernel returns the Kernel of a Table that nothing has mounted yet.
func NewKernel(t *Table) *Kernel {
	return &Kernel{table: t, waits: waits{by: map[ids.Object][]*waiting{}}}
}

// Mount has the Kernel use a notifier from now on.
func (k *Kernel) Mount(n mount.Notifier) { k.notifier.Store(&n) }

// Unmount ends that.
func (k *Kernel) Unmount() { k.notifier.Store(nil) }

// IsMounted reports whether there is a kernel.
func (k *Kernel) IsMounted() bool { return k.notifier.Load() != nil }

// Filler is the notifier, where it takes content; nil: it does not.
func (k *Kernel) Filler() mount.Filler {
	if n := k.notifier.Load(); n != nil {
		f, _ := (*n).(mount.Filler)
		return f
	}
	return nil
}

// Invalidate tells the kernel that bytes of a file are old; length 0: all behind
// the offset.
func (k *Kernel) Invalidate(id mount.Inode, offset, length int64) {
	if n := k.notifier.Load(); n != nil {
		(*n).InvalidateInode(id, offset, length)
	}
}

// Tell queues a notice. then, if it is not nil, runs when the kernel has been
// told, or after tellLimit, or at once.
func (k *Kernel) Tell(n *Notice, atOnce bool, then func()) {
	if then == nil {
		then = func() {}
	}
	var once sync.Once
	answer := func() { once.Do(then) }
	told := func() {
		k.table.markTold(n)
		answer()
	}
	to := k.notifier.Load()
	if to == nil || n.isEmpty() {
		told()
		return
	}
	queue(*to, n)
	if atOnce {
		answer()
		(*to).Drained(told)
		return
	}
	w := &waiting{answer: answer}
	w.late = time.AfterFunc(tellLimit, answer)
	k.waits.add(n.dirs, w)
	(*to).Drained(func() {
		w.late.Stop()
		k.waits.remove(n.dirs, w)
		told()
	})
}

// TellInFull has the kernel ask for a file's attributes again, and for its pages
// where they are old. then runs when the kernel has been told, however long that
// takes.
func (k *Kernel) TellInFull(id mount.Inode, pagesAreOld bool, then func()) {
	to := k.notifier.Load()
	if to == nil {
		then()
		return
	}
	n := Notice{attrs: []mount.Inode{id}}
	if pagesAreOld {
		n = Notice{inodes: []mount.Inode{id}}
	}
	queue(*to, &n)
	(*to).Drained(then)
}

// TellAliases has the kernel look changed names of a directory up again in the
// directory's nodes under other cues. It returns when the kernel has been told, or
// after tellLimit: those nodes are not locked by the call that changed the names.
func (k *Kernel) TellAliases(dir ids.Object, cues cue.Set, changed ...string) {
	out, some := k.table.ChangeNames(dir, cues, changed)
	if !some {
		return
	}
	done := make(chan struct{})
	k.Tell(&out, false, func() { close(done) })
	<-done
}

// queue hands a notice to the kernel's binding.
func queue(to mount.Notifier, n *Notice) {
	for _, x := range n.names {
		to.InvalidateEntry(x.Dir, x.Name)
	}
	for _, id := range n.inodes {
		to.InvalidateInode(id, 0, 0)
	}
	for _, id := range n.attrs {
		to.InvalidateInode(id, -1, 0)
	}
}

// Release asks the kernel to give up the nodes beyond the Table's limit.
func (k *Kernel) Release() {
	to := k.notifier.Load()
	if to == nil {
		return
	}
	r, ok := (*to).(mount.Releaser)
	if !ok {
		return
	}
	list := k.table.excess()
	if len(list) == 0 {
		return
	}
	for _, g := range list {
		r.Release(g.node, g.dir, g.name)
	}
	(*to).Drained(k.table.released)
}

// Begin notes that an operation on names of two directories begins, or of one. It
// gives the answers now that would wait for the operation's end: see waits.
func (k *Kernel) Begin(dir, to ids.Object) {
	for _, w := range k.waits.of(dir, to) {
		w.answer()
	}
}

// waiting is a revocation's answer that waits for the kernel to be told.
type waiting struct {
	answer func()
	late   *time.Timer
}

// waits knows which directories' revocations wait for the kernel. The kernel
// locks a directory while an operation on its names is under way, so that one
// that begins has them answered at once.
type waits struct {
	mu sync.Mutex // guards by
	by map[ids.Object][]*waiting
}

func (t *waits) add(dirs []ids.Object, w *waiting) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range dirs {
		t.by[o] = append(t.by[o], w)
	}
}

// of returns the answers that wait for a directory or another one.
func (t *waits) of(dir, to ids.Object) (out []*waiting) {
	t.mu.Lock()
	defer t.mu.Unlock()
	out = append(out, t.by[dir]...)
	if to != 0 && to != dir {
		out = append(out, t.by[to]...)
	}
	return out
}

func (t *waits) remove(dirs []ids.Object, w *waiting) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range dirs {
		takeOut(t.by, o, w)
	}
}
