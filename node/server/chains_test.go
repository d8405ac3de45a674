package server_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// fewWorkers gives nodes so few that a handful of requests that wait take all.
func fewWorkers(_ int, c *server.Config) { c.Workers = 4 }

func TestChain_CircularOnesDoNotBlock(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a", "b"}, Configure: fewWorkers})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	// Each way takes so long that all requests are at their first node before
	// the first is at its second.
	const way = 300 * time.Millisecond
	for _, n := range c.Nodes {
		n.Server().Host().SetFilter(func(peer string, _ wire.Class, m wire.Method) (v wire.Verdict) {
			if m == method.Put && (peer == string(c.Nodes[0].ID()) || peer == string(c.Nodes[1].ID())) {
				v.Delay = way
			}
			return v
		})
	}
	cl := c.Connect("root")
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			first, second := c.Nodes[i%2].ID(), c.Nodes[1-i%2].ID()
			body := fmt.Appendf(nil, "chunk %d", i)
			address := chunk.Sum(body)
			answer := &pb.PutResponse{}
			_, err := cl.Call(ctx, first, wire.Chunk, method.Put, &pb.PutRequest{Slice: 1, Addresses: address[:], Sizes: []uint32{uint32(len(body))},
				Chain: []string{string(second)}, Client: cl.ID}, [][]byte{body}, answer)
			if err != nil || len(answer.Stored) != 2 {
				t.Errorf("chunk %d: %v, %v; want it at both nodes", i, answer, err)
			}
		})
	}
	all.Wait()
}
