//go:build linux || darwin

package server_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// TestSocket_NodesOfOneMachineUseIt covers the three ways to have one: the
// default, a path of the operator's, none.
func TestSocket_NodesOfOneMachineUseIt(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "node")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	own := filepath.Join(dir, "cartwheel", "node.sock")
	c := servertest.Start(t, servertest.Options{Configure: func(i int, c *server.Config) {
		switch i {
		case 1:
			c.Socket, c.Advertise = own, []string{"/ip4/192.0.2.1/tcp/9"} // nobody gets there
		case 2:
			c.Socket = "none"
		}
	}})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	paths := []string{filepath.Join(c.Nodes[0].Dir, "sock", "wire.sock"), own, ""}
	for i, n := range c.Nodes {
		if i == 0 {
			n.Kill() // the socket stays, and is taken again
			n.Start()
		}
		var sockets []string
		for _, a := range n.Server().Addresses() {
			if path, ok := strings.CutPrefix(a, "/unix"); ok {
				sockets = append(sockets, path)
			}
		}
		if want := paths[i]; want == "" && len(sockets) > 0 || want != "" && !slices.Equal(sockets, []string{want}) {
			t.Errorf("node %d: got sockets %v, want %q", i, sockets, want)
		}
	}
	for i, mode := range []os.FileMode{0o600, 0o666} {
		if info, err := os.Stat(paths[i]); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: got %v, %v", paths[i], info.Mode(), err)
		}
	}
	servertest.Await(ctx, t, "the first node to speak with the second over its socket", func() error {
		for _, s := range c.Nodes[0].Server().Host().Status() {
			if s.Peer == string(c.Nodes[1].ID()) && s.Class == wire.Operation && s.Current && strings.HasPrefix(s.Address, "/unix/") {
				return nil
			}
		}
		return fault.E(fault.Unreachable, "", "", "not yet")
	})
}

func TestSocket_MovesIfTheDataPathIsTooLong(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), strings.Repeat("x", 120))
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Configure: func(_ int, c *server.Config) { c.Data = data }})
	at := c.Nodes[0].Server().Addresses()
	last := at[len(at)-1]
	path, ok := strings.CutPrefix(last, "/unix")
	if !ok || strings.HasPrefix(path, data) {
		t.Fatalf("got %s, want a socket elsewhere", last)
	}
	c.Nodes[0].Stop()
	if _, err := os.Stat(filepath.Dir(path)); !os.IsNotExist(err) {
		t.Errorf("the socket's directory stays: %v", err)
	}
}
