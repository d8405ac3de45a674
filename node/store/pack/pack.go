// Package pack keeps chunks on disk: append-only pack files, written by direct
// I/O in batches, with a sum per sector so that any range is checked by what is
// read for it, and an index in memory that finds a chunk without touching the
// disk. It never looks into a chunk nor checks that an address is its content's
// hash: who brings a chunk has done that. Packs may be used by any number of
// goroutines; Puts overlap each other and share syncs.
package pack

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/store/disk"
)

// Options configure the packs; zero values take the defaults.
type Options struct {
	// PackBytes is the length of a pack file, 256 MiB (the most there is).
	PackBytes int64
	// Writers is how many batches are written at once, 4; more wait. Each
	// holds one buffer of 1 MiB.
	Writers int
	// StageBytes is how much PutLazy gathers before it is written, 1 MiB; at
	// four times that PutLazy waits for the disk.
	StageBytes int
	// ReserveBytes of the file system stay free: Put begins no pack below it,
	// so that the log, the metadata and deletions go on, and chunks that are
	// committed already (PutLazy). 256 MiB; negative means none.
	ReserveBytes int64
	// Relieve is called where the disk is full; it may give space back. nil does
	// nothing.
	Relieve func()
	// Pin is how long a chunk that was put, or answered to be present, must
	// not be collected, 1 h.
	Pin time.Duration
	// Clock gives the time that pins are counted by; it must not stop or jump.
	Clock func() time.Duration
	// Wall dates batches, for people; nil is time.Now.
	Wall func() time.Time
	// Logger hears of damage found; nil is silence.
	Logger *slog.Logger
	// Fatal hears of the first failed write or sync; nothing is put after it.
	Fatal func(error)
}

