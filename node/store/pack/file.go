package pack

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/store/disk"
)

const folder = "packs"

// file is one pack.
type file struct {
	id   uint32
	key  uint64
	size int64

	// reading is held to read the pack, and to close it.
	reading sync.RWMutex
	r       disk.File // through the page cache; nil once the pack is removed

	doubted   atomic.Int64 // bytes of chunks that lost a reference since they were looked at
	looked    atomic.Int64 // when collection looked at the pack, by Options.Clock
	restUntil atomic.Int64 // until when it does not look again

	mu     sync.Mutex // guards what follows; not held across I/O
	turn   *sync.Cond
	w      disk.File // direct; nil once sealed
	next   int64     // sector for the next batch
	flying int       // batches reserved and not published
	full   bool      // takes no more batches
	chunks []placed  // what an index of the pack lists, until it is sealed
	// A sync covers what was written before it started.
	started, done uint64
	running       bool
	// written counts the batches that were written, covered those that a sync
	// has made durable.
	written, covered uint64
}

// neverLooked stands for the time of the last look at a pack that an earlier life wrote.
const neverLooked = math.MinInt64

// placed is a chunk in a pack.
type placed struct {
	address chunk.Address
	offset  int64
	length  uint32
}

func packName(id uint32) string  { return fmt.Sprintf("%s/%06d.pack", folder, id) }
func indexName(id uint32) string { return fmt.Sprintf("%s/%06d.idx", folder, id) }

// reserve finds a place for a batch, beginning a new pack where the current is
// full.
func (p *Packs) reserve(b *batch, spare int64) (*file, error) {
	const op fault.Op = "pack.reserve"
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed != nil {
		return nil, p.failed
	}
	if p.closed {
		return nil, fault.E(fault.Closed, op, "", "")
	}
	if f := p.current; f != nil {
		if f.place(b) {
			return f, nil
		}
		if f.finish() {
			p.sealer.Go(func() { p.seal(f) })
		}
		p.current = nil
	}
	_, sectors := layout(sectorData, func(i int) int { return len(b.bodies[i]) }, len(b.bodies))
	f, err := p.beginLocked((1+sectors)*sectorSize, spare)
	if err != nil {
		return nil, err
	}
	p.current = f
	if !f.place(b) {
		return nil, fault.E(fault.TooLarge, op, "", "a batch is larger than a pack")
	}
	return f, nil
}

// place gives the batch its sectors, if there is room.
func (f *file) place(b *batch) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full || f.w == nil {
		return false
	}
	offsets, sectors := layout(f.next*sectorData, func(i int) int { return len(b.bodies[i]) }, len(b.bodies))
	if (f.next+sectors)*sectorSize > f.size {
		return false
	}
	b.offsets, b.sector, b.sectors = offsets, f.next, sectors
	f.next += sectors
	f.flying++
	return true
}

// finish lets no batch in any more; it reports whether none is in flight, and
// the pack can be sealed by the caller.
func (f *file) finish() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.full = true
	return f.flying == 0
}

// release ends a batch's flight; it reports whether the pack is to be sealed.
func (f *file) release() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flying--
	return f.full && f.flying == 0
}

// note remembers a published batch for the pack's index.
func (f *file) note(b *batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range b.addresses {
		f.chunks = append(f.chunks, placed{b.addresses[i], b.offsets[i], uint32(len(b.bodies[i]))})
	}
}

// smallPack is a length below which a pack is not made for want of space, unless
// that is all there is.
const smallPack = 8 << 20

// sizeFor returns the length of the next pack: less than PackBytes where the
// disk has less, but at least least bytes, with spare bytes left beside it.
func (p *Packs) sizeFor(least, spare int64) (int64, error) {
	size := p.opts.PackBytes
	m, ok := p.d.(disk.Measurer)
	if !ok || spare < 0 {
		return size, nil
	}
	u, err := m.Usage()
	if err != nil || u.Total == 0 {
		return size, nil // the system does not say: Allocate will
	}
	if u.Free < least+spare {
		return 0, fault.Errorf(fault.NoSpace, "pack.Put", packName(p.last+1),
			"%d MiB are free and %d stay in reserve; free some space", u.Free>>20, spare>>20)
	}
	free := u.Free - spare
	size = min(size, max(free/2, smallPack), free)
	return max(size/sectorSize*sectorSize, least), nil
}

// beginLocked makes the next pack, with room for least bytes. Callers hold p.mu.
func (p *Packs) beginLocked(least, spare int64) (*file, error) {
	size, err := p.sizeFor(least, spare)
	if err != nil {
		return nil, err
	}
	id := p.last + 1
	f := &file{id: id, key: rand.Uint64(), size: size, next: 1}
	f.turn = sync.NewCond(&f.mu)
	w, err := p.d.Open(disk.PackOpen, packName(id), disk.Create|disk.Direct)
	if err != nil {
		return nil, err
	}
	head := disk.Aligned(sectorSize)
	packHead{id: id, key: f.key}.encode(head)
	if err = w.Allocate(disk.PackAllocate, f.size); err == nil {
		err = w.WriteAt(disk.PackHeader, head, 0)
	}
	if err == nil {
		err = w.Sync(disk.PackSync)
	}
	if err == nil {
		err = p.d.SyncDir(disk.PackSyncDir, folder)
	}
	if err == nil {
		f.r, err = p.d.Open(disk.PackOpen, packName(id), disk.ReadOnly)
	}
	if err != nil {
		w.Close()
		// Best effort: a pack without batches is harmless.
		_ = p.d.Remove(disk.PackOpen, packName(id))
		return nil, err
	}
	f.w = w
	p.last = id
	p.addFileLocked(f)
	return f, nil
}

// addFileLocked makes a pack known to readers. Callers hold p.mu or are alone.
func (p *Packs) addFileLocked(f *file) {
	old := *p.files.Load()
	files := make(map[uint32]*file, len(old)+1)
	for id, o := range old {
		files[id] = o
	}
	f.looked.Store(int64(p.opts.Clock()))
	files[f.id] = f
	p.files.Store(&files)
}

// syncFile returns when all that was written to the pack before is durable.
// Callers that arrive during one sync share the next.
func (p *Packs) syncFile(f *file) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	want := f.started + 1
	for f.done < want {
		if f.w == nil {
			return p.Err() // sealed: synced before that
		}
		if f.running {
			f.turn.Wait()
			continue
		}
		f.running = true
		f.started++
		mine, covers, w := f.started, f.written, f.w
		f.mu.Unlock()
		err := p.Err()
		if err == nil {
			if err = w.Sync(disk.PackSync); err != nil {
				err = p.fail(err)
			}
		}
		f.mu.Lock()
		f.running = false
		f.turn.Broadcast()
		if err != nil {
			return err
		}
		f.done, f.covered = mine, covers
	}
	return nil
}

// Sync makes everything put lazily before it durable.
func (p *Packs) Sync() error {
	if err := p.stage.flush(); err != nil {
		return err
	}
	if plant.On(plant.PackUnsynced) {
		return nil
	}
	for _, f := range *p.files.Load() {
		f.mu.Lock()
		needed := f.covered < f.written && f.w != nil
		f.mu.Unlock()
		if needed {
			if err := p.syncFile(f); err != nil {
				return err
			}
		}
	}
	return p.Err()
}

func (f *file) closeAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.w != nil {
		f.w.Close()
		f.w = nil
	}
	f.reading.Lock()
	defer f.reading.Unlock()
	if f.r != nil {
		f.r.Close()
		f.r = nil
	}
}
