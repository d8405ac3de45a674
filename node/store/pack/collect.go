package pack

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/store/disk"
)

// A chunk is collected with its pack: the chunks that are needed are copied into
// another pack, and the file goes. Until then a chunk that nobody needs is as good as
// any other, and a commit may name it again.
//
// A caller who was told that a chunk is here must find it here. Who asks pins the chunk
// first and looks for it then. Collection goes the other way about: it takes the chunk
// out of the index first and looks for pins then. One of the two sees the other.

const (
	// judgeMost bounds the chunks that are judged at once.
	judgeMost = 1024
	// moveMost bounds the bytes that are moved at once; they are in memory.
	moveMost = 4 << 20
)

// Rules are what a Reclaim goes by. An error of one of them ends the Reclaim, and
// nothing is lost by it. None may be nil.
type Rules struct {
	// Share is the part of a pack's length that must be free of what is needed.
	Share float64
	// Needed says of each chunk, of judgeMost at most, whether something on this node
	// needs it.
	Needed func(ctx context.Context, addresses []chunk.Address) ([]bool, error)
	// Settle returns once a crash cannot bring a need back that was over before the
	// call: what Needed read is durable.
	Settle func(ctx context.Context) error
	// Pace returns once so many bytes may be moved.
	Pace func(ctx context.Context, bytes int) error
}

// Doubt notes that a chunk has lost a reference, so that its pack is looked at sooner.
// Doubts are not kept over a start.
func (p *Packs) Doubt(a chunk.Address) {
	if at, ok := p.index.get(&a); ok {
		if f := (*p.files.Load())[at.pack()]; f != nil {
			f.doubted.Add(int64(at.length()))
		}
	}
}

// DoubtAll notes that many chunks lost references, so that every pack is looked at sooner.
func (p *Packs) DoubtAll() { p.allDoubted.Store(int64(p.opts.Clock())) }

// Next returns the pack to be reclaimed next: the one with most doubts, if they are a
// share of its length, else one that was not looked at for age, or not since the start, or
// not for soon and not since all were doubted.
// ok is false where there is none. The pack that chunks go to now is closed where it has such doubts.
func (p *Packs) Next(share float64, age, soon time.Duration) (id uint32, ok bool) {
	now := p.opts.Clock()
	var most, oldest *file
	for _, f := range *p.files.Load() {
		doubted := f.doubted.Load()
		doubtful := float64(doubted) >= share*float64(f.size)
		if !f.isSealed() {
			if doubtful {
				p.closeCurrent(f)
			}
			continue
		}
		if now < time.Duration(f.restUntil.Load()) {
			continue
		}
		if doubtful && (most == nil || doubted > most.doubted.Load()) {
			most = f
		}
		since := f.looked.Load()
		unseen := now - time.Duration(since)
		due := since == neverLooked || unseen >= age || since < p.allDoubted.Load() && unseen >= soon
		if due && (oldest == nil || since < oldest.looked.Load()) {
			oldest = f
		}
	}
	switch {
	case most != nil:
		return most.id, true
	case oldest != nil:
		return oldest.id, true
	}
	return 0, false
}

// isSealed reports whether the pack takes nothing more and is durable.
func (f *file) isSealed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.full && f.w == nil
}

// closeCurrent has the next chunk begin another pack, if chunks go to f now.
func (p *Packs) closeCurrent(f *file) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != f || p.closed || p.failed != nil {
		return
	}
	p.current = nil
	if f.finish() {
		p.sealer.Go(func() { p.seal(f) })
	}
}

// Reclaimed is what came of looking at one pack, in bytes.
type Reclaimed struct {
	Freed int64 // length of the pack's file, if it is gone
	Moved int64 // of the chunks that were copied out of it
}

// Reclaim looks which chunks of a pack are needed. If the others make up enough of its
// length it moves the needed ones into another pack and removes the file. The errors are
// those of the rules, NotFound, NoSpace, Corrupt (a chunk that is needed is damaged: the
// pack stays) and IO. Reclaim may run beside everything else, but only one at a time.
func (p *Packs) Reclaim(ctx context.Context, id uint32, rules Rules) (Reclaimed, error) {
	const op fault.Op = "pack.Reclaim"
	f := (*p.files.Load())[id]
	if f == nil || !f.isSealed() {
		return Reclaimed{}, fault.E(fault.NotFound, op, packName(id), "no such pack is full")
	}
	r := reclaim{p: p, f: f, rules: rules}
	worth, err := r.look(ctx)
	if err == nil && !worth {
		return Reclaimed{}, nil
	}
	if err == nil {
		err = rules.Settle(ctx)
	}
	if err == nil {
		err = r.take(ctx)
	}
	if err == nil {
		err = r.move(ctx)
	}
	if err != nil {
		f.rest(p)
		return Reclaimed{Moved: r.moved}, fault.Wrap(fault.IO, op, packName(id), err)
	}
	return Reclaimed{Freed: f.size, Moved: r.moved}, p.remove(f)
}

