package budget

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// world is a configuration and the keepers of some nodes, which hear each other.
type world struct {
	t       *testing.T
	began   time.Time
	all     sync.WaitGroup // what the test runs
	end     context.CancelFunc
	ctx     context.Context
	keepers map[ids.Node]*Keeper
	piece   int    // bytes of a call of flood
	after   func() // runs once the keepers have ended; may be nil

	mu    sync.Mutex // guards below
	sites []geoconfig.Site
	cut   bool // reports are lost
	signs map[string]int
	sent  map[ids.Node]uint64 // what operations of a node took
}

// nodes stand at the site that their names begin with. So does a client.
var nodes = []ids.Node{"a1", "a2", "a3", "b1"}

func siteOf(peer string) ids.Site { return ids.Site(peer[:1]) }

// simulate runs a test in virtual time, with the keepers of these nodes.
func simulate(t *testing.T, run []ids.Node, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, began: time.Now(), signs: map[string]int{}, sent: map[ids.Node]uint64{},
			sites: []geoconfig.Site{{Name: "a"}, {Name: "b"}}, keepers: map[ids.Node]*Keeper{}, piece: 64 << 10}
		w.ctx, w.end = context.WithCancel(t.Context())
		var running sync.WaitGroup
		ctx, stop := context.WithCancel(context.Background())
		for _, n := range run {
			w.keepers[n] = New(Options{Self: n, Site: siteOf(string(n)), Roster: w, Host: &host{w, n}, SiteOf: siteOf,
				SignLife: w.sign,
				Clock:    func() time.Duration { return time.Since(w.began) }, Wall: time.Now, Logger: slog.New(slog.DiscardHandler)})
		}
		for _, k := range w.keepers {
			running.Go(func() { k.Run(ctx) })
		}
		synctest.Wait()
		f(w)
		w.end()
		w.all.Wait()
		stop()
		running.Wait()
		if w.after != nil {
			w.after()
		}
	})
}

// Sites implements Roster.
func (w *world) Sites() []geoconfig.Site {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sites
}

// Nodes implements Roster.
func (w *world) Nodes() (out []geoconfig.Node) {
	for _, n := range nodes {
		out = append(out, geoconfig.Node{ID: n, Site: siteOf(string(n))})
	}
	return out
}

// set gives the two sites a budget; nil: none. The keepers see it within a second.
func (w *world) set(b *geoconfig.Budget) {
	w.mu.Lock()
	w.sites = []geoconfig.Site{{Name: "a"}, {Name: "b"}}
	if b != nil {
		b.Other, b.Shares = "b", geoconfig.DefaultShares()
		w.sites[0].Budgets = []geoconfig.Budget{*b}
	}
	w.mu.Unlock()
	<-time.After(divideEvery)
	synctest.Wait()
}

// atRate is a budget of bytes per second.
func atRate(perSecond int64) *geoconfig.Budget { return &geoconfig.Budget{Rate: 8 * perSecond} }

// host is what a keeper sends with.
type host struct {
	w    *world
	self ids.Node
}

// Send implements Host: the report comes 5 ms later.
func (h *host) Send(peer string, class wire.Class, m wire.Method, payload ...[]byte) error {
	to := h.w.keepers[ids.Node(peer)]
	h.w.mu.Lock()
	cut := h.w.cut
	h.w.mu.Unlock()
	if to == nil || cut || class != wire.Beacon || m != method.Budget {
		return nil
	}
	var r pb.BudgetReport
	if err := proto.Unmarshal(payload[0], &r); err != nil {
		return err
	}
	time.AfterFunc(5*time.Millisecond, func() { to.Hear(h.self, &r) })
	return nil
}

// Status implements Host.
func (h *host) Status() []wire.Status {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	return []wire.Status{{Peer: "b1", Class: wire.Operation, Sent: h.w.sent[h.self]}, {Peer: "a1", Class: wire.Operation, Sent: 1 << 40 * h.w.sent[h.self]},
		{Peer: "b1", Class: wire.Chunk, Sent: 9 * h.w.sent[h.self]}}
}

// sign counts a sign of life.
func (w *world) sign(peer string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.signs[peer]++
	return 2048
}

// told is how many signs of life a peer got.
func (w *world) told(peer string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.signs[peer]
}

// flood has a node send to a peer as much as it may.
func (w *world) flood(from ids.Node, to string, c Class) {
	for range 4 {
		w.all.Go(func() {
			for w.keepers[from].Answer(w.ctx, to, c, w.piece) == nil {
			}
		})
	}
}

