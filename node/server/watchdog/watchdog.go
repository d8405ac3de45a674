// Package watchdog ends a node whose disk does not answer any more. Its slices
// have been taken over long before that, and what it would write late helps
// nobody. It watches how far the node's loop and its log come, and touches
// neither. A Dog belongs to one goroutine.
package watchdog

import (
	"context"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/server/operate"
)

const (
	// After is how long a disk may take where the node's owner says nothing else.
	After = 30 * time.Second
	// looks is how often a Dog looks in that time.
	looks = 30
)

// Options are what a Dog is made of. Every field is needed.
type Options struct {
	// After is how long the disk may not answer.
	After time.Duration
	// Data is the node's directory, for the message to people.
	Data string
	// Progress says how far the loop and its log have come.
	Progress func() operate.Progress
	// IsFull reports that the log waits for room: it is not stalled then.
	IsFull func() bool
	// Fail ends the node.
	Fail func(error)
}

// Dog notices that the loop or its log makes no progress. It counts looks and
// reads no clock: a machine that was suspended has not looked meanwhile.
type Dog struct {
	o    Options
	last operate.Progress // at the last look
	same int              // looks since something moved
}

// New returns a watchdog that has not looked yet.
func New(o Options) *Dog { return &Dog{o: o} }

// Run ends the node once its disk has not answered for too long. It returns then,
// or when ctx ends.
func (d *Dog) Run(ctx context.Context) {
	tick := time.NewTicker(d.o.After / looks)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if d.look(d.o.Progress(), d.o.IsFull()) {
			d.o.Fail(fault.Errorf(fault.IO, "watchdog.Run", d.o.Data, "the disk has not answered for %v: look after it, then start the node again", d.o.After))
			return
		}
	}
}

// look reports whether nothing moved for too many looks. A log that is full
// waits for room.
func (d *Dog) look(now operate.Progress, full bool) bool {
	stands := now.Turns == d.last.Turns || now.Appended > now.Written && now.Written == d.last.Written && !full
	d.last = now
	if !stands {
		d.same = 0
		return false
	}
	d.same++
	return d.same >= looks
}