// rest lets a pack alone for a while, until pins may have ended.
func (f *file) rest(p *Packs) {
	f.restUntil.Store(int64(p.opts.Clock() + max(p.opts.Pin/4, time.Second)))
}

// reclaim is one Reclaim under way.
type reclaim struct {
	p     *Packs
	f     *file
	rules Rules
	// live are the chunks of the pack that are kept, dead those that may go.
	live, dead []placed
	moved      int64
}

// look judges all chunks of the pack and reports whether it is worth while to reclaim it.
func (r *reclaim) look(ctx context.Context) (bool, error) {
	p, f := r.p, r.f
	list, err := p.chunksOf(f)
	if err != nil {
		return false, err
	}
	f.looked.Store(int64(p.opts.Clock()))
	live, pinned := int64(0), int64(0)
	for len(list) > 0 {
		part := list[:min(judgeMost, len(list))]
		list = list[len(part):]
		needed, err := r.needed(ctx, part)
		if err != nil {
			return false, err
		}
		for i := range part {
			switch {
			case needed[i]:
				live += int64(part[i].length)
				r.live = append(r.live, part[i])
			case p.isPinned(&part[i].address):
				pinned += int64(part[i].length)
				r.live = append(r.live, part[i])
			default:
				r.dead = append(r.dead, part[i])
			}
		}
	}
	if float64(f.size-live-pinned) >= r.rules.Share*float64(f.size) {
		return true, nil
	}
	f.doubted.Store(f.size - live)
	if pinned > 0 {
		f.rest(p)
	}
	return false, nil
}

func (r *reclaim) needed(ctx context.Context, list []placed) ([]bool, error) {
	addresses := make([]chunk.Address, len(list))
	for i := range list {
		addresses[i] = list[i].address
	}
	return r.rules.Needed(ctx, addresses)
}

// isPinned is Pinned, but for a planted mistake.
func (p *Packs) isPinned(a *chunk.Address) bool {
	return p.pins.has(a) && !plant.On(plant.CollectIgnoresPins)
}

// take takes the dead chunks out of the index, each right after it was judged once
// more. Those that are needed or pinned after all become live.
func (r *reclaim) take(ctx context.Context) error {
	p := r.p
	for list := r.dead; len(list) > 0; {
		part := list[:min(judgeMost, len(list))]
		list = list[len(part):]
		began := p.opts.Clock()
		needed, err := r.needed(ctx, part)
		if err != nil {
			return err
		}
		for i := range part {
			c := &part[i]
			if needed[i] || !p.takeOut(r.f, c, began) {
				r.live = append(r.live, *c)
			}
		}
	}
	return nil
}

// takeOut takes a chunk out of the index, unless somebody was told of it since it was
// judged: a pin that old might have ended unseen.
func (p *Packs) takeOut(f *file, c *placed, judged time.Duration) bool {
	at := newLocation(f.id, c.offset, int(c.length))
	if !p.index.remove(&c.address, at) {
		return true // it is elsewhere, or was forgotten
	}
	if p.isPinned(&c.address) || p.opts.Clock()-judged >= p.opts.Pin {
		p.index.add(&c.address, at) // unless it was written anew meanwhile
		return false
	}
	p.bytes.Add(-int64(c.length))
	return true
}

