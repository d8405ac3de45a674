package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
)

// pulse is a counter in a file. One client raises it, and another reads it all
// the time, mostly out of its cache: what it reads must be no less than was
// acknowledged, and no less than was read, before it began to read. So a lease
// that is believed for too long shows within a few reads.
type pulse struct {
	b    *burst
	dir  int
	name string

	mu    sync.Mutex // guards below
	begun uint64     // the highest count that was given to a write
	sure  uint64     // the highest that was acknowledged or read
	// late are counts whose writer's process ended meanwhile: they may have been
	// sent, and come behind what was written since.
	late map[uint64]bool
}

// pulseLine is how a count stands in the file: always as long.
const pulseLine = "count %019d\n"

// newPulses makes a counter of each client.
func newPulses(ctx context.Context, b *burst, clients []*client) ([]*pulse, error) {
	var out []*pulse
	for i, c := range clients {
		p := &pulse{b: b, dir: i % burstDirs, name: "pulse." + c.name, late: map[uint64]bool{}}
		k := b.worker(c, p.name, nil)
		k.enter()
		if err := k.meet(ctx); err != nil {
			return nil, err
		}
		e, o, err := c.fs.Create(ctx, mount.Caller{}, k.dirs[p.dir], p.name, 0o644, mount.OpenWrite|mount.OpenExclusive)
		if err != nil {
			return nil, err
		}
		if err := p.put(ctx, k, e.Node, o.Handle); err != nil {
			return nil, err
		}
		c.fs.Forget(e.Node, 1)
		out = append(out, p)
	}
	return out, nil
}

// put writes one more than the last count, and lets go of the file.
func (p *pulse) put(ctx context.Context, k *worker, n mount.Inode, h mount.Handle) error {
	p.mu.Lock()
	p.begun++
	count := p.begun
	p.mu.Unlock()
	_, err := k.fs.Write(ctx, mount.Caller{}, n, h, 0, fmt.Appendf(nil, pulseLine, count), 0)
	if err == nil {
		err = k.fs.Flush(ctx, mount.Caller{}, n, h, 0)
	}
	k.fs.Release(n, h, 0, false)
	switch {
	case ended(k.over):
		p.mu.Lock()
		p.late[count] = true
		p.mu.Unlock()
	case err == nil:
		p.know(count)
	}
	return err
}

// know notes that nobody may read less any more.
func (p *pulse) know(count uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sure = max(p.sure, count)
}

// beat has a client raise the counter, or read it, until stop.
func (p *pulse) beat(c *client, chance *rand.Rand, most time.Duration, one func(context.Context, *worker, mount.Inode) error, stop chan struct{}) {
	k := p.b.worker(c, p.name, chance)
	for {
		t := time.NewTimer(time.Duration(chance.Int64N(int64(most))))
		select {
		case <-stop:
			t.Stop()
			return
		case <-t.C:
		}
		if !k.enter() {
			continue
		}
		if err := p.once(k, one); err != nil && !p.b.allowed(err) && !ended(k.over) {
			p.b.once("PULSE", "%s: %v", p.name, err)
		}
	}
}

// once finds the file and does one thing with it.
func (p *pulse) once(k *worker, one func(context.Context, *worker, mount.Inode) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), callBound)
	defer cancel()
	if err := k.meet(ctx); err != nil {
		return err
	}
	e, err := k.fs.Lookup(ctx, mount.Caller{}, k.dirs[p.dir], p.name)
	if err == nil && e.Node == 0 {
		err = fault.E(fault.NotFound, "simulation.pulse", p.name, "it was there")
	}
	if err != nil {
		return err
	}
	defer k.fs.Forget(e.Node, 1)
	return one(ctx, k, e.Node)
}

// raise is one beat of who writes.
func (p *pulse) raise(ctx context.Context, k *worker, n mount.Inode) error {
	o, err := k.fs.Open(ctx, mount.Caller{}, n, mount.OpenWrite)
	if err != nil {
		return err
	}
	return p.put(ctx, k, n, o.Handle)
}

// read is one beat of who reads.
func (p *pulse) read(ctx context.Context, k *worker, n mount.Inode) error {
	p.mu.Lock()
	least := p.sure
	p.mu.Unlock()
	text, err := k.read(ctx, n)
	if err != nil {
		return err
	}
	p.mu.Lock()
	most := p.begun
	p.mu.Unlock()
	var count uint64
	if _, err := fmt.Sscanf(text, pulseLine, &count); err != nil || count > most {
		p.b.once("PULSE", "%s holds %.60q, and %d was written last", p.name, text, most)
		return nil
	}
	p.mu.Lock()
	late := p.late[count]
	p.mu.Unlock()
	if count < least && !late {
		p.b.once("STALE", "%s was read as %d, after %d had been written or read", p.name, count, least)
		return nil
	}
	p.know(count)
	return nil
}
