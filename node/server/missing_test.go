package server_test

import (
	"context"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// TestMissing_OnlyTheActiveSaysSo asks all members for unknown content. A member
// that does not act for a slice may have committed it in its journal alone, so
// that only the active's answer counts.
func TestMissing_OnlyTheActiveSaysSo(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cl := c.Connect("root")
	active := c.Active(ids.RootSlice)
	unknown := chunk.Sum([]byte("never written"))
	for _, n := range c.Nodes {
		var ranged pb.RangeResponse
		_, err := cl.Call(ctx, n.ID(), wire.Operation, method.Range, &pb.RangeRequest{Slice: uint32(ids.RootSlice), Root: unknown[:], Length: 1, Data: true}, nil, &ranged)
		var got pb.GetResponse
		if _, err := cl.Call(ctx, n.ID(), wire.Chunk, method.Get, &pb.GetRequest{Slice: uint32(ids.RootSlice), Addresses: unknown[:],
			Parts: []*pb.GetRequest_Part{{Length: 1}}}, nil, &got); err != nil && !fault.Is(err, fault.Missing) {
			t.Fatal(err)
		}
		if n == active {
			if !fault.Is(err, fault.Missing) || got.Refusal != nil {
				t.Errorf("the active answered %v and %v, want that it is missing", err, got.Refusal)
			}
			continue
		}
		for what, refusal := range map[string]*pb.Refusal{"range": ranged.Refusal, "get": got.Refusal} {
			if err != nil || refusal == nil || fault.Kind(refusal.Kind) != fault.NotActive {
				t.Errorf("%s: a standby answered %v, %v, want that it is not active", what, refusal, err)
			}
		}
	}
}
