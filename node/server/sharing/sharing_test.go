package sharing

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
)

func TestBring_AsksOnceWhoeverAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, body := newWorld(), chunkOfSize(1, 64<<10)
		c := w.cache(t, "c1", 1<<20)
		asked := 0
		slow := func(ctx context.Context, req *pb.GetRequest) (*pb.GetResponse, []byte, error) {
			asked++
			time.Sleep(time.Second)
			return always(body)(ctx, req)
		}
		w.nodes["m1"], w.nodes["m2"] = slow, slow
		first, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() {
			_, err := c.Bring(first, theSlice, []chunk.Address{chunk.Sum(body)})
			gone <- err
		}()
		synctest.Wait()
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() { brings(t, c, body) })
		}
		synctest.Wait()
		cancel()
		if err := <-gone; !fault.Is(err, fault.Missing) && !fault.Is(err, fault.Canceled) {
			t.Errorf("the first asker, who gave up: %v", err)
		}
		all.Wait()
		brings(t, c, body)
		if asked != 1 {
			t.Errorf("members were asked %d times, want once", asked)
		}
		if n := c.Counts(); n.FetchedBytes != uint64(len(body)) || n.Hits != 1 || n.Misses != 6 {
			t.Errorf("counts: %+v", n)
		}
	})
}

// TestBring_SitesGetFromEachOther has three sites ask one member for a chunk: it sends
// it once.
func TestBring_SitesGetFromEachOther(t *testing.T) {
	w, body := newWorld(), chunkOfSize(1, 64<<10)
	c1, c2, c3 := w.cache(t, "c1", 1<<20), w.cache(t, "c2", 1<<20), w.cache(t, "c3", 1<<20)
	w.far["m1"], w.far["m2"] = 10*time.Millisecond, time.Second
	given := NewGiven(w.clock)
	for _, x := range []struct {
		cache *Cache
		self  ids.Node
	}{{c1, "c1"}, {c2, "c2"}, {c3, "c3"}} {
		w.nodes["m1"] = func(_ context.Context, req *pb.GetRequest) (*pb.GetResponse, []byte, error) {
			if holders := given.Give(chunk.Address(req.Addresses), x.self, req.Avoid); len(holders) > 0 {
				return sentTo(holders...), nil, nil
			}
			return &pb.GetResponse{Sizes: []uint32{uint32(len(body))}}, body, nil
		}
		brings(t, x.cache, body)
	}
	want := []string{"m1 SOURCE", "m1 SOURCE", "c1 HELD", "m1 SOURCE", "c1 HELD"}
	if got := w.calls(); !slices.Equal(got, want) {
		t.Errorf("asked %v, want %v", got, want)
	}
}

func TestBring_LeavesBadSources(t *testing.T) {
	body := chunkOfSize(1, 64<<10)
	for _, x := range []struct {
		name string
		bad  answer
		shun bool
	}{
		{"wrong bytes", always(chunkOfSize(2, 64<<10)), true},
		{"fewer bytes", always(body[:1000]), true},
		{"more bytes", always(append(bytes.Clone(body), 1)), true},
		{"more than a chunk may have", always(make([]byte, 4<<20)), true},
		{"nothing", always(nil), false},
		{"other nodes that have it", redirects(nil, "c3"), false},
		{"no connection", nil, true},
		{"no answer", func(ctx context.Context, _ *pb.GetRequest) (*pb.GetResponse, []byte, error) {
			<-ctx.Done()
			return nil, nil, fault.E(fault.Canceled, "", "", "")
		}, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				c := w.cache(t, "c1", 1<<20)
				w.far["m1"], w.far["m2"] = 10*time.Millisecond, time.Second
				w.nodes["m1"], w.nodes["c2"] = redirects(body, "c2"), x.bad
				brings(t, c, body)
				if got := c.isShunned("c2"); got != x.shun {
					t.Errorf("the source is left out: %v, want %v", got, x.shun)
				}
				w.pass(shunFor)
				if c.isShunned("c2") {
					t.Error("it is left out for ever")
				}
			})
		})
	}
}

// TestBring_LeavesABadMember has the nearest member send other bytes.
func TestBring_LeavesABadMember(t *testing.T) {
	w, body, next := newWorld(), chunkOfSize(1, 64<<10), chunkOfSize(3, 64<<10)
	c := w.cache(t, "c1", 1<<20)
	w.far["m1"], w.far["m2"] = 10*time.Millisecond, time.Second
	w.nodes["m1"] = always(chunkOfSize(2, 64<<10))
	w.member("m2", body, next)
	brings(t, c, body)
	brings(t, c, next)
	if got := strings.Join(w.calls(), ", "); got != "m1 SOURCE, m2 SOURCE, m2 SOURCE" {
		t.Errorf("asked %s; the second chunk is to be asked of the good member alone", got)
	}
}

