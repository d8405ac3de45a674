package desktops

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// beeFS is the world of BeeFS's policy, and of the baseline that differs from it only
// in where copies go.
//
// The primary of a new file is on the writer's machine. Where that disk is full,
// secondaries leave it first, and then primaries that have a current secondary,
// which becomes the primary. Only where that makes too little room, the new primary
// goes to the machine with the most free space. Secondaries are made after the close
// and the time to coherence, on the machines with the most free space. A write makes
// them stale, and they are brought up to date after the same time. Copies that left
// a disk are made again elsewhere after that time.
type beeFS struct {
	store
	o      Options
	random *rand.Rand
	lru    bool // the least recently used primaries leave first, not random ones
	spread bool // every copy goes to a random machine
	shut   map[int]bool
	order  [][]lastUse // by machine: its primaries, least recently used first; see oldest
	due    pendingQueue
	now    time.Duration
	count  Counts
}

func newBeeFS(o Options, p Policy) *beeFS {
	return &beeFS{
		store: newStore(o), o: o, random: rand.New(rand.NewPCG(o.Seed, 1<<32)), lru: p == BeeLRU, spread: p == Random,
		shut: fullDesktops(o), order: make([][]lastUse, o.Desktops),
	}
}

// put places a file of the start, with all its copies. The disks that are to be full
// get no secondaries: those went long ago.
func (b *beeFS) put(h Held) {
	at := h.User
	if b.spread && !h.Old || b.disks[at].free() < h.Bytes {
		at = b.where(nil, h.Bytes)
	}
	if at < 0 {
		return
	}
	b.add(h.File, at, h.Bytes)
	if h.Old {
		b.files[h.File].used = -1
	}
	b.complete(h.File)
}

func (b *beeFS) begin() {
	for i := range b.shut {
		b.disks[i].fillUp()
	}
	b.shut = nil
}

func (b *beeFS) counts() Counts {
	c := b.count
	for _, d := range b.due {
		if d.again && b.files[d.file].n > 0 {
			c.Short++
		}
	}
	return c
}

func (b *beeFS) do(e Event) (outcome, error) {
	for b.now = e.At; len(b.due) > 0 && b.due[0].at <= e.At; {
		d := heap.Pop(&b.due).(pending)
		b.files[d.file].waits = false
		b.complete(d.file)
	}
	x := b.file(e.File)
	if x.n == 0 && e.Kind != Create {
		return missing, nil
	}
	x.used = int32(e.At / time.Second)
	closed := e.At + e.Open
	switch e.Kind {
	case Create, Replace:
		return b.create(e.Machine, e.File, e.Bytes, closed), nil
	case Append:
		return b.extend(e.File, e.Bytes, closed), nil
	case Overwrite:
		b.changed(e.File, closed)
	case Delete:
		b.remove(e.File)
	case Read:
		return x.readAt(e.Machine), nil
	}
	return done, nil
}

// readAt says where a reader's file is.
func (x *file) readAt(machine int) outcome {
	switch i := x.on(machine); {
	case i == 0:
		return primary
	case i > 0 && x.copies[i].current:
		return secondary
	}
	return remote
}

// create makes a file, or a new version in the place of the one that is there.
func (b *beeFS) create(writer int, f File, bytes int64, closed time.Duration) outcome {
	at := writer
	if b.spread || !b.makeRoom(writer, bytes, f) {
		at = b.where(nil, bytes)
	}
	if at < 0 {
		return refused
	}
	used := b.files[f].used
	b.remove(f)
	b.add(f, at, bytes)
	b.files[f].used = used
	if at != writer {
		b.count.Elsewhere++
	}
	b.await(f, closed+b.o.Coherence, false)
	return done
}

