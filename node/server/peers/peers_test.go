package peers

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/wire"
)

// fakeHost notes what contacts tell it.
type fakeHost struct{ calls []string }

func (h *fakeHost) AddPeer(peer string, addresses []string) error {
	if len(addresses) == 0 {
		return fault.E(fault.Invalid, "", peer, "no address")
	}
	h.calls = append(h.calls, "add "+peer)
	return nil
}

func (h *fakeHost) Keep(peer string, _ bool) error {
	h.calls = append(h.calls, "keep "+peer)
	return nil
}

func (h *fakeHost) Forget(peer string) error {
	h.calls = append(h.calls, "forget "+peer)
	return nil
}

func TestContacts_FollowTheRoster(t *testing.T) {
	h := &fakeHost{}
	c := &Contacts{Self: "a", Host: h, Logger: slog.New(slog.DiscardHandler)}
	row := func(id ids.Node) geoconfig.Node { return geoconfig.Node{ID: id, Addresses: []string{"/x"}} }
	c.Update([]geoconfig.Node{row("a"), row("b"), row("c"), {ID: "d"}})
	if want := []string{"add b", "keep b", "add c", "keep c"}; !slices.Equal(h.calls, want) {
		t.Errorf("got %q, want %q", h.calls, want)
	}
	h.calls = nil
	c.Update([]geoconfig.Node{row("a"), row("c"), {ID: "d"}})
	if want := []string{"add c", "keep c", "forget b"}; !slices.Equal(h.calls, want) {
		t.Errorf("after b left: got %q, want %q", h.calls, want)
	}
}

func TestStamps_ComplainOnceAMinute(t *testing.T) {
	var log bytes.Buffer
	now := time.Second
	s := &Stamps{HLC: hlc.New(func() time.Time { return time.Unix(1000, 0) }), Clock: func() time.Duration { return now },
		Logger: slog.New(slog.NewTextHandler(&log, nil))}
	ahead := uint64(hlc.New(func() time.Time { return time.Unix(9000, 0) }).Now())
	for range 5 {
		s.Observe("b", ahead)
	}
	now += aheadEvery
	s.Observe("b", ahead)
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[1], "more=4") {
		t.Errorf("got %q, want two lines, the second with 4 more", lines)
	}
}

func TestGate_AdmitsNoPeerWhileShut(t *testing.T) {
	var g Gate
	g.Connected("b", wire.Operation, true)
	g.Sampled("b", time.Second, nil)
	g.Learn(nil)
	g.Recheck()
	if _, ok := g.Admit("b"); ok || g.IsOpen() || g.Relays(context.Background(), "b") != nil {
		t.Error("a gate that is shut admits a peer, or names relays")
	}
	if err := g.MayRelay("b", "c"); !fault.Is(err, fault.Again) {
		t.Errorf("a relay over a gate that is shut: got %v, want again", err)
	}
}

// roster is one of node b alone.
type roster struct{}

func (roster) User(string) (geoconfig.User, bool) { return geoconfig.User{}, false }
func (roster) Node(id ids.Node) (geoconfig.Node, bool) {
	return geoconfig.Node{}, id == "b" || id == "c"
}
func (roster) Cluster() geoconfig.Cluster { return geoconfig.Cluster{} }

func TestGate_RelaysBetweenNodesAndToGeoConfig(t *testing.T) {
	var g Gate
	g.Open(Parts{Who: identity.New("a", roster{}), HoldsGeoConfig: func(peer string) bool { return peer == "geo" }})
	for _, c := range []struct {
		from, to string
		ok       bool
	}{{"b", "c", true}, {"b", "geo", true}, {"b", "x", false}, {"x", "c", false}, {"x", "geo", false}} {
		if err := g.MayRelay(c.from, c.to); (err == nil) != c.ok {
			t.Errorf("from %s to %s: got %v, want it allowed: %v", c.from, c.to, err, c.ok)
		}
	}
}
