package upstreams_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/console/gateway/gatewaytest"
	"cartwheel.dev/console/gateway/upstreams"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/server/servertest"
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/goleak"
)

// patience bounds what a test waits for.
const patience = time.Minute

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestSource_LeavesANodeThatDies closes the admin API in front and expects the
// next one there. TestMain sees whether Cleanup left a goroutine behind.
func TestSource_LeavesANodeThatDies(t *testing.T) {
	c := servertest.Start(t, servertest.Options{})
	path, _ := gatewaytest.Contact(t, c, "root")
	s := &upstreams.Source{Contact: path, Nodes: map[string]string{}}
	servers := map[string]*httptest.Server{}
	for _, n := range c.Nodes {
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/readyz" {
				w.WriteHeader(http.StatusNotFound)
			}
		}))
		defer h.Close()
		address := strings.TrimPrefix(h.URL, "http://")
		s.Nodes[string(n.ID())], servers[address] = address, h
	}
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	if err := s.Provision(ctx); err != nil {
		t.Fatal(err)
	}
	first := front(t, s)
	servers[first].CloseClientConnections()
	servers[first].Close()
	for end := time.Now().Add(patience); front(t, s) == first; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s is dead and still in front", first)
		}
	}
	if got, err := s.GetUpstreams(nil); err != nil || len(got) != len(c.Nodes) || got[len(got)-1].Dial != first {
		t.Errorf("got %d upstreams, %v; want %d with the dead one last", len(got), err, len(c.Nodes))
	}
	cancel()
	if err := s.Cleanup(); err != nil {
		t.Error(err)
	}
	for _, h := range servers {
		h.Close()
	}
}

func front(t *testing.T, s *upstreams.Source) string {
	t.Helper()
	got, err := s.GetUpstreams(nil)
	if err != nil {
		t.Fatal(err)
	}
	return got[0].Dial
}

func TestSource_ReadsItsBlock(t *testing.T) {
	s := new(upstreams.Source)
	if err := s.UnmarshalCaddyfile(caddyfile.NewTestDispenser("cartwheel {\ncontact /c.json\nsite a\nport 9443\nnode n1 127.0.0.1:1\n}")); err != nil {
		t.Fatal(err)
	}
	if s.Contact != "/c.json" || s.Site != "a" || s.Port != 9443 || s.Nodes["n1"] != "127.0.0.1:1" {
		t.Errorf("got %q, %q, %d, %v", s.Contact, s.Site, s.Port, s.Nodes)
	}
	if err := s.UnmarshalCaddyfile(caddyfile.NewTestDispenser("cartwheel {\ncolour red\n}")); err == nil {
		t.Error("an unknown option was taken")
	}
}

func TestSource_WantsAnAddress(t *testing.T) {
	for name, s := range map[string]*upstreams.Source{
		"no contact file": {Port: 1}, "no port": {Contact: "c"}, "a port too high": {Contact: "c", Port: 70000},
	} {
		if err := s.Validate(); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v, want Invalid", name, err)
		}
	}
}