func (o Options) withDefaults() Options {
	if o.PackBytes == 0 {
		o.PackBytes = 256 << 20
	}
	if o.Writers == 0 {
		o.Writers = 4
	}
	if o.StageBytes == 0 {
		o.StageBytes = 1 << 20
	}
	if o.ReserveBytes == 0 {
		o.ReserveBytes = 256 << 20
	}
	if o.Pin == 0 {
		o.Pin = time.Hour
	}
	if o.Relieve == nil {
		o.Relieve = func() {}
	}
	if o.Wall == nil {
		o.Wall = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Fatal == nil {
		o.Fatal = func(error) {}
	}
	return o
}

// Packs are the open packs of a node.
type Packs struct {
	opts    Options
	d       disk.Disk
	index   *table
	pins    *pins
	writers chan struct{} // holds a token per running writer
	buffers sync.Pool     // of *[]byte, aligned, writeBuffer long
	bytes   atomic.Int64  // bodies in the index
	// allDoubted is when DoubtAll was called last, by Options.Clock.
	allDoubted atomic.Int64

	// files is replaced, never changed: readers load it without a lock.
	files atomic.Pointer[map[uint32]*file]

	// mu guards what follows. It is held while a pack is begun, since nobody
	// can go on without it, and never across other I/O.
	mu      sync.Mutex
	current *file
	last    uint32 // highest number used
	failed  error
	closed  bool

	stage  stage
	sealer sync.WaitGroup
}

// Open finds the packs on a disk, indexes them, and is ready for new chunks.
func Open(d disk.Disk, o Options) (*Packs, error) {
	o = o.withDefaults()
	if o.Clock == nil {
		return nil, fault.E(fault.Invalid, "pack.Open", "", "no clock was given")
	}
	p := &Packs{opts: o, d: d, index: newTable(), writers: make(chan struct{}, o.Writers)}
	p.pins = newPins(o.Clock, o.Pin)
	p.buffers.New = func() any { b := disk.Aligned(writeBuffer); return &b }
	p.files.Store(&map[uint32]*file{})
	p.stage.init(p)
	if err := p.load(); err != nil {
		p.closeFiles()
		return nil, err
	}
	go p.stage.run()
	return p, nil
}

// Has says of each address whether the chunk is here, and pins those that are:
// they are not collected until the limit of Options.Pin has passed.
func (p *Packs) Has(addresses []chunk.Address) []bool {
	out := make([]bool, len(addresses))
	for i := range addresses {
		// Pinned first, then looked for: a collector checks the pin last.
		p.pins.add(&addresses[i])
		out[i] = p.present(&addresses[i])
	}
	return out
}

// Missing appends to out those addresses whose chunks are not here, and pins
// those that are.
func (p *Packs) Missing(out, addresses []chunk.Address) []chunk.Address {
	for i := range addresses {
		p.pins.add(&addresses[i])
		if !p.present(&addresses[i]) {
			out = append(out, addresses[i])
		}
	}
	return out
}

// Length returns the length of a chunk that is here.
func (p *Packs) Length(a chunk.Address) (int, bool) {
	if at, ok := p.index.get(&a); ok {
		return at.length(), true
	}
	if body, ok := p.stage.get(&a); ok {
		return len(body), true
	}
	at, ok := p.index.get(&a) // it may have left the stage in between
	return at.length(), ok
}

func (p *Packs) present(a *chunk.Address) bool {
	_, ok := p.Length(*a)
	return ok
}

// Forget takes a damaged chunk out of the index, so that a Put of it writes it
// anew.
func (p *Packs) Forget(a chunk.Address) {
	if at, ok := p.index.get(&a); ok && p.index.remove(&a, at) {
		p.bytes.Add(-int64(at.length()))
	}
}

// Pinned reports whether a chunk must not be collected now. After a start that
// is so for every chunk until a pin's whole limit has passed, which is what
// makes pins outlive a crash.
func (p *Packs) Pinned(a chunk.Address) bool { return p.pins.has(&a) }

// Put stores chunks: on return they are on the disk. Addresses and bodies go in
// pairs; what is here already is not written again. Bodies are not kept.
func (p *Packs) Put(ctx context.Context, addresses []chunk.Address, bodies [][]byte) error {
	const op fault.Op = "pack.Put"
	if err := checkPairs(op, addresses, bodies); err != nil {
		return err
	}
	b := batch{}
	for i := range addresses {
		p.pins.add(&addresses[i])
		if !p.present(&addresses[i]) {
			b.add(&addresses[i], bodies[i])
		}
	}
	if b.count() == 0 {
		return p.Err()
	}
	select {
	case p.writers <- struct{}{}:
		defer func() { <-p.writers }()
	case <-ctx.Done():
		return fault.Wrap(fault.Canceled, op, "", ctx.Err())
	}
	for len(b.bodies) > 0 {
		part := b.cut(p.opts.PackBytes / 4)
		f, err := p.write(&part, p.opts.ReserveBytes)
		if err == nil {
			err = p.syncFile(f)
		}
		if err != nil {
			return err
		}
		p.publish(f, &part)
	}
	return nil
}

func checkPairs(op fault.Op, addresses []chunk.Address, bodies [][]byte) error {
	if len(addresses) != len(bodies) {
		return fault.E(fault.Invalid, op, "", "addresses and bodies do not pair")
	}
	for _, b := range bodies {
		if len(b) == 0 || len(b) > MaxChunk {
			return fault.Errorf(fault.TooLarge, op, "", "a chunk of %d bytes", len(b))
		}
	}
	return nil
}

// publish puts a written batch into the index.
func (p *Packs) publish(f *file, b *batch) {
	f.note(b)
	for i := range b.addresses {
		if p.index.add(&b.addresses[i], newLocation(f.id, b.offsets[i], len(b.bodies[i]))) {
			p.bytes.Add(int64(len(b.bodies[i])))
		}
	}
	if f.release() {
		p.sealer.Go(func() { p.seal(f) })
	}
}

// Err returns the failed write or sync after which nothing is put any more.
func (p *Packs) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// Count returns how many chunks are here, Bytes how long they are together.
func (p *Packs) Count() int { return p.index.len() }

// Bytes returns the length of all chunks together.
func (p *Packs) Bytes() int64 { return p.bytes.Load() }

func (p *Packs) fail(err error) error {
	err = &fault.Error{Kind: fault.IO, Op: "pack.Put", Public: "a pack could not be written: this process must stop acknowledging and restart", Cause: err}
	p.mu.Lock()
	first := p.failed == nil
	if first {
		p.failed = err
	}
	p.mu.Unlock()
	if first {
		p.opts.Fatal(err)
	}
	return err
}

// Close writes what is staged, the index of the current pack, and closes all.
func (p *Packs) Close() error {
	p.mu.Lock()
	already := p.closed
	p.mu.Unlock()
	if already {
		return nil
	}
	err := p.Sync()
	p.stage.close()
	p.mu.Lock()
	p.closed = true
	f := p.current
	p.mu.Unlock()
	p.sealer.Wait()
	if f != nil && err == nil {
		err = p.writeIndex(f)
	}
	p.closeFiles()
	if fault.Is(err, fault.NoSpace) {
		return nil // what could not be written is in the journal, and the index is made anew
	}
	return err
}

func (p *Packs) closeFiles() {
	for _, f := range *p.files.Load() {
		f.closeAll()
	}
}

// batch is a set of chunks on its way to a pack.
type batch struct {
	addresses []chunk.Address
	bodies    [][]byte
	offsets   []int64 // in the stream of the pack, once it has a place
	sector    int64
	sectors   int64
}

func (b *batch) count() int { return len(b.bodies) }

func (b *batch) add(a *chunk.Address, body []byte) {
	if slices.Contains(b.addresses[max(0, len(b.addresses)-8):], *a) {
		return // runs of one chunk, as zeros, are written once
	}
	b.addresses = append(b.addresses, *a)
	b.bodies = append(b.bodies, body)
}

// cut takes the first bodies off, up to a number of bytes but at least one.
func (b *batch) cut(limit int64) batch {
	n, total := 0, int64(0)
	for n < len(b.bodies) && (n == 0 || total+int64(len(b.bodies[n])) <= limit) {
		total += int64(len(b.bodies[n]))
		n++
	}
	part := batch{addresses: b.addresses[:n], bodies: b.bodies[:n]}
	b.addresses, b.bodies = b.addresses[n:], b.bodies[n:]
	return part
}
