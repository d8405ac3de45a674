package server_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/geo/changes"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/budget"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// budgeted is a cluster of a node at each of two sites, which have a budget of so
// many bytes per second.
type budgeted struct {
	t    *testing.T
	ctx  context.Context
	c    *servertest.Cluster
	here *servertest.Node // at site a, with far at site b
	far  *servertest.Node
	cl   *servertest.Client
	rate float64
	// slack is how many bytes may leave at once, before and between the waits.
	slack float64
}

func newBudgeted(t *testing.T, perSecond int64, clientAt string) *budgeted {
	t.Helper()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a", "b"}})
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	b := &budgeted{t: t, ctx: ctx, c: c, here: c.Nodes[0], far: c.Nodes[1], cl: c.Connect("root"), rate: float64(perSecond), slack: 512 << 10}
	b.cl.Site = clientAt
	terms := geoconfig.Budget{Rate: 8 * perSecond, Shares: geoconfig.DefaultShares()}
	servertest.Await(ctx, t, "the budget", func() error {
		_, err := changes.SetBudget(ctx, c.Store, changes.Order{Who: "test", At: time.Now()}, "b", "a", terms, false)
		return err // the nodes raise the feature level first
	})
	servertest.Await(ctx, t, "the nodes to hear of it", func() error {
		if b.sent(b.here, "b").Rate == 0 || b.sent(b.far, "a").Rate == 0 {
			return fmt.Errorf("a node keeps to no rate")
		}
		return nil
	})
	return b
}

func (b *budgeted) sent(n *servertest.Node, to ids.Site) budget.Sent {
	return n.Server().Figures().Sent()[to]
}

// pieces are chunks that nobody has.
func pieces(n, size int) (out [][]byte) {
	random := rand.NewChaCha8([32]byte{byte(n)})
	for range n {
		p := make([]byte, size)
		_, _ = random.Read(p)
		out = append(out, p)
	}
	return out
}

// put sends a chunk to a node that passes it on to others.
func (b *budgeted) put(to *servertest.Node, body []byte, chain ...string) (*pb.PutResponse, error) {
	address := chunk.Sum(body)
	answer := &pb.PutResponse{}
	buffer, err := b.cl.Call(b.ctx, to.ID(), wire.Chunk, method.Put, &pb.PutRequest{Slice: 1, Addresses: address[:], Sizes: []uint32{uint32(len(body))},
		Chain: chain, Client: b.cl.ID}, [][]byte{body}, answer)
	buffer.Release()
	return answer, err
}

// within runs transfers of so many bytes at once beside operations, and checks that
// all came, no sooner than the budget allows, and that operations passed.
func (b *budgeted) within(bytes int, transfers []func() error) {
	b.t.Helper()
	var all sync.WaitGroup
	var done atomic.Int32
	began := time.Now()
	for _, f := range transfers {
		all.Go(func() {
			if err := f(); err != nil {
				b.t.Error(err)
			}
			done.Add(1)
		})
	}
	operations := 0
	for int(done.Load()) < len(transfers) && b.ctx.Err() == nil {
		create := &pb.Create{Dir: uint64(ids.RootObject), Name: fmt.Appendf(nil, "beside%d", operations), Mode: tree.TypeRegular | 0o600}
		if _, err := b.cl.Operate(b.ctx, ids.RootSlice, &pb.Operation{TimeNs: 1, Op: &pb.Operation_Create{Create: create}}, nil); err != nil {
			b.t.Error(err)
			break
		}
		operations++
	}
	all.Wait()
	took := time.Since(began)
	if allowed := b.rate*took.Seconds() + b.slack; float64(bytes) > allowed {
		b.t.Errorf("%d bytes went in %v, %.0f more than the budget allows", bytes, took, float64(bytes)-allowed)
	}
	if operations < 20 {
		b.t.Errorf("%d operations passed while the budget held content back for %v", operations, took)
	}
}

const budgetRate, budgetBytes, budgetPiece = 1_000_000, 3 << 20, 128 << 10

