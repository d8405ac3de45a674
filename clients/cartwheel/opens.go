package cartwheel

import (
	"context"
	"strings"
	"time"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/pb"
)

// Between the moment in which a name is looked up and the moment in which the
// file is open, another client may change the file, replace it or remove it.
// An open is therefore counted before its attributes are asked for, so that a
// revocation meanwhile is not missed. And a file that was looked up a moment
// ago, and then loses its last name, is held at its active like an open one.

const (
	// lookedFor is for how long after its lookup a file may be opened although
	// its last name is gone.
	lookedFor = 3 * time.Second
	// maxLooked bounds the lookups that are remembered; the oldest is forgotten.
	maxLooked = 256
	// maxRefused bounds the threads that are remembered because an open of
	// theirs was refused; then all are forgotten.
	maxRefused = 256
)

// looked is a file that was looked up.
type looked struct {
	object, dir ids.Object
	name        string
	at          time.Duration
}

// lookups remembers what was just looked up. The mutex of the nodes guards it.
type lookups struct {
	ring [maxLooked]looked
	next int
	// lingering are the files that are held though they are not open, and until
	// when.
	lingering map[ids.Object]time.Duration
	// refused are the threads whose last open was refused because of a name that
	// may mean something else. The kernel looks every name of the path up again
	// then, and what the last one names is noted here: that open succeeds.
	refused map[uint32]mount.Inode
}

// justLooked notes that a regular file was looked up in a directory.
func (t *nodes) justLooked(o, dir ids.Object, name string, pid uint32, now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := &t.lookups
	l.ring[l.next%maxLooked] = looked{o, dir, name, now}
	l.next++
	if _, was := l.refused[pid]; was {
		l.refused[pid] = plain(o)
	}
}

// mayOpen reports whether an open may go by the name that led to a node. Where
// it may not, the kernel is to look the name up again.
func (t *nodes) mayOpen(id mount.Inode, pid uint32) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := &t.lookups
	again := l.refused[pid] == id
	delete(l.refused, pid)
	if n := t.byID[id]; n == nil || n.misnamed == 0 || again {
		return true
	}
	if l.refused == nil || len(l.refused) >= maxRefused {
		l.refused = map[uint32]mount.Inode{}
	}
	l.refused[pid] = 0
	return false
}

// soonOpen reports whether an object was looked up a moment ago, so that its
// open may be on its way, and if so has it linger; the mutex is held.
func (t *nodes) soonOpen(o ids.Object, now time.Duration) bool {
	for i := range t.lookups.ring {
		if x := &t.lookups.ring[i]; x.object == o && now-x.at < lookedFor {
			t.linger(o, now)
			return true
		}
	}
	return false
}

// soonOpenIn returns the files of a directory that were looked up a moment ago,
// and has them linger; the mutex is held.
func (t *nodes) soonOpenIn(dir ids.Object, now time.Duration) (out []uint64) {
	for i := range t.lookups.ring {
		if x := &t.lookups.ring[i]; x.object != 0 && x.dir == dir && now-x.at < lookedFor {
			t.linger(x.object, now)
			out = append(out, uint64(x.object))
		}
	}
	return out
}

func (t *nodes) linger(o ids.Object, now time.Duration) {
	if t.lookups.lingering == nil {
		t.lookups.lingering = map[ids.Object]time.Duration{}
	}
	t.lookups.lingering[o] = now + lookedFor
}

// lingered returns the files whose time is over and that nobody opened, and
// forgets them. Their opens wait until it is decided whether they go.
func (t *nodes) lingered(now time.Duration) (out []lettingGo) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for o, until := range t.lookups.lingering {
		if now < until {
			continue
		}
		delete(t.lookups.lingering, o)
		if n := t.known(o); n != nil && n.opens > 0 {
			n.held = true // its close lets go
			continue
		}
		out = append(out, lettingGo{o, t.leaving.begin(o)})
	}
	return out
}

