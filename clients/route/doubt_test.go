package route_test

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cartwheel.dev/clients/route"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// TestRow_ManyWaitersAskOnce has very many operations wait for a slow active.
// The other members get about two questions a second in all, not from each
// operation. A row that names another active then ends all attempts.
func TestRow_ManyWaitersAskOnce(t *testing.T) {
	c := servertest.Start(t, servertest.Options{})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r := route.New(connected(ctx, t, c), slog.New(slog.DiscardHandler), nil)
	defer r.Close()
	row, err := r.Row(ctx, ids.RootSlice)
	if err != nil {
		t.Fatal(err)
	}
	var other ids.Node
	var asked atomic.Int64
	for _, n := range c.Nodes {
		if n.ID() != row.Active {
			other = n.ID()
		}
		n.Server().Host().SetFilter(func(_ string, _ wire.Class, m wire.Method) wire.Verdict {
			if m == method.Rows {
				asked.Add(1)
			}
			return wire.Verdict{}
		})
	}
	const many, every = 300, 500 * time.Millisecond
	began := time.Now()
	var all sync.WaitGroup
	for range many {
		all.Go(func() {
			if err := r.Active(ctx, ids.RootSlice, func(ctx context.Context, node ids.Node, _ ids.Epoch) (*pb.Refusal, error) {
				if node == other {
					return nil, nil
				}
				<-ctx.Done() // its answer does not come
				return nil, ctx.Err()
			}); err != nil {
				t.Error(err)
			}
		})
	}
	servertest.Await(ctx, t, "the others to be asked", func() error {
		if asked.Load() == 0 {
			return context.DeadlineExceeded
		}
		return nil
	})
	time.Sleep(2 * time.Second) // the more often they ask, the more is seen
	if n, most := asked.Load(), 4*int64(time.Since(began)/every+2); n > most {
		t.Errorf("the others were asked %d times for %d operations that wait, want at most %d", n, many, most)
	}
	row.Active = other
	row.Epoch++
	if !r.Learn(row) {
		t.Error("a newer row was not learned")
	}
	all.Wait()
}
