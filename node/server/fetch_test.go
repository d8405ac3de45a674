package server_test

import (
	"context"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/server/servertest"
)

// TestFetch_EndsWithItsEntry asks for chunks that no node has, for an entry that
// is not in the log, as after a new active cut it off.
func TestFetch_EndsWithItsEntry(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Log: testing.Verbose()})
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	row, err := c.Row(ctx, ids.RootSlice)
	if err != nil {
		t.Fatal(err)
	}
	nowhere := []chunk.Address{chunk.Sum([]byte("nobody has this"))}
	err = c.Active(ids.RootSlice).Server().FetchEntry(ctx, ids.RootSlice, 1<<20, row.Epoch, nowhere)
	if !fault.Is(err, fault.Canceled) || ctx.Err() != nil {
		t.Errorf("got %v, want the fetch to end because the entry is gone", err)
	}
}
