package route_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/clients/route"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/servertest"
)

// TestEventually_AnActiveThatWasSilentComesLast asks an active that does not answer,
// and one whose caller gave up. Only the first is passed over afterwards.
func TestEventually_AnActiveThatWasSilentComesLast(t *testing.T) {
	c := servertest.Start(t, servertest.Options{})
	cluster := connected(t.Context(), t, c)
	for name, interrupted := range map[string]bool{"silent": false, "interrupted": true} {
		r := route.New(cluster, slog.New(slog.DiscardHandler), nil)
		defer r.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		asked := ""
		silent := func(ctx context.Context, _ ids.Node, _ ids.Epoch) (*pb.Refusal, error) {
			if interrupted {
				cancel()
			}
			<-ctx.Done()
			return nil, fault.Wrap(fault.TimedOut, "", "", ctx.Err())
		}
		answers := func(who string) route.Attempt {
			return func(context.Context, ids.Node, ids.Epoch) (*pb.Refusal, error) { asked = who; return nil, nil }
		}
		if err := r.Eventually(ctx, ids.RootSlice, silent, answers("another member")); (err != nil) != interrupted {
			t.Errorf("%s: got %v", name, err)
		}
		cancel()
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		if err := r.Eventually(ctx, ids.RootSlice, answers("the active"), answers("another member")); err != nil {
			t.Errorf("%s: afterwards: %v", name, err)
		}
		cancel()
		if want := map[bool]string{true: "the active", false: "another member"}[interrupted]; asked != want {
			t.Errorf("%s: afterwards %s was asked, want %s", name, asked, want)
		}
	}
}

// TestEventually_FindsTheNewActive ends the active of a slice, of which clients that wait
// for half a second only read meanwhile. They come to know who acts for it then.
func TestEventually_FindsTheNewActive(t *testing.T) {
	r, old := killed(t)
	active := func(ctx context.Context, node ids.Node, _ ids.Epoch) (*pb.Refusal, error) {
		if node == old {
			return nil, waits(ctx)
		}
		return nil, nil
	}
	copied := func(context.Context, ids.Node, ids.Epoch) (*pb.Refusal, error) { return nil, nil }
	servertest.Await(t.Context(), t, "the new active to be known", func() error {
		if err := r.Eventually(within(t, 500*time.Millisecond), ids.RootSlice, active, copied); err != nil {
			return err
		}
		if row, _ := r.Known(ids.RootSlice); row.Active == old {
			return fault.E(fault.Again, "", "", "the old one is")
		}
		return nil
	})
}

// TestEventually_NobodyWaitsForASliceThatIsLost has no member answer a request. The next
// ones fail at once, until a member has given a sign of life; then one tries.
func TestEventually_NobodyWaitsForASliceThatIsLost(t *testing.T) {
	c := servertest.Start(t, servertest.Options{})
	var clock skipping
	r := route.New(connectedBy(t.Context(), t, c, clock.now), slog.New(slog.DiscardHandler), nil)
	defer r.Close()
	asked, answers := 0, false
	member := func(ctx context.Context, _ ids.Node, _ ids.Epoch) (*pb.Refusal, error) {
		if asked++; answers {
			return nil, nil
		}
		<-ctx.Done()
		return nil, fault.Wrap(fault.TimedOut, "", "", ctx.Err())
	}
	ask := func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		return r.Eventually(ctx, ids.RootSlice, member, member)
	}
	if err := ask(200 * time.Millisecond); !fault.Is(err, fault.TimedOut) {
		t.Errorf("while no member answers: got %v, want TimedOut", err)
	}
	before := asked
	for range 20 {
		if err := ask(time.Minute); !fault.Is(err, fault.TimedOut) {
			t.Errorf("afterwards: got %v, want TimedOut", err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := r.Otherwise(ctx, ids.RootSlice, func(context.Context) error { asked++; return nil }, nil); !fault.Is(err, fault.TimedOut) {
		t.Errorf("an operation: got %v, want TimedOut", err)
	}
	live := slices.Clone(c.Nodes)
	for _, n := range live {
		n.Kill()
	}
	answers = true
	for range 3 { // signs of life that nobody gives
		clock.skip(3 * time.Second)
		if err := ask(time.Minute); !fault.Is(err, fault.TimedOut) {
			t.Errorf("while no member lives: got %v, want TimedOut", err)
		}
		r.AwaitPings()
	}
	if asked != before {
		t.Errorf("members were asked %d times more, want none", asked-before)
	}
	for _, n := range live {
		n.Start()
	}
	servertest.Await(t.Context(), t, "a request to go through", func() error {
		clock.skip(3 * time.Second)
		defer r.AwaitPings()
		return ask(time.Minute)
	})
	if err := ask(time.Minute); err != nil {
		t.Errorf("once one was answered: %v", err)
	}
}

// TestEventually_ALoneActiveHasAllOfTheTime asks in slices of one and of three members.
// Only where another one can stand in, the attempt at the active ends before the
// request does.
func TestEventually_ALoneActiveHasAllOfTheTime(t *testing.T) {
	for sites, alone := range map[string]bool{"a": true, "a b c": false} {
		c := servertest.Start(t, servertest.Options{Sites: strings.Fields(sites)})
		r := route.New(connected(t.Context(), t, c), slog.New(slog.DiscardHandler), nil)
		defer r.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		end, _ := ctx.Deadline()
		look := func(what string, ctx context.Context) {
			if at, ok := ctx.Deadline(); !ok || (end.Sub(at) < time.Minute) != alone {
				t.Errorf("%s at %s: the attempt ends %v before the request", what, sites, end.Sub(at))
			}
		}
		if err := r.Otherwise(ctx, ids.RootSlice, func(ctx context.Context) error { look("a change", ctx); return nil }, func(context.Context, []ids.Node) error { return nil }); err != nil {
			t.Error(err)
		}
		read := func(ctx context.Context, _ ids.Node, _ ids.Epoch) (*pb.Refusal, error) {
			look("a read", ctx)
			return nil, nil
		}
		if err := r.Eventually(ctx, ids.RootSlice, read, read); err != nil {
			t.Error(err)
		}
	}
}

// TestOtherwise_NobodyKnowsIsNoAnswer has an active lack a file that a side log may have,
// and no other member answer. Whether the file is there is not known then.
func TestOtherwise_NobodyKnowsIsNoAnswer(t *testing.T) {
	c := servertest.Start(t, servertest.Options{})
	r := route.New(connected(t.Context(), t, c), slog.New(slog.DiscardHandler), nil)
	defer r.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, x := range []struct{ active, side, want fault.Kind }{
		{fault.Stale, fault.Unreachable, fault.Unreachable},
		{fault.NotFound, fault.TimedOut, fault.TimedOut},
		{fault.Stale, fault.Stale, fault.Stale},
		{fault.Exists, fault.TimedOut, fault.Exists},
	} {
		err := r.Otherwise(ctx, ids.RootSlice,
			func(context.Context) error { return fault.E(x.active, "", "", "the active says so") },
			func(context.Context, []ids.Node) error { return fault.E(x.side, "", "", "the side says so") })
		if !fault.Is(err, x.want) {
			t.Errorf("%v at the active and %v at the side: got %v, want %v", x.active, x.side, err, x.want)
		}
	}
}