func TestBring_FailsWhereNobodyHasTheChunk(t *testing.T) {
	w := newWorld()
	c := w.cache(t, "c1", 1<<20)
	w.member("m1")
	w.member("m2")
	a := chunk.Sum(chunkOfSize(1, 16))
	if _, err := c.Bring(t.Context(), theSlice, []chunk.Address{a}); !fault.Is(err, fault.Missing) {
		t.Errorf("got %v, want missing", err)
	}
	if _, err := c.Bring(t.Context(), theSlice+1, []chunk.Address{a}); !fault.Is(err, fault.Missing) {
		t.Errorf("of a slice that nobody knows: %v, want missing", err)
	}
	if _, err := w.cache(t, "c2", 0).Bring(t.Context(), theSlice, []chunk.Address{a}); !fault.Is(err, fault.NotSupported) {
		t.Errorf("at a node that keeps nothing: %v", err)
	}
	if len(c.flights) != 0 {
		t.Errorf("%d flights are left", len(c.flights))
	}
}

// TestHeld_AsksNobody asks a node for what it is getting itself: from a member it is
// waited for, from another node it is not, so that no two wait for each other.
func TestHeld_AsksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, body := newWorld(), chunkOfSize(1, 64<<10)
		c := w.cache(t, "c1", 1<<20)
		a := chunk.Sum(body)
		if c.Held(t.Context(), a) != nil || len(w.calls()) != 0 {
			t.Fatalf("a node asks others for what it does not have: %v", w.calls())
		}
		w.far["m1"], w.far["m2"] = 10*time.Millisecond, time.Second
		w.nodes["m1"] = redirects(body, "c2")
		w.nodes["c2"] = func(ctx context.Context, _ *pb.GetRequest) (*pb.GetResponse, []byte, error) {
			if data := c.Held(ctx, a); data != nil || ctx.Err() != nil {
				t.Errorf("it answered with %d bytes, %v, while it asked us", len(data), ctx.Err())
			}
			return &pb.GetResponse{Missing: []byte{1}}, nil, nil
		}
		brings(t, c, body)
		if got := c.Held(t.Context(), a); !bytes.Equal(got, body) {
			t.Errorf("%d bytes of what is kept", len(got))
		}
	})
}

func TestHeld_WaitsForAMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, body := newWorld(), chunkOfSize(1, 64<<10)
		c := w.cache(t, "c1", 1<<20)
		slow := func(ctx context.Context, req *pb.GetRequest) (*pb.GetResponse, []byte, error) {
			time.Sleep(time.Second)
			return always(body)(ctx, req)
		}
		w.nodes["m1"], w.nodes["m2"] = slow, slow
		go func() { _, _ = c.Bring(t.Context(), theSlice, []chunk.Address{chunk.Sum(body)}) }() // Held says what came
		synctest.Wait()
		if got := c.Held(t.Context(), chunk.Sum(body)); !bytes.Equal(got, body) {
			t.Errorf("%d bytes came of what is on its way", len(got))
		}
	})
}

// TestFlights_AreBounded asks for more chunks than a node asks for at once, of members
// that do not answer.
func TestFlights_AreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		c := w.cache(t, "c1", 1<<20)
		never := func(ctx context.Context, _ *pb.GetRequest) (*pb.GetResponse, []byte, error) {
			<-ctx.Done()
			return nil, nil, fault.E(fault.Canceled, "", "", "")
		}
		w.nodes["m1"], w.nodes["m2"] = never, never
		ctx, cancel := context.WithCancel(t.Context())
		for i := range mostFlights {
			go func() {
				if _, err := c.Bring(ctx, theSlice, []chunk.Address{chunk.Sum(chunkOfSize(i, 16))}); err == nil {
					t.Error("a chunk came")
				}
			}()
		}
		synctest.Wait()
		if n := len(w.calls()); n != flightsAtOnce {
			t.Errorf("%d chunks are asked for at once, want %d", n, flightsAtOnce)
		}
		_, err := c.Bring(t.Context(), theSlice, []chunk.Address{chunk.Sum([]byte("one more"))})
		if !fault.Is(err, fault.Overloaded) {
			t.Errorf("one more than may wait: %v", err)
		}
		cancel()
		time.Sleep(flightMost + sourceMost)
		synctest.Wait()
		if len(c.flights) != 0 {
			t.Errorf("%d flights never end", len(c.flights))
		}
	})
}

// TestMembers_TakeTurns looks at which member is asked first. Of members that are
// equally near, sites ask different ones for a chunk; of others, the nearest.
func TestMembers_TakeTurns(t *testing.T) {
	w := newWorld()
	w.far["m1"], w.far["m2"] = 100*time.Millisecond, 104*time.Millisecond
	c1, c2 := w.cache(t, "c1", 1<<20), w.cache(t, "c2", 1<<20)
	first := map[ids.Node]int{}
	for i := range 100 {
		a := chunk.Sum(chunkOfSize(i, 16))
		one, two := c1.members(theSlice, a), c2.members(theSlice, a)
		if len(one) != 2 || one[0] == two[0] {
			t.Fatalf("chunk %d is asked of %v by one site and of %v by the next", i, one, two)
		}
		first[one[0]]++
	}
	if first["m1"] < 20 || first["m2"] < 20 {
		t.Errorf("one site asks %v first", first)
	}
	w.far["m2"] = 200 * time.Millisecond
	if got := c1.members(theSlice, chunk.Sum(nil)); got[0] != "m1" {
		t.Errorf("%v: the nearest is to come first", got)
	}
	c1.shun("m1")
	if got := c1.members(theSlice, chunk.Sum(nil)); got[0] != "m2" || len(got) != 2 {
		t.Errorf("%v: one that is of no use is to come last", got)
	}
}