// count wants all content in one class.
func (b *budgeted) count(n *servertest.Node, to ids.Site, c budget.Class, bytes int) {
	b.t.Helper()
	for _, other := range budget.Classes() {
		want := 0
		if other == c {
			want = bytes
		}
		if got := b.sent(n, to).Counts[other]; got.Bytes != uint64(want) || want > 0 && got.Waited == 0 {
			b.t.Errorf("%v: %d bytes passed, and waited %v; want %d", other, got.Bytes, got.Waited, want)
		}
	}
}

func TestBudget_HoldsReplicationBackAndNoOperation(t *testing.T) {
	t.Parallel()
	b := newBudgeted(t, budgetRate, "a")
	var transfers []func() error
	for _, p := range pieces(budgetBytes/budgetPiece, budgetPiece) {
		transfers = append(transfers, func() error {
			answer, err := b.put(b.here, p, string(b.far.ID()))
			if err == nil && len(answer.Stored) != 2 {
				err = fmt.Errorf("stored at %v alone", answer.Stored)
			}
			return err
		})
	}
	b.within(budgetBytes, transfers)
	b.count(b.here, "b", budget.Replication, budgetBytes)
}

func TestBudget_HoldsReadsOfAnotherSiteBack(t *testing.T) {
	t.Parallel()
	b := newBudgeted(t, budgetRate, "b")
	var transfers []func() error
	local := b.c.Connect("root")
	local.Site = "a"
	for _, p := range pieces(budgetBytes/budgetPiece, budgetPiece) {
		far := b.cl
		b.cl = local // stores at its own site, at once
		if _, err := b.put(b.here, p); err != nil {
			t.Fatal(err)
		}
		b.cl = far
		address := chunk.Sum(p)
		transfers = append(transfers, func() error {
			buffer, err := b.cl.Call(b.ctx, b.here.ID(), wire.Chunk, method.Get, &pb.GetRequest{Slice: 1, Addresses: address[:]}, nil, &pb.GetResponse{})
			defer buffer.Release()
			if err == nil && chunk.Verify(address, buffer.Bytes()) != nil {
				err = fmt.Errorf("other bytes came")
			}
			return err
		})
	}
	b.within(budgetBytes, transfers)
	b.count(b.here, "b", budget.Foreground, budgetBytes)
}

func TestBudget_HoldsUploadsFromAnotherSiteBack(t *testing.T) {
	t.Parallel()
	b := newBudgeted(t, budgetRate, "b")
	var transfers []func() error
	for _, p := range pieces(budgetBytes/budgetPiece, budgetPiece) {
		transfers = append(transfers, func() error {
			_, err := b.put(b.here, p)
			return err
		})
	}
	b.within(budgetBytes, transfers)
}

