package gather_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/api/gather"
)

// crowd is nodes of which one may not answer until its question ends.
type crowd struct {
	ahead  atomic.Int64
	asked  atomic.Int64
	silent atomic.Bool
}

func (c *crowd) wall() time.Time { return time.Unix(1000, 0).Add(time.Duration(c.ahead.Load())) }

func (c *crowd) ask(ctx context.Context, id ids.Node) (int, error) {
	n := c.asked.Add(1)
	if id == "mute" && c.silent.Load() {
		<-ctx.Done()
		return 0, fault.E(fault.Unreachable, "gather_test.ask", string(id), "no answer")
	}
	return int(n), nil
}

var roster = []ids.Node{"a", "mute"}

func TestNodes_AnswerFromWhatIsKnown(t *testing.T) {
	c := &crowd{}
	g := gather.New(c.wall, c.ask)
	defer g.Close()
	if said := g.All(t.Context(), roster); len(said) != 2 || said["mute"].Err != nil {
		t.Fatalf("got %+v", said)
	}
	g.All(t.Context(), roster)
	if n := c.asked.Load(); n != 2 {
		t.Errorf("asked %d times within a second, want 2", n)
	}
	c.silent.Store(true)
	c.ahead.Store(int64(time.Minute))
	// The question to the silent node is still under way when this answers.
	said := g.All(t.Context(), roster)
	if r := said["mute"]; r.Err != nil || !r.At.Equal(time.Unix(1000, 0)) {
		t.Errorf("got %+v, want its last word with its age", r)
	}
	if r := said["a"]; !r.At.Equal(c.wall()) {
		t.Errorf("got %+v, want a new word", r)
	}
	for g.Known(roster)["mute"].Err == nil {
		time.Sleep(time.Millisecond) // until the question's own limit
	}
	if r := g.All(t.Context(), roster)["mute"]; r.Err == nil || !r.At.Equal(time.Unix(1000, 0)) {
		t.Errorf("got %+v, want the failure beside the last word", r)
	}
}

func TestNodes_AskOncePerNode(t *testing.T) {
	c := &crowd{}
	c.silent.Store(true)
	g := gather.New(c.wall, c.ask)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 5 {
		if _, ok := g.One(ctx, "mute"); ok {
			t.Error("a node that never answered has said something")
		}
	}
	g.Close()
	if n := c.asked.Load(); n > 1 {
		t.Errorf("%d questions to one silent node at once, want 1", n)
	}
	if r := g.Known(roster)["mute"]; r.Err == nil {
		t.Error("the question that Close ended has no failure")
	}
	g.All(t.Context(), roster)
	if n := c.asked.Load(); n > 1 {
		t.Error("a closed Nodes asks on")
	}
}

func TestNodes_ForgetWhoLeftTheRoster(t *testing.T) {
	c := &crowd{}
	g := gather.New(c.wall, c.ask)
	defer g.Close()
	g.All(t.Context(), roster)
	if r, ok := g.One(t.Context(), "a"); !ok || r.Err != nil {
		t.Errorf("got %+v", r)
	}
	if len(g.Known(roster)) != 2 {
		t.Error("asking for one node forgot another")
	}
	g.All(t.Context(), roster[:1])
	if len(g.Known(roster)) != 1 {
		t.Error("a node that left is remembered")
	}
}
