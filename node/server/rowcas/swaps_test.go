package rowcas_test

import (
	"context"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/inmem"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/rowcas"
)

// broken fails what it is told to fail.
type broken struct {
	*inmem.Store
	reads, writes bool
	applied       int
}

func (b *broken) Read(ctx context.Context, q geoconfig.Query) (geoconfig.Rows, error) {
	if b.reads {
		return geoconfig.Rows{}, fault.E(fault.Unreachable, "swaps_test", "", "away")
	}
	return b.Store.Read(ctx, q)
}

func (b *broken) Apply(ctx context.Context, batch geoconfig.Batch) (ids.Revision, error) {
	b.applied++
	if b.writes {
		return 0, fault.E(fault.TimedOut, "swaps_test", "", "no answer")
	}
	return b.Store.Apply(ctx, batch)
}

func (b *broken) Settle(ctx context.Context, key string) (ids.Revision, bool, error) {
	if b.writes {
		return 0, false, fault.E(fault.Unreachable, "swaps_test", "", "away")
	}
	return b.Store.Settle(ctx, key)
}

func TestRun_VoidOnlyIfTheStoreNeverGotTheSwap(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	store := &broken{Store: inmem.New()}
	got := make(chan replica.Outcome, 1)
	r := &rowcas.Runner{Store: store, Self: "n", Boot: 1, Wall: func() time.Time { return time.Unix(1, 0) },
		Done: func(_ replica.Swap, o replica.Outcome, _ *geoconfig.SliceRow) { got <- o }}
	s := replica.Swap{Slice: 1, From: 1, After: geoconfig.SliceRow{ID: 1, Epoch: 2}, Attempt: 1, Why: "slice.takeover"}
	for _, step := range []struct {
		what          string
		reads, writes bool
		want          replica.Outcome
		applied       int
	}{
		{"never sent", true, true, replica.Void, 0},
		{"sent, no answer", false, true, replica.Unknown, 1},
		{"may have been sent", true, true, replica.Unknown, 2},
	} {
		store.reads, store.writes = step.reads, step.writes
		r.Run(ctx, s)
		r.Wait()
		if o := <-got; o != step.want || store.applied != step.applied {
			t.Errorf("%s: got outcome %v after %d calls, want %v after %d", step.what, o, store.applied, step.want, step.applied)
		}
	}
}

// noted keeps the batches that it is given.
type noted struct {
	geoconfig.Store
	batches []geoconfig.Batch
}

func (n *noted) Apply(_ context.Context, b geoconfig.Batch) (ids.Revision, error) {
	n.batches = append(n.batches, b)
	return 1, nil
}

func TestRun_AuditsWhatTheSwapIsFor(t *testing.T) {
	store := &noted{Store: inmem.New()}
	got := make(chan replica.Outcome, 1)
	r := &rowcas.Runner{Store: store, Self: "n", Boot: 1, Wall: func() time.Time { return time.Unix(1, 0) },
		Done: func(_ replica.Swap, o replica.Outcome, _ *geoconfig.SliceRow) { got <- o }}
	for _, why := range []string{"slice.takeover", "member.normal"} {
		r.Run(t.Context(), replica.Swap{Slice: 1, From: 1, After: geoconfig.SliceRow{ID: 1, Epoch: 2}, Attempt: 1, Why: why})
		r.Wait()
		<-got
		last := store.batches[len(store.batches)-1]
		if len(last.Audit) != 1 || last.Audit[0].Action != why || last.Audit[0].Subject != "slices/1" {
			t.Errorf("the audit record of %s is %+v", why, last.Audit)
		}
	}
}