// move copies the live chunks into another pack and has the index find them there.
func (r *reclaim) move(ctx context.Context) error {
	for list := r.live; len(list) > 0; {
		n, bytes := 0, 0
		for n < len(list) && (n == 0 || bytes+int(list[n].length) <= moveMost) {
			bytes += int(list[n].length)
			n++
		}
		if err := r.rules.Pace(ctx, bytes); err != nil {
			return err
		}
		if err := r.moveSome(ctx, list[:n]); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

func (r *reclaim) moveSome(ctx context.Context, list []placed) error {
	p := r.p
	var b batch
	var ranges []Range
	for i := range list {
		c := &list[i]
		if at, ok := p.index.get(&c.address); !ok || at != newLocation(r.f.id, c.offset, int(c.length)) {
			continue // it is elsewhere now
		}
		body := make([]byte, c.length)
		b.addresses, b.bodies = append(b.addresses, c.address), append(b.bodies, body)
		ranges = append(ranges, Range{Address: c.address, Into: body})
	}
	if len(ranges) == 0 {
		return nil
	}
	if err := p.Read(ctx, ranges); err != nil {
		return err
	}
	for len(b.bodies) > 0 {
		part := b.cut(p.opts.PackBytes / 4)
		f, err := p.write(&part, 0)
		if fault.Is(err, fault.NoSpace) {
			p.opts.Relieve()
			f, err = p.write(&part, 0)
		}
		if err == nil && !plant.On(plant.CollectUnlinksEarly) {
			err = p.syncFile(f)
		}
		if err != nil {
			return err
		}
		r.publish(f, &part)
	}
	return nil
}

// publish has the index find a batch at its new place. The flight of the batch ends.
func (r *reclaim) publish(f *file, b *batch) {
	f.note(b)
	for i := range b.addresses {
		a := &b.addresses[i]
		if old, ok := r.p.index.get(a); ok && old.pack() == r.f.id {
			r.p.index.replace(a, old, newLocation(f.id, b.offsets[i], len(b.bodies[i])))
		}
		r.moved += int64(len(b.bodies[i]))
	}
	if f.release() {
		r.p.sealer.Go(func() { r.p.seal(f) })
	}
}

// chunksOf lists the chunks of a full pack that the index finds in it, in their order.
func (p *Packs) chunksOf(f *file) ([]placed, error) {
	list, _, err := p.listOf(f)
	if err != nil {
		return nil, err
	}
	return p.found(f, list), nil
}

// listOf lists the chunks of a full pack as its index file does, or without one as the pack
// itself does. isIndexed tells which.
func (p *Packs) listOf(f *file) (list []placed, isIndexed bool, err error) {
	g := &file{id: f.id, key: f.key, size: f.size, next: 1}
	g.turn = sync.NewCond(&g.mu)
	f.reading.RLock()
	defer f.reading.RUnlock()
	if f.r == nil {
		return nil, true, nil
	}
	g.r = f.r
	isIndexed, err = p.readIndex(g)
	if err == nil && !isIndexed {
		g.chunks, g.next = nil, 1
		err = p.scan(g)
	}
	return g.chunks, isIndexed, err
}

// found leaves those chunks in a list that the index finds in a pack. It changes the list.
func (p *Packs) found(f *file, list []placed) []placed {
	out := list[:0]
	for _, c := range list {
		if at, ok := p.index.get(&c.address); ok && at == newLocation(f.id, c.offset, int(c.length)) {
			out = append(out, c)
		}
	}
	return out
}

// remove takes away a pack in which the index finds nothing. The index file goes first:
// a pack without one is scanned, an index without a pack would stay for ever.
func (p *Packs) remove(f *file) error {
	p.mu.Lock()
	old := *p.files.Load()
	files := make(map[uint32]*file, len(old))
	for id, o := range old {
		if o != f {
			files[id] = o
		}
	}
	p.files.Store(&files)
	p.mu.Unlock()
	f.reading.Lock()
	err := f.r.Close()
	f.r = nil
	f.reading.Unlock()
	if err != nil {
		p.opts.Logger.Warn("a pack that was emptied could not be closed", slog.String("pack", packName(f.id)), logattr.Err(err))
	}
	if err = p.d.Remove(disk.IndexRemove, indexName(f.id)); fault.Is(err, fault.NotFound) {
		err = nil
	}
	if err == nil {
		err = p.d.Remove(disk.PackRemove, packName(f.id))
	}
	if err == nil {
		err = p.d.SyncDir(disk.PackSyncDir, folder)
	}
	return err
}

// Space is what the packs take, in bytes.
type Space struct {
	Files   int64 // of the pack files, what is empty in them included
	Chunks  int64 // of the chunks that the index finds
	Doubted int64 // of them, those that lost a reference since they were looked at
}

// Space returns what the packs take.
func (p *Packs) Space() Space {
	s := Space{Chunks: p.bytes.Load()}
	for _, f := range *p.files.Load() {
		s.Files += f.size
		s.Doubted += f.doubted.Load()
	}
	s.Doubted = min(s.Doubted, s.Chunks)
	return s
}

// pinsKept bounds one generation of pins; a full one pins every chunk until it
// has expired, which errs on the safe side.
const pinsKept = 1 << 18

// pins remember which chunks must not be collected. They live in memory and yet
// outlive a crash: for the whole limit after a start, every chunk is pinned.
// Two generations, each as long as the limit, are enough to forget the rest.
type pins struct {
	now   func() time.Duration
	limit time.Duration

	mu       sync.Mutex // guards what follows
	all      time.Duration
	turned   time.Duration
	young    map[pinKey]struct{}
	old      map[pinKey]struct{}
	youngAll bool
	oldAll   bool
}

// pinKey is a part of an address: a false match keeps a chunk a little longer.
type pinKey [8]byte

func newPins(now func() time.Duration, limit time.Duration) *pins {
	t := now()
	return &pins{now: now, limit: limit, all: t + limit, turned: t, young: map[pinKey]struct{}{}, old: map[pinKey]struct{}{}}
}

func (p *pins) turn(t time.Duration) {
	if t-p.turned < p.limit {
		return
	}
	p.old, p.oldAll = p.young, p.youngAll
	if t-p.turned >= 2*p.limit {
		p.old, p.oldAll = map[pinKey]struct{}{}, false
	}
	p.young, p.youngAll = map[pinKey]struct{}{}, false
	p.turned = t
}

func (p *pins) add(a *chunk.Address) {
	t := p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn(t)
	if len(p.young) >= pinsKept {
		p.youngAll = true
		return
	}
	p.young[pinKey(a[:8])] = struct{}{}
}

func (p *pins) has(a *chunk.Address) bool {
	t := p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn(t)
	if t < p.all || p.youngAll || p.oldAll {
		return true
	}
	k := pinKey(a[:8])
	_, young := p.young[k]
	_, old := p.old[k]
	return young || old
}