// endLingering lets go of the files that were looked up, lost their last name
// perhaps, and were not opened.
func (c *Client) endLingering() {
	list := c.nodes.lingered(c.boot())
	if len(list) == 0 {
		return
	}
	c.background(func(ctx context.Context) {
		for _, l := range list {
			if a, err := c.attr(ctx, l.object); err == nil && a.Nlink == 0 {
				c.names.Forget(l.object)
				c.letGo(l)
			} else {
				l.end()
			}
		}
	})
}

// opening is an open that is counted and not answered yet.
type opening struct {
	object  ids.Object
	fresh   bool   // the kernel has no pages yet
	changed uint64 // the node's when it began
	// dir and name are what the file was found by, as far as that is known.
	dir  ids.Object
	name string
}

// beginOpen counts an open of a file, once it is decided whether the file goes.
func (t *nodes) beginOpen(ctx context.Context, o ids.Object, flags mount.OpenFlags) (opening, error) {
	for {
		b, decided := t.tryOpen(o, flags)
		if decided == nil {
			return b, nil
		}
		select {
		case <-decided:
		case <-ctx.Done():
			return opening{}, fault.Wrap(fault.KindOf(ctx.Err()), "cartwheel.Open", o.String(), ctx.Err())
		}
	}
}

// tryOpen is countOpen, unless the file may be gone: then it returns what is
// closed when that is decided.
func (t *nodes) tryOpen(o ids.Object, flags mount.OpenFlags) (opening, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if decided := t.leaving.undecided(o); decided != nil {
		return opening{}, decided
	}
	return t.countLocked(o, flags), nil
}

// countOpen counts an open of a file that cannot be gone.
func (t *nodes) countOpen(o ids.Object, flags mount.OpenFlags) opening {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.countLocked(o, flags)
}

func (t *nodes) countLocked(o ids.Object, flags mount.OpenFlags) opening {
	n := t.get(plain(o), o)
	t.opened(n, flags)
	b := opening{object: o, fresh: !n.paged, changed: n.changed}
	if flags.Writes() {
		b.dir, b.name = t.lookups.foundBy(o)
	}
	return b
}

// foundBy returns the name that an object was looked up by last, if that is still
// known.
func (l *lookups) foundBy(o ids.Object) (dir ids.Object, name string) {
	for i := range l.ring {
		if x := &l.ring[(l.next+maxLooked-1-i)%maxLooked]; x.object == o {
			return x.dir, x.name
		}
	}
	return 0, ""
}

// path returns what a person may know an open file by.
func (c *Client) path(b *opening) string {
	if b.name == "" {
		return c.names.Path(b.object)
	}
	return strings.TrimSuffix(c.names.Path(b.dir), "/") + "/" + b.name
}

// endOpen ends what beginOpen counted: the file was closed, or never opened. It
// reports whether its active is to be told that it is not open here any more.
func (c *Client) endOpen(o ids.Object, flags mount.OpenFlags) (l lettingGo, letGo bool) {
	t := &c.nodes
	t.mu.Lock()
	if n := t.known(o); n != nil {
		if n.opens == 1 {
			_ = c.alone.take(o) // nobody asks any more
		}
		t.closed(n, flags)
		if n.opens == 0 && n.held {
			n.held, letGo = false, true
			l = lettingGo{o, t.leaving.begin(o)}
		}
		t.settle(n)
	}
	t.mu.Unlock()
	if letGo {
		c.names.Forget(o)
	}
	return l, letGo
}

