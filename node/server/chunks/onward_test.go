package chunks_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/chunks"
	"cartwheel.dev/node/wire"
)

// line is the way from one server to others. It carries one request after the other,
// at rate bytes a second, and each arrives after the delay. It implements chunks.Caller.
type line struct {
	to    map[string]*taker
	rate  int
	delay time.Duration
	lose  func(*pb.PutRequest) bool // nil: nothing is lost

	busy  chan struct{} // holds the request that is on the line
	calls int           // belongs to that, as bytes does
	bytes int
}

// Call implements chunks.Caller.
func (l *line) Call(ctx context.Context, peer string, _ wire.Class, _ wire.Method, request proto.Message, body [][]byte, answer proto.Message) (*wire.Buffer, error) {
	all := bytes.Join(body, nil)
	l.busy <- struct{}{}
	l.calls++
	l.bytes += len(all)
	if l.rate > 0 {
		<-time.After(time.Duration(len(all)) * time.Second / time.Duration(l.rate))
	}
	<-l.busy
	<-time.After(l.delay)
	req := request.(*pb.PutRequest)
	if l.lose != nil && l.lose(req) {
		return nil, fault.E(fault.Unreachable, "chunks.test", peer, "")
	}
	got, err := l.to[peer].Put(ctx, "", "", req, all)
	if err == nil {
		proto.Merge(answer, got)
	}
	<-time.After(l.delay)
	return nil, err
}

func newLine(to string, x *taker) *line {
	return &line{to: map[string]*taker{to: x}, busy: make(chan struct{}, 1)}
}

// chain is three servers, each at a site of its own: here, next and last.
type chain struct {
	here, next, last *taker
	first, second    *line
}

func newChain(t *testing.T) *chain {
	t.Helper()
	c := &chain{here: newTaker(t), next: newTaker(t), last: newTaker(t)}
	c.next.Self, c.last.Self = "next", "last"
	c.first, c.second = newLine("next", c.next), newLine("last", c.last)
	for _, x := range []*taker{c.here, c.next, c.last} {
		x.Far = func(string) bool { return true }
	}
	c.here.Caller, c.next.Caller = c.first, c.second
	return c
}

// put has random chunks of 64 KiB stored along the chain.
func (c *chain) put(t *testing.T, rng *rand.ChaCha8, n int) *pb.PutResponse {
	t.Helper()
	req := &pb.PutRequest{Chain: []string{"next", "last"}}
	body := make([]byte, n<<16)
	_, _ = rng.Read(body) // it never fails
	for part := range slices.Chunk(body, 1<<16) {
		a := chunk.Sum(part)
		req.Addresses, req.Sizes = append(req.Addresses, a[:]...), append(req.Sizes, 1<<16)
	}
	answer, err := c.here.Put(context.Background(), "", "", req, body)
	if err != nil {
		t.Error(err)
	}
	return answer
}

// TestPut_KeepsAllLinesOfAChainBusy sends 8 MiB in four requests along two lines of
// 6 Mbit/s. One line alone needs 11.2 s.
func TestPut_KeepsAllLinesOfAChainBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChain(t)
		c.first.rate, c.second.rate = 750_000, 750_000
		c.first.delay, c.second.delay = 50*time.Millisecond, 50*time.Millisecond
		began := time.Now()
		var all sync.WaitGroup
		for i := range 4 {
			rng := rand.NewChaCha8([32]byte{byte(i)})
			all.Go(func() {
				if got := c.put(t, rng, 32).Stored; !slices.Equal(got, []string{"here", "next", "last"}) {
					t.Errorf("stored at %v", got)
				}
			})
		}
		all.Wait()
		took := time.Since(began)
		if took > 11_200*time.Millisecond+500*time.Millisecond || c.first.bytes != 8<<20 || c.second.bytes != 8<<20 {
			t.Errorf("it took %v; the lines carried %d and %d bytes", took, c.first.bytes, c.second.bytes)
		}
	})
}

// TestPut_CountsANodeThatStoredAllPieces loses one piece on the second line.
func TestPut_CountsANodeThatStoredAllPieces(t *testing.T) {
	c := newChain(t)
	rng := rand.NewChaCha8([32]byte{9})
	answer := c.put(t, rng, 8)
	if spent := answer.Spent; !slices.Equal(answer.Stored, []string{"here", "next", "last"}) || spent.Wan != 2 || spent.Bytes != 2*8<<16 {
		t.Errorf("stored at %v, spent %v", answer.Stored, spent)
	}
	var lost sync.Once
	c.second.lose = func(*pb.PutRequest) (yes bool) {
		lost.Do(func() { yes = true })
		return yes
	}
	if got := c.put(t, rng, 8).Stored; !slices.Equal(got, []string{"here", "next"}) {
		t.Errorf("stored at %v, though a piece was lost", got)
	}
}

// TestPut_SendsNoPiecesWithinASite takes the next nodes for neighbours, and then
// lets so many pieces wait that there are to be no more.
func TestPut_SendsNoPiecesWithinASite(t *testing.T) {
	c := newChain(t)
	rng := rand.NewChaCha8([32]byte{10})
	c.here.Far = func(string) bool { return false }
	if c.put(t, rng, 8); c.first.calls != 1 || c.second.calls != 4 {
		t.Errorf("%d and %d requests for 512 KiB, want 1 and 4", c.first.calls, c.second.calls)
	}
	synctest.Test(t, func(t *testing.T) {
		c := newChain(t)
		c.first.rate = 1 << 20
		var all sync.WaitGroup
		for i := range 6 { // of 64 pieces each
			rng := rand.NewChaCha8([32]byte{byte(i)})
			all.Go(func() { c.put(t, rng, 128) })
		}
		if all.Wait(); c.first.calls != 4*64+2 {
			t.Errorf("%d requests, want 4 in pieces and 2 whole", c.first.calls)
		}
		if c.put(t, rng, 128); c.first.calls != 5*64+2 {
			t.Errorf("%d requests: pieces that arrived still count", c.first.calls)
		}
	})
}

var _ chunks.Caller = (*line)(nil)