// during returns how many bytes per second the nodes sent to site b meanwhile, by
// node, and in all.
func (w *world) during(d time.Duration) (all float64, by map[ids.Node]float64) {
	by = map[ids.Node]float64{}
	count := func(sign float64) {
		for n, k := range w.keepers {
			for _, c := range k.Passed()["b"].Counts {
				by[n] += sign * float64(onTheLine(int64(c.Bytes))) / d.Seconds()
				all += sign * float64(onTheLine(int64(c.Bytes))) / d.Seconds()
			}
		}
	}
	count(-1)
	<-time.After(d)
	count(1)
	return all, by
}

func TestKeeper_KeepsASiteWithinItsBudget(t *testing.T) {
	simulate(t, nodes, func(w *world) {
		w.set(atRate(3_000_000))
		for _, n := range []ids.Node{"a1", "a2", "a3"} {
			w.flood(n, "b1", Foreground)
		}
		if got, _ := w.during(2 * time.Second); got > 1.1*3_000_000 {
			w.t.Errorf("the site sent %.0f bytes per second at first", got)
		}
		<-time.After(5 * time.Second)
		got, by := w.during(60 * time.Second)
		if got > 1.01*3_000_000 || got < 0.95*3_000_000 {
			w.t.Errorf("the site sent %.0f bytes per second of 3000000", got)
		}
		for n, part := range by {
			if n != "b1" && !within(part, 1_000_000, 0.1) {
				w.t.Errorf("%s sent %.0f, want a third", n, part)
			}
		}
	})
}

func TestKeeper_GivesOneNodeWhatTheOthersDoNotNeed(t *testing.T) {
	simulate(t, nodes, func(w *world) {
		w.set(atRate(3_000_000))
		w.flood("a2", "b1", Repair)
		<-time.After(5 * time.Second)
		if got, _ := w.during(60 * time.Second); got > 3_000_000*1.01 || got < 0.9*3_000_000 {
			w.t.Errorf("one node alone sent %.0f bytes per second of 3000000", got)
		}
		w.flood("a1", "b1", Foreground)
		<-time.After(5 * time.Second)
		if got, by := w.during(60 * time.Second); got > 3_000_000*1.01 || by["a1"] < 0.85*3_000_000 || by["a2"] < 0.05*3_000_000 {
			w.t.Errorf("with a foreground beside it: %v", by)
		}
	})
}

func TestKeeper_TakesAnEqualPartWhereReportsAreLost(t *testing.T) {
	simulate(t, nodes, func(w *world) {
		w.set(atRate(4_000_000))
		w.mu.Lock()
		w.cut = true
		w.mu.Unlock()
		for _, n := range []ids.Node{"a1", "a2", "a3"} {
			w.flood(n, "b1", Foreground)
		}
		<-time.After(5 * time.Second)
		if got, by := w.during(30 * time.Second); got > 3_000_000*1.02 {
			w.t.Errorf("three of four nodes sent %v", by)
		}
	})
}

func TestKeeper_FollowsTheBudget(t *testing.T) {
	simulate(t, []ids.Node{"a1"}, func(w *world) {
		if err := w.keepers["a1"].Answer(w.t.Context(), "b1", Repair, 1<<30); err != nil {
			w.t.Fatal(err)
		}
		w.set(atRate(1_000_000))
		w.flood("a1", "b1", Repair)
		<-time.After(2 * presentFor) // the other nodes are gone
		if got, _ := w.during(30 * time.Second); !within(got, 1_000_000, 0.02) {
			w.t.Errorf("sent %.0f bytes per second of 1000000", got)
		}
		w.set(atRate(5_000_000))
		<-time.After(time.Second)
		if got, _ := w.during(30 * time.Second); !within(got, 5_000_000, 0.02) {
			w.t.Errorf("sent %.0f bytes per second of 5000000", got)
		}
		w.end()
		w.all.Wait()
		w.set(nil)
		before := time.Now()
		if err := w.keepers["a1"].Answer(w.t.Context(), "b1", Repair, 1<<30); err != nil || time.Since(before) != 0 {
			w.t.Errorf("without a budget: %v after %v", err, time.Since(before))
		}
		w.set(atRate(8_000_000))
		if got := w.keepers["a1"].Passed()["b"].Rate; got != 2_000_000 {
			w.t.Errorf("with another budget, the node begins with %.0f bytes per second, want the equal part of four", got)
		}
	})
}

