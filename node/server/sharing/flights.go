package sharing

import (
	"context"
	"sync"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
)

const (
	// mostFlights bounds the chunks that are asked for or wait for their turn.
	// Beyond it clients are told "overloaded", and ask the slice's members.
	mostFlights = 2048
	// flightsAtOnce bounds the chunks that are asked for at one time: as many as
	// a long way holds.
	flightsAtOnce = 16
	// flightMost bounds one flight, the wait for its turn included.
	flightMost = 2 * time.Minute
)

// flight is a chunk that is being brought, whoever asked first.
type flight struct {
	done   chan struct{} // closed at the end; then data or err is set
	turned chan struct{} // closed where the chunk is got from a node that is no member
	turn   sync.Once     // closes turned
	data   []byte
	err    error
}

// join returns the flight of a chunk, and begins it where there is none.
func (c *Cache) join(slice ids.Slice, a chunk.Address) (*flight, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.flights[a]; f != nil {
		return f, nil
	}
	if data := c.kept.get(a); data != nil { // it came meanwhile
		f := &flight{done: make(chan struct{}), data: data}
		close(f.done)
		return f, nil
	}
	if len(c.flights) >= mostFlights {
		return nil, fault.E(fault.Overloaded, "sharing.join", a.String(), "too many chunks are being brought for this site")
	}
	f := &flight{done: make(chan struct{}), turned: make(chan struct{})}
	c.flights[a] = f
	c.o.Go(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, flightMost)
		defer cancel()
		f.data, f.err = c.fly(ctx, f, slice, a)
		c.land(f, a)
	})
	return f, nil
}

// fly waits for a turn and fetches a chunk.
func (c *Cache) fly(ctx context.Context, f *flight, slice ids.Slice, a chunk.Address) ([]byte, error) {
	select {
	case c.turns <- struct{}{}:
		defer func() { <-c.turns }()
		return c.fetch(ctx, f, slice, a)
	case <-ctx.Done():
		return nil, fault.Wrap(fault.TimedOut, "sharing.fly", a.String(), ctx.Err())
	}
}

// land keeps what a flight brought, and tells those who wait.
func (c *Cache) land(f *flight, a chunk.Address) {
	if f.err == nil {
		c.kept.put(a, f.data)
		c.counts.fetched.Add(uint64(len(f.data)))
	}
	c.mu.Lock()
	delete(c.flights, a)
	c.mu.Unlock()
	close(f.done)
}

// await waits for the end of a flight.
func (f *flight) await(ctx context.Context) ([]byte, error) {
	select {
	case <-f.done:
		return f.data, f.err
	case <-ctx.Done():
		return nil, fault.Wrap(fault.Canceled, "sharing.await", "", ctx.Err())
	}
}