// TestBudget_EndsWithTheNode stops a node that holds content back.
func TestBudget_EndsWithTheNode(t *testing.T) {
	t.Parallel()
	b := newBudgeted(t, geoconfig.LeastRate/8, "b")
	done := make(chan error, 64)
	for _, p := range pieces(64, budgetPiece) {
		go func() {
			_, err := b.put(b.here, p)
			done <- err
		}()
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	b.here.Stop()
	failed := 0
	for range 63 {
		if err := <-done; err != nil {
			failed++
		}
	}
	if failed < 30 {
		t.Errorf("%d of 63 requests failed when the node ended", failed)
	}
}

// TestBudget_ZeroIsRefused asks for what would stop a site.
func TestBudget_ZeroIsRefused(t *testing.T) {
	t.Parallel()
	b := newBudgeted(t, budgetRate, "a")
	_, err := changes.SetBudget(b.ctx, b.c.Store, changes.Order{Who: "test", At: time.Now()}, "a", "b", geoconfig.Budget{Shares: geoconfig.DefaultShares()}, false)
	if !fault.Is(err, fault.Invalid) || b.sent(b.here, "b").Rate == 0 {
		t.Errorf("got %v, and a rate of %v", err, b.sent(b.here, "b").Rate)
	}
}

// TestBudget_CountsWhatANodeBringsForItsSite has a node share a chunk with clients
// that only the node of the other site stores.
func TestBudget_CountsWhatANodeBringsForItsSite(t *testing.T) {
	t.Parallel()
	b := newBudgeted(t, budgetRate, "a")
	body := pieces(1, budgetPiece)[0]
	if _, err := b.put(b.here, body); err != nil {
		t.Fatal(err)
	}
	address := chunk.Sum(body)
	b.cl = b.c.Connect("root")
	b.cl.Site = "b"
	for range 3 {
		buffer, err := b.cl.Call(b.ctx, b.far.ID(), wire.Chunk, method.Get, &pb.GetRequest{Slice: 1, Addresses: address[:],
			Parts: []*pb.GetRequest_Part{{Length: budgetPiece}}, Sharing: pb.Sharing_SITE}, nil, &pb.GetResponse{})
		if err != nil || chunk.Verify(address, buffer.Bytes()) != nil {
			t.Fatalf("%d bytes, %v", len(buffer.Bytes()), err)
		}
		buffer.Release()
	}
	if got := b.sent(b.here, "b").Counts[budget.Foreground].Bytes; got != budgetPiece {
		t.Errorf("%d bytes of the foreground went to the other site, want %d once", got, budgetPiece)
	}
}

// TestBudget_GoesToTheNodeThatNeedsIt has one node of two send.
func TestBudget_GoesToTheNodeThatNeedsIt(t *testing.T) {
	t.Parallel()
	b := newBudgeted(t, budgetRate, "b")
	ctx, stop := context.WithCancel(b.ctx)
	var all sync.WaitGroup
	for i, p := range pieces(32, budgetPiece) {
		all.Go(func() {
			for ctx.Err() == nil {
				if _, err := b.put(b.far, p, string(b.here.ID())); err != nil && ctx.Err() == nil {
					t.Errorf("%d: %v", i, err)
					return
				}
			}
		})
	}
	soon, cancel := context.WithTimeout(b.ctx, 30*time.Second) // half of the time after which a silent node is gone
	defer cancel()
	servertest.Await(soon, t, "the other node to leave its part", func() error {
		if got := b.sent(b.far, "a").Rate; got < 0.8*b.rate {
			return fmt.Errorf("the node keeps to %.0f bytes per second of %.0f", got, b.rate)
		}
		return nil
	})
	stop()
	all.Wait()
}

// TestBudget_CountsStateAsRepair has a node join that gets a copy of a slice without
// any content.
func TestBudget_CountsStateAsRepair(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Configure: func(_ int, c *server.Config) { c.MissedBytes = 4096 }})
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cl := c.Connect("root")
	for i := range 100 {
		create := &pb.Create{Dir: uint64(ids.RootObject), Name: fmt.Appendf(nil, "f%d", i), Mode: tree.TypeRegular | 0o600}
		if _, err := cl.Operate(ctx, ids.RootSlice, &pb.Operation{TimeNs: 1, Op: &pb.Operation_Create{Create: create}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := changes.AddSite(ctx, c.Store, changes.Order{Who: "test", At: time.Now()}, geoconfig.Site{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	servertest.Await(ctx, t, "the node to know the site", func() error {
		if _, known := c.Nodes[0].Server().Figures().Sent()["b"]; !known {
			return fmt.Errorf("it does not")
		}
		return nil
	})
	c.Join("b")
	servertest.Await(ctx, t, "the new node to have a copy", func() error {
		row, err := c.Row(ctx, ids.RootSlice)
		if err == nil && len(row.Normals()) != 2 {
			err = fmt.Errorf("the members are %v", row.Members)
		}
		return err
	})
	sent := c.Nodes[0].Server().Figures().Sent()["b"]
	if sent.Counts[budget.Repair].Bytes == 0 || sent.Counts[budget.Rebalancing].Bytes != 0 {
		t.Errorf("got %+v", sent.Counts)
	}
}