// TestKeeper_KeepsHours begins at midnight UTC, which is 01:00 in Oslo in winter.
func TestKeeper_KeepsHours(t *testing.T) {
	simulate(t, []ids.Node{"a1"}, func(w *world) {
		if at := time.Now().UTC(); at.Hour() != 0 || at.Month() != time.January {
			w.t.Fatalf("virtual time begins at %v", at)
		}
		w.piece = 1 << 20
		w.set(&geoconfig.Budget{Rate: 8_000_000, Outside: 80_000_000, Hours: &geoconfig.Hours{From: 3 * 60, Until: 5 * 60, Zone: "Europe/Oslo"}})
		w.flood("a1", "b1", Foreground)
		for _, c := range []struct {
			until time.Duration
			want  float64
		}{{30 * time.Minute, 10e6}, {119 * time.Minute, 10e6}, {121 * time.Minute, 1e6}, {239 * time.Minute, 1e6}, {241 * time.Minute, 10e6}} {
			<-time.After(c.until - time.Since(w.began))
			if got, _ := w.during(30 * time.Second); !within(got, c.want, 0.05) {
				w.t.Errorf("%v after midnight: %.0f bytes per second, want %.0f", c.until, got, c.want)
			}
		}
	})
}

func TestHours_MayGoPastMidnight(t *testing.T) {
	night := geoconfig.Hours{From: 22 * 60, Until: 6 * 60}
	for text, want := range map[string]bool{"21:59": false, "22:00": true, "23:59": true, "00:00": true, "05:59": true, "06:00": false, "12:00": false} {
		at, err := time.Parse("15:04", text)
		if err != nil {
			t.Fatal(err)
		}
		if got := night.Hold(at); got != want {
			t.Errorf("%s: got %v", text, got)
		}
	}
}

func TestPair_KeepsToTheLowerRateWhereItsZoneIsNotKnown(t *testing.T) {
	p := newPair("a1", func() time.Duration { return 0 })
	b := &geoconfig.Budget{Rate: 80e6, Outside: 8e6, Hours: &geoconfig.Hours{From: 0, Until: 1439, Zone: "Europe/Atlantis"}}
	if err := p.follow(b); err == nil {
		t.Error("the zone is known")
	}
	if got := p.rate(time.Unix(0, 0)); got != 1e6 {
		t.Errorf("got %v", got)
	}
}

func TestKeeper_LeavesOtherPeersAlone(t *testing.T) {
	simulate(t, []ids.Node{"a1"}, func(w *world) {
		w.set(atRate(125_000))
		before := time.Now()
		for _, peer := range []string{"a2", "a-client", "unknown"} {
			for range 100 {
				if err := w.keepers["a1"].Answer(w.t.Context(), peer, Foreground, 4<<20); err != nil {
					w.t.Fatal(err)
				}
			}
		}
		if took := time.Since(before); took != 0 {
			w.t.Errorf("content of this site, or to where nobody knows, waited %v", took)
		}
		if got := w.keepers["a1"].Passed(); len(got) != 1 {
			w.t.Errorf("counted %v", got)
		}
	})
}

func TestKeeper_CountsWhatClientsOfTheOtherSiteSend(t *testing.T) {
	simulate(t, nodes, func(w *world) {
		w.set(atRate(2_000_000))
		w.flood("b1", "a1", Foreground) // the other direction has a rate of its own
		var came atomic.Int64
		w.all.Go(func() {
			for w.keepers["b1"].Take(w.ctx, "a-client", 64<<10) == nil {
				came.Add(64 << 10)
			}
		})
		w.flood("a1", "b1", Foreground) // this one has the same
		<-time.After(5 * time.Second)
		came.Store(0)
		sent, by := w.during(60 * time.Second)
		both := by["a1"] + float64(onTheLine(came.Load()))/60
		if both > 1.02*2_000_000 || both < 0.9*2_000_000 || came.Load() == 0 || sent < by["a1"] {
			w.t.Errorf("a node sent %.0f bytes per second to site b, a client %d, of 2000000", by["a1"], came.Load()/60)
		}
	})
}

func TestKeeper_CountsOperations(t *testing.T) {
	simulate(t, []ids.Node{"a1"}, func(w *world) {
		w.set(atRate(2_000_000))
		w.flood("a1", "b1", Foreground)
		<-time.After(2 * presentFor)
		w.all.Go(func() {
			for w.ctx.Err() == nil {
				w.mu.Lock()
				w.sent["a1"] += 50_000
				w.mu.Unlock()
				<-time.After(100 * time.Millisecond)
			}
		})
		<-time.After(3 * time.Second)
		if got, _ := w.during(60 * time.Second); !within(got, 1_500_000, 0.03) {
			w.t.Errorf("content took %.0f bytes per second beside 500000 of operations, of 2000000", got)
		}
	})
}