// opened makes a handle of a file whose current attributes are known.
func (c *Client) opened(ctx context.Context, who mount.Caller, b opening, a *pb.Attr, flags mount.OpenFlags, cues cue.Set) mount.Opened {
	o := b.object
	h := &handle{object: o, node: plain(o), flags: flags, as: &as{p: c.writer(who, flags), level: cues.Only(cue.Write).Sync()}}
	how := content.Open{As: h.as, ClearSetID: who.UID != 0}
	if flags.Writes() {
		how.Name = func() string { return c.path(&b) }
	}
	if flags.Writes() && c.engine.Journals() {
		how.Who = whoOf(how)
	}
	h.content = c.engine.Open(o, a, how)
	var data []byte
	if b.fresh {
		data = c.toFill(ctx, h, a)
	}
	t := &c.nodes
	t.mu.Lock()
	n := t.get(h.node, o)
	current := n.changed == b.changed
	keep := n.pages != 0 && n.pages == a.Version && n.untold == 0 && current
	n.pages = a.Version
	noFlush := n.writers == 0 && !n.locked
	first, filling := t.page(n, len(data) > 0 && current)
	t.mu.Unlock()
	if !current {
		c.engine.Invalidate(o) // the attributes may be older than the revocation
	}
	if first {
		keep = c.fill(n, a, data)
	} else if filling != nil {
		<-filling
	}
	return mount.Opened{Handle: c.handles.add(h), KeepCache: keep, DirectIO: flags&mount.OpenDirect != 0,
		NoFlush: noFlush}
}

// writer is who a handle's commits act as.
func (c *Client) writer(who mount.Caller, flags mount.OpenFlags) *pb.Principal {
	if !flags.Writes() {
		return principal(who)
	}
	if w := c.cluster.Who(); w != nil && w.Trusted {
		return principal(who) // what it may write, its kernel checked
	}
	return withGroups(who)
}

// Open implements mount.Files.
func (c *Client) Open(ctx context.Context, who mount.Caller, id mount.Inode, flags mount.OpenFlags) (mount.Opened, error) {
	const op fault.Op = "cartwheel.Open"
	o, _, ok := c.nodes.find(id)
	if !ok {
		return mount.Opened{}, staleNode
	}
	t := &c.nodes
	if !t.mayOpen(id, who.PID) {
		return mount.Opened{}, fault.E(fault.Stale, op, o.String(), "the name may mean something else by now")
	}
	cues := t.hinted(o, who.PID, c.boot)
	out, cancel := c.remotely(ctx)
	b, err := t.beginOpen(out, o, flags)
	cancel()
	if err != nil {
		return mount.Opened{}, err
	}
	hold := c.engine.Hold(o)
	defer hold.Release()
	var a *pb.Attr
	if flags&mount.OpenTruncate != 0 {
		t.noFill(id)
		a, err = c.truncate(ctx, who, o, cues)
	}
	if err == nil {
		a, err = c.toOpen(ctx, o, hold)
	}
	if hold.Outdated(a) {
		b.fresh = false // the kernel gets none of it
	}
	if err == nil && a.Mode&mount.TypeMask == mount.TypeDir {
		err = fault.E(fault.IsDirectory, op, o.String(), "")
	}
	if err != nil {
		if l, letGo := c.endOpen(o, flags); letGo {
			c.letGo(l)
		}
		return mount.Opened{}, err
	}
	return c.opened(ctx, who, b, a, flags, cues), nil
}

// toOpen returns attributes with Content. The active has heard of the open then,
// or gave a lease on the file itself: before the last name goes, it asks whether
// the file is open here.
func (c *Client) toOpen(ctx context.Context, o ids.Object, hold content.Hold) (*pb.Attr, error) {
	if err := c.awaitRecovery(ctx, o); err != nil {
		return nil, err
	}
	for try := 0; ; try++ {
		a, err := c.attrToOpen(ctx, o)
		if err != nil || !hold.Outdated(a) || try == openTries {
			return a, err
		}
	}
}

// openTries bounds how often attributes are asked for again because a commit of
// this client overtook them. Behind that, the file is read as the commit left it,
// but not by the kernel ahead.
const openTries = 3

func (c *Client) attrToOpen(ctx context.Context, o ids.Object) (*pb.Attr, error) {
	if c.alone.table.Of(o) != nil {
		if a, _, ok := c.names.Attr(o); ok {
			return a, nil
		}
	}
	c.ahead.Await(ctx, o)
	if a, ok := c.names.Own(o); ok && (a.Content != nil || a.Size == 0 || a.Mode&mount.TypeMask != mount.TypeRegular) {
		c.ahead.OpenedKnown(o)
		return a, nil
	}
	c.ahead.OpenedUnknown(o)
	return c.fetch(ctx, o, wanted{content: true, opening: true})
}