// extend appends to a file's primary. Where its disk cannot be made to take that,
// the file itself moves to a current secondary whose disk can.
func (b *beeFS) extend(f File, bytes int64, closed time.Duration) outcome {
	x := &b.files[f]
	if !b.makeRoom(int(x.copies[0].machine), bytes, f) {
		i := x.backup()
		for i > 0 && i < int(x.n) && (!x.copies[i].current || b.disks[x.copies[i].machine].free() < bytes) {
			i++
		}
		if i < 0 || i == int(x.n) {
			return refused
		}
		b.move(f, i)
	}
	b.resize(f, 0, x.copies[0].bytes+bytes)
	b.changed(f, closed)
	return done
}

// changed makes the secondaries stale until the time to coherence has passed.
func (b *beeFS) changed(f File, closed time.Duration) {
	x := &b.files[f]
	for i := 1; i < int(x.n); i++ {
		x.copies[i].current = false
	}
	b.await(f, closed+b.o.Coherence, false)
}

// makeRoom makes room on a disk, and never by a copy of the file keep.
func (b *beeFS) makeRoom(machine int, bytes int64, keep File) bool {
	d := &b.disks[machine]
	if bytes > d.size-d.other {
		return false
	}
	for d.free() < bytes {
		f, ok := b.anyOf(b.secondaries[machine], func(f File) bool { return f != keep })
		if !ok {
			break
		}
		b.drop(f, b.files[f].on(machine))
		b.count.Evicted++
		b.await(f, b.now+b.o.Coherence, false)
	}
	for d.free() < bytes {
		f, ok := b.leaves(machine, keep)
		if !ok {
			return false
		}
		b.move(f, b.files[f].backup())
	}
	return true
}

// move makes a current secondary the primary. The one that was it leaves, and comes
// again elsewhere later.
func (b *beeFS) move(f File, to int) {
	b.promote(f, to)
	b.count.Moved++
	b.order[b.files[f].copies[0].machine] = nil
	b.await(f, b.now+b.o.Coherence, false)
}

// leaves chooses the primary that leaves a full disk next.
func (b *beeFS) leaves(machine int, keep File) (File, bool) {
	may := func(f File) bool { return f != keep && b.files[f].backup() > 0 }
	if b.o.Copies == 1 {
		return 0, false
	}
	if b.lru {
		return b.oldest(machine, may)
	}
	return b.anyOf(b.primaries[machine], may)
}

// anyOf draws one of the files that may be drawn; false: there is none.
func (b *beeFS) anyOf(list []File, may func(File) bool) (File, bool) {
	if len(list) == 0 {
		return 0, false
	}
	for range 16 {
		if f := list[b.random.IntN(len(list))]; may(f) {
			return f, true
		}
	}
	from := b.random.IntN(len(list))
	for i := range list {
		if f := list[(from+i)%len(list)]; may(f) {
			return f, true
		}
	}
	return 0, false
}

// complete brings a file's secondaries up to date, and makes those that it lacks.
func (b *beeFS) complete(f File) {
	x := &b.files[f]
	if x.n == 0 {
		return
	}
	bytes := x.copies[0].bytes
	for i := int(x.n) - 1; i > 0; i-- {
		if c := &x.copies[i]; b.disks[c.machine].free() >= bytes-c.bytes {
			b.resize(f, i, bytes)
			c.current = true
		} else {
			b.drop(f, i)
			b.count.Evicted++
		}
	}
	for int(x.n) < b.o.Copies {
		at := b.where(x, bytes)
		if at < 0 {
			b.await(f, b.now+tryAgain, true)
			return
		}
		b.add(f, at, bytes)
	}
}

// where chooses a machine with room that has no copy of the file yet: that with the
// most free space, or for the baseline a random one. -1: there is none.
func (b *beeFS) where(x *file, bytes int64) int {
	fits := func(m int) bool {
		return b.disks[m].free() >= bytes && !b.shut[m] && (x == nil || x.on(m) < 0)
	}
	if b.spread {
		for range 4 * len(b.disks) {
			if m := b.random.IntN(len(b.disks)); fits(m) {
				return m
			}
		}
	}
	best := -1
	for m := range b.disks {
		if (best < 0 || b.disks[m].free() > b.disks[best].free()) && fits(m) {
			best = m
		}
	}
	return best
}