func TestKeeper_TellsWhoWaits(t *testing.T) {
	simulate(t, []ids.Node{"a1"}, func(w *world) {
		w.set(atRate(1_000_000))
		k := w.keepers["a1"]
		if err := k.Answer(w.t.Context(), "b-client", Foreground, 64<<10); err != nil || w.told("b-client") != 0 {
			w.t.Fatalf("%v; signs of life for what did not wait: %d", err, w.told("b-client"))
		}
		if err := k.Answer(w.t.Context(), "b-client", Foreground, 4_000_000); err != nil {
			w.t.Fatal(err)
		}
		began := time.Now()
		if err := k.Push(w.t.Context(), "b1", "a-client", Replication, 1); err != nil {
			w.t.Fatal(err)
		}
		waited := time.Since(began)
		if want := int(waited / signEvery); w.told("a-client") < want-1 || want < 5 || w.told("b1") != 0 {
			w.t.Errorf("waited %v, and %d signs of life", waited, w.told("a-client"))
		}
		told := w.told("a-client")
		<-time.After(10 * signEvery)
		if w.told("a-client") != told {
			w.t.Error("signs of life go on after the wait")
		}
	})
}

func TestKeeper_EndsWhatWaitsWithIt(t *testing.T) {
	simulate(t, []ids.Node{"a1"}, func(w *world) {
		w.set(atRate(125_000))
		_ = w.keepers["a1"].Answer(w.t.Context(), "b1", Repair, 1<<30)
		done := make(chan error, 1)
		go func() { done <- w.keepers["a1"].Answer(context.Background(), "b1", Repair, 1) }()
		synctest.Wait()
		w.after = func() {
			if err := <-done; !fault.Is(err, fault.Closed) {
				w.t.Errorf("got %v", err)
			}
		}
	})
}

func TestPiece_IsSmallUnderABudget(t *testing.T) {
	simulate(t, []ids.Node{"a1"}, func(w *world) {
		if got := w.keepers["a1"].Piece("b1"); got != 0 {
			w.t.Errorf("%d without a budget", got)
		}
		w.set(atRate(1_000_000))
		if got := w.keepers["a1"].Piece("b1"); got != leastPiece {
			w.t.Errorf("%d under a small budget", got)
		}
		if got := w.keepers["a1"].Piece("a2"); got != 0 {
			w.t.Errorf("%d at this site", got)
		}
	})
}

func TestHear_IgnoresWhoIsNoMember(t *testing.T) {
	simulate(t, []ids.Node{"a1"}, func(w *world) {
		w.set(atRate(1_000_000))
		k := w.keepers["a1"]
		for _, l := range []*pb.BudgetReport_Line{{From: "a", To: "b"}, {From: "b", To: "a"}, {From: "c", To: "a"}, {From: "x", To: "y"}, {}} {
			l.Wanted, l.Taken = []uint64{1, 2, 3, 4, 5, 1 << 63}, 1<<63
			k.Hear("stranger", &pb.BudgetReport{Lines: []*pb.BudgetReport_Line{l}})
		}
		if got := len(k.pairs["b"].out.group.others); got != 3 || len(k.pairs) != 1 {
			w.t.Errorf("%d other nodes, %d pairs", got, len(k.pairs))
		}
		k.Hear("a2", &pb.BudgetReport{Lines: []*pb.BudgetReport_Line{{From: "a", To: "b", Wanted: []uint64{1 << 63}, Taken: 1 << 63}}})
		<-time.After(2 * time.Second)
		if got := k.pairs["b"].out.line.rate(); got <= 0 {
			w.t.Errorf("a node that says nonsense leaves this one %v", got)
		}
	})
}

func TestKeeper_LetsGoWhatWaitsForASiteThatWasRemoved(t *testing.T) {
	simulate(t, []ids.Node{"a1"}, func(w *world) {
		w.set(atRate(125_000))
		_ = w.keepers["a1"].Answer(w.t.Context(), "b1", Repair, 1<<30)
		done := make(chan error, 1)
		go func() { done <- w.keepers["a1"].Answer(w.t.Context(), "b1", Repair, 1) }()
		synctest.Wait()
		w.mu.Lock()
		w.sites = w.sites[:1]
		w.mu.Unlock()
		before := time.Now()
		if err := <-done; err != nil || time.Since(before) > divideEvery {
			w.t.Errorf("got %v after %v", err, time.Since(before))
		}
		if got := w.keepers["a1"].Passed(); len(got) != 0 {
			w.t.Errorf("%v is left", got)
		}
	})
}
