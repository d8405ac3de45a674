// Package leadership is what a node does about the slices that it acts for: it
// lists them, gets a new one ready, hands them over, and leaves them all before
// the node stops. The replica core decides who acts for a slice; this package
// asks it. A Leader is safe for concurrent use.
package leadership

import (
	"context"
	"log/slog"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/tree"
)

// Loop is what a leader asks of the node's loop.
type Loop interface {
	Ask(context.Context, func(*replica.Node, replica.Time)) error
	Do(func(*replica.Node, replica.Time)) bool
	// Published is the state of a slice that other goroutines may read.
	Published(ids.Slice) *operate.Published
	// Format gives an empty slice its first entry, and calls done once.
	Format(id ids.Slice, timeNs int64, done func(error))
}

// Roster is the cluster's configuration.
type Roster interface {
	Slices() []geoconfig.SliceRow
	// Away is since when the configuration store is away; zero: it is not.
	Away() time.Time
}

// Options are what a Leader is made of. Every field is needed.
type Options struct {
	Self   ids.Node
	Loop   Loop
	Roster Roster
	// Connected reports whether this node has a connection to another one.
	Connected func(ids.Node) bool
	// Committed is what this node's own copy of a slice shows.
	Committed func(ids.Slice) tree.View
	// Resume finishes the operations over several slices that a slice's former
	// active began.
	Resume func(ids.Slice)
	// ReleaseAbsent lets go of a slice's open files whose clients have no session.
	ReleaseAbsent func(context.Context, ids.Slice)
	// Lease is how long an answered beacon binds a standby, Session how long a
	// client's session outlives its last keep-alive.
	Lease, Session time.Duration
	Clock          func() time.Duration
	Wall           func() time.Time
	Logger         *slog.Logger
}

// Leader acts for the node's slices. It has no state of its own: the core and
// the configuration have it.
type Leader struct{ o Options }

// New returns a leader.
func New(o Options) *Leader { return &Leader{o: o} }

// Slices lists the rows of the slices that this node acts for now.
func (l *Leader) Slices() []geoconfig.SliceRow {
	var out []geoconfig.SliceRow
	now := l.o.Clock()
	for _, row := range l.o.Roster.Slices() {
		if row.Active == l.o.Self && l.o.Loop.Published(row.ID).Serves(now) {
			out = append(out, row)
		}
	}
	return out
}

// Begin does what a new active does first: it formats a slice that is empty, and
// later lets go of open files whose clients do not come back. It returns then, or
// when ctx ends.
func (l *Leader) Begin(ctx context.Context, id ids.Slice) {
	if err := l.format(ctx, id); err != nil && ctx.Err() == nil {
		l.o.Logger.Error("a new slice could not be prepared", logattr.Slice(id), logattr.Err(err))
		return
	}
	l.o.Resume(id)
	select {
	case <-ctx.Done():
		return
	case <-time.After(l.o.Session + l.o.Lease):
	}
	l.o.ReleaseAbsent(ctx, id)
}

// format gives an empty slice its first entry.
func (l *Leader) format(ctx context.Context, id ids.Slice) error {
	state, err := tree.ReadState(l.o.Committed(id))
	if err != nil || state.Next != 0 {
		return err
	}
	done := make(chan error, 1)
	l.o.Loop.Format(id, l.o.Wall().UnixNano(), func(err error) { done <- err })
	select {
	case err := <-done:
		if fault.Is(err, fault.NotActive) {
			return nil // the slice's new active does it
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
