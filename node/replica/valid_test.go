package replica

import (
	"strings"
	"testing"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/invariant"
)

// led returns a core that leads a slice, and its group, after one write.
func led(t *testing.T) (*Node, *group) {
	t.Helper()
	tr := newTrio(t)
	if kind := tr.propose(t, Entry{Slice: 1, Client: 7, Data: []byte("x")}); kind != 0 {
		t.Fatalf("got %v, want the registration to be ordered", kind)
	}
	n := tr.nodes["a"]
	return n, n.groups[1]
}

// Each case breaks one invariant of one part, as a wrong transition would.
func TestValid_NamesTheBrokenInvariant(t *testing.T) {
	for name, test := range map[string]struct {
		broken func(g *group)
		want   string
	}{
		"common":     {func(g *group) { g.members = g.members[:2] }, "the members are those of the row"},
		"progress":   {func(g *group) { g.memberOf("b").next = g.memberOf("b").match }, "match < next"},
		"in flight":  {func(g *group) { g.memberOf("b").inFlight = 1 }, "only what was sent"},
		"lease":      {func(g *group) { g.memberOf("b").leaseFrom = g.n.now + 1 }, "no promise is from the future"},
		"promises":   {func(g *group) { g.doubtedPeers = append(g.doubtedPeers, g.memberOf("b").peer) }, "a doubted peer lists"},
		"applied":    {func(g *group) { g.applied++ }, "applied epoch"},
		"commit":     {func(g *group) { g.commit = g.log.last + 1 }, "what is committed is in the log"},
		"stable":     {func(g *group) { g.stable = g.commit + 1 }, "what is stable is committed"},
		"log":        {func(g *group) { g.log.mem[len(g.log.mem)-1] = nil }, "the entries in memory"},
		"unheld":     {func(g *group) { g.unheld = []EntryID{{2, 1}, {1, 1}} }, "ascending"},
		"cut off":    {func(g *group) { g.unheld = []EntryID{{g.log.last + 1, 1}} }, "an entry without chunks is in the log"},
		"reading":    {func(g *group) { g.readBack = []*Entry{{Serial: 1}, {Serial: 3}} }, "no gap"},
		"copying":    {func(g *group) { g.delayedBytes = 1 }, "only an incomplete state delays"},
		"row change": {func(g *group) { g.swap = &pendingSwap{Swap: Swap{From: g.row.Epoch + 1}} }, "follows the row"},
		"succession": {func(g *group) { g.handover = &handover{stopped: true} }, "a hand-over stops after"},
		"leading":    {func(g *group) { g.waiting = []waiter{{serial: g.commit}} }, "what waits is ascending"},
		"following":  {func(g *group) { g.verified, g.ackedTo = true, g.matched+1 }, "only what matches is acknowledged"},
		"takeover":   {func(g *group) { g.candidate = &candidate{} }, "only a standby is a candidate"},
	} {
		t.Run(name, func(t *testing.T) {
			n, g := led(t)
			if err := n.Valid(); err != nil {
				t.Fatalf("got %v before, want none", err)
			}
			test.broken(g)
			if err := n.Valid(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestGroup_ChecksItsParts(t *testing.T) {
	_, g := led(t)
	g.checkParts()
	g.uncommitted = -1
	var err error
	func() {
		defer invariant.Catch(func(e error) { err = e })
		g.checkParts()
	}()
	if err == nil || !strings.Contains(err.Error(), "not negative") {
		t.Errorf("got %v, want the uncommitted bytes to be wrong", err)
	}
}

func TestHistory_StopsTheProcess(t *testing.T) {
	for rule, broken := range map[string]func(g *group){
		invariant.BaseApplied:      func(g *group) { g.log.base = g.applied + 1 },
		invariant.AppliedCommitted: func(g *group) { g.commit = g.applied - 1 },
		invariant.CommittedLogged:  func(g *group) { g.log.last = g.commit - 1 },
	} {
		_, g := led(t)
		g.checkOrder(1)
		broken(g)
		var err error
		func() {
			defer invariant.Catch(func(e error) { err = e })
			g.checkOrder(ids.Slice(1))
		}()
		if err == nil || !strings.Contains(err.Error(), rule) {
			t.Errorf("got %v, want %q", err, rule)
		}
	}
}
