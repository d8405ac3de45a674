package route_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"cartwheel.dev/clients/route"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/servertest"
)

// waits is an attempt that nobody answers.
func waits(ctx context.Context) error {
	<-ctx.Done()
	return fault.Wrap(fault.TimedOut, "", "", ctx.Err())
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// skipping is the machine's clock, which a test may move on.
type skipping struct{ by atomic.Int64 }

func (s *skipping) now() time.Duration { return boottime.Default()() + time.Duration(s.by.Load()) }

func (s *skipping) skip(d time.Duration) { s.by.Add(int64(d)) }

// TestOtherwise_TriesADeadActiveNoMore has an active be silent, first dead and then alive
// again. No operation tries it before a ping has shown that it lives.
func TestOtherwise_TriesADeadActiveNoMore(t *testing.T) {
	c := servertest.Start(t, servertest.Options{})
	var clock skipping
	r := route.New(connectedBy(t.Context(), t, c, clock.now), slog.New(slog.DiscardHandler), nil)
	defer r.Close()
	row, err := r.Row(t.Context(), ids.RootSlice)
	if err != nil {
		t.Fatal(err)
	}
	var active *servertest.Node
	for _, n := range c.Nodes {
		if n.ID() == row.Active {
			active = n
		}
	}
	tried := 0
	do := func() error {
		defer r.AwaitPings()
		return r.Otherwise(within(t, time.Minute), ids.RootSlice, func(context.Context) error {
			if now, _ := r.Known(ids.RootSlice); now.Active == row.Active { // else one that took over is tried
				tried++
			}
			return nil
		}, func(context.Context, []ids.Node) error { return nil })
	}
	active.Kill()
	if err := r.Otherwise(within(t, 100*time.Millisecond), ids.RootSlice, waits, func(context.Context, []ids.Node) error { return nil }); err != nil {
		t.Fatal(err)
	}
	for range 4 { // a ping, and what comes of it
		clock.skip(3 * time.Second)
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	if tried > 0 {
		t.Errorf("the dead active was tried %d times", tried)
	}
	active.Start()
	servertest.Await(t.Context(), t, "the active to be tried again", func() error {
		clock.skip(3 * time.Second)
		now, _ := r.Known(ids.RootSlice)
		if err := do(); err != nil || tried > 0 || now.Active != row.Active {
			return err
		}
		return fault.E(fault.Again, "", "", "it is not")
	})
}

// TestOtherwise_GivesTheActiveItsUsualTime has operations take long, and looks at how long
// the next one may.
func TestOtherwise_GivesTheActiveItsUsualTime(t *testing.T) {
	c := servertest.Start(t, servertest.Options{})
	var clock skipping
	r := route.New(connectedBy(t.Context(), t, c, clock.now), slog.New(slog.DiscardHandler), nil)
	defer r.Close()
	const limit = 10 * time.Second
	may := func() (d time.Duration) {
		_ = r.Otherwise(within(t, limit), ids.RootSlice, func(ctx context.Context) error {
			end, _ := ctx.Deadline()
			d = time.Until(end)
			return fault.E(fault.Exists, "", "", "it is refused, which tells nothing of the way")
		}, func(context.Context, []ids.Node) error { return nil })
		return d
	}
	if d := may(); d > limit/3 {
		t.Errorf("at first an operation may wait %v for the active, want a third of %v", d, limit)
	}
	err := r.Otherwise(within(t, time.Minute), ids.RootSlice, func(context.Context) error { clock.skip(2 * time.Second); return nil }, func(context.Context, []ids.Node) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if d := may(); d < 4*time.Second || d > limit*2/3 {
		t.Errorf("after one that took 2 s it may wait %v, want twice that", d)
	}
}

// TestEventually_AsksTheOtherCopiesToo has the active not answer and
// the copies disagree.
func TestEventually_AsksTheOtherCopiesToo(t *testing.T) {
	c := servertest.Start(t, servertest.Options{})
	r := route.New(connected(t.Context(), t, c), slog.New(slog.DiscardHandler), nil)
	defer r.Close()
	silent := func(ctx context.Context, _ ids.Node, _ ids.Epoch) (*pb.Refusal, error) { return nil, waits(ctx) }
	for _, x := range []struct{ first, second, want fault.Kind }{
		{fault.Stale, fault.None, fault.None},
		{fault.Stale, fault.Unreachable, fault.Stale},
		{fault.Stale, fault.Stale, fault.Stale},
		{fault.Unreachable, fault.Stale, fault.Stale},
		{fault.NotFound, fault.None, fault.NotFound},
	} {
		asked := 0
		err := r.Eventually(within(t, 200*time.Millisecond), ids.RootSlice, silent, func(context.Context, ids.Node, ids.Epoch) (*pb.Refusal, error) {
			asked++
			if k := []fault.Kind{x.first, x.second}[min(asked, 2)-1]; k != fault.None {
				return nil, fault.E(k, "", "", "the copy says so")
			}
			return nil, nil
		})
		if fault.KindOf(err) != x.want {
			t.Errorf("%v at the first copy and %v at the second: got %v, want %v", x.first, x.second, err, x.want)
		}
	}
}
