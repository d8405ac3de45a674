package daemon

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/geo/remote"
	"cartwheel.dev/node/wire"
)

// process is one run of Run on a goroutine.
type process struct {
	t      *testing.T
	stop   context.CancelFunc
	Ready  readiness
	stderr *safeBuffer
	over   chan struct{} // closed when it has ended
	code   int           // its exit code, then
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// launch runs a command and waits until it is ready.
func launch(t *testing.T, args ...string) *process {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	p := &process{t: t, stop: stop, stderr: &safeBuffer{}, over: make(chan struct{})}
	out, in := io.Pipe()
	go func() {
		p.code = Run(ctx, args, Stdio{Out: in, Err: p.stderr})
		in.Close()
		close(p.over)
	}()
	// What still runs when the test ends uses directories that go with it.
	t.Cleanup(func() { p.end() })
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(out).ReadString('\n')
		line <- text
		_, _ = io.Copy(io.Discard, out)
	}()
	select {
	case text := <-line:
		if err := json.Unmarshal([]byte(text), &p.Ready); err != nil || !p.Ready.Ready {
			t.Fatalf("%q: got %q, want a line that says ready\n%s", args, text, p.stderr)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("%q is not ready\n%s", args, p.stderr)
	}
	return p
}

// end stops the process as SIGTERM does and returns its exit code.
func (p *process) end() int {
	p.t.Helper()
	p.stop()
	select {
	case <-p.over:
		return p.code
	case <-time.After(20 * time.Second):
		p.t.Errorf("the process does not stop\n%s", p.stderr)
		return -1
	}
}

func TestRun_ThreeNodesStartServeAndStop(t *testing.T) {
	dir := t.TempDir()
	admin, err := wire.NewKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	geo := launch(t, "geo-config", "--data", filepath.Join(dir, "geo"), "--listen", "/ip4/127.0.0.1/tcp/0", "--admin", admin.KeyID())
	address := geo.Ready.Addresses[0]
	enrol(t, admin, address, map[string]string{"a": filepath.Join(dir, "a"), "b": filepath.Join(dir, "b"), "c": filepath.Join(dir, "c")})
	node := func(site string) []string {
		return []string{"node", "--data", filepath.Join(dir, site), "--site", site, "--listen", "/ip4/127.0.0.1/tcp/0",
			"--geo-config", address, "--expected-nodes", "3", "--lease", "1s"}
	}
	var nodes []*process
	for _, site := range []string{"a", "b", "c"} {
		nodes = append(nodes, launch(t, node(site)...))
	}
	if nodes[0].Ready.Cluster != geo.Ready.Cluster || nodes[0].Ready.Cluster == "" {
		t.Errorf("got cluster %q, want that of geo-config, %q", nodes[0].Ready.Cluster, geo.Ready.Cluster)
	}
	var stderr safeBuffer
	second := Run(context.Background(), node("a"), Stdio{Out: io.Discard, Err: &stderr})
	if second != 8 || !strings.Contains(stderr.String(), "uses this data directory") {
		t.Errorf("a second daemon on one directory: got code %d, %q; want 8 and the reason", second, stderr.String())
	}
	for i, n := range nodes {
		if code := n.end(); code != 0 {
			t.Errorf("node %d: got code %d, want 0\n%s", i, code, n.stderr)
		}
	}
	if code := geo.end(); code != 0 {
		t.Errorf("geo-config: got code %d, want 0\n%s", code, geo.stderr)
	}
}

// openStore reaches a geo-config server with an admin's key.
func openStore(t *testing.T, admin wire.Key, address string) geoconfig.Store {
	t.Helper()
	h, err := wire.New(wire.Options{Key: admin})
	if err != nil {
		t.Fatal(err)
	}
	at, peer, _ := strings.Cut(address, "/p2p/")
	if err := h.AddPeer(peer, []string{at}); err != nil {
		t.Fatal(err)
	}
	store := remote.Open(h, remote.Options{Peer: peer})
	t.Cleanup(func() { _ = errors.Join(store.Close(), h.Close()) }) // the server may be gone
	return store
}

// enrol makes the nodes' keys and puts them on the roster.
func enrol(t *testing.T, admin wire.Key, address string, nodes map[string]string) {
	t.Helper()
	store := openStore(t, admin, address)
	b := geoconfig.Batch{Key: "enrol"}
	for site, dir := range nodes {
		key, err := loadKey(dir)
		if err != nil {
			t.Fatal(err)
		}
		b.Sites = append(b.Sites, geoconfig.Site{Name: ids.Site(site)})
		b.Nodes = append(b.Nodes, geoconfig.Node{ID: ids.Node(key.KeyID()), Site: ids.Site(site)})
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if _, err := store.Apply(ctx, b); err != nil {
		t.Fatal(err)
	}
}

func TestRun_WrongArgumentsHaveExitCodes(t *testing.T) {
	for _, test := range []struct {
		args []string
		code int
		say  string
	}{
		{[]string{"nonsense"}, 2, "nonsense"},
		{[]string{"node", "--data", t.TempDir()}, 2, "site"},
		{[]string{"node", "--data", t.TempDir(), "--site", "a"}, 2, "geo_config"},
		{[]string{"node", "--config", filepath.Join(t.TempDir(), "absent.yaml")}, 3, "absent.yaml"},
		{[]string{"key", "--data", filepath.Join(t.TempDir(), "absent")}, 2, "cartwheeld: --data: stat"},
		{[]string{"geo-config", "--data", t.TempDir(), "--listen", "127.0.0.1:7300"}, 2, "is no address such as /ip4/"},
		{[]string{"version"}, 0, ""},
		{[]string{"--help"}, 0, ""},
	} {
		var stderr safeBuffer
		code := Run(context.Background(), test.args, Stdio{Out: io.Discard, Err: &stderr})
		if code != test.code || !strings.Contains(stderr.String(), test.say) {
			t.Errorf("%q: got code %d and %q, want %d and a word on %q", test.args, code, stderr.String(), test.code, test.say)
		}
	}
}

func TestRun_NodeSaysThatItIsNotOnTheRoster(t *testing.T) {
	dir := t.TempDir()
	admin, err := wire.NewKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	geo := launch(t, "geo-config", "--data", filepath.Join(dir, "geo"), "--listen", "/ip4/127.0.0.1/tcp/0", "--admin", admin.KeyID())
	address := geo.Ready.Addresses[0]
	args := []string{"node", "--data", filepath.Join(dir, "a"), "--site", "a", "--listen", "/ip4/127.0.0.1/tcp/0",
		"--geo-config", address, "--expected-nodes", "2"} // so that no slice holds its row
	check := func(when string) {
		t.Helper()
		key, err := loadKey(filepath.Join(dir, "a"))
		if err != nil {
			t.Fatal(err)
		}
		var stderr safeBuffer
		code := Run(context.Background(), args, Stdio{Out: io.Discard, Err: &stderr})
		if code != fault.Unauthorized.ExitCode() || !strings.Contains(stderr.String(), key.KeyID()) || !strings.Contains(stderr.String(), "add a row") {
			t.Errorf("%s: got code %d and %q, want the node's ID and what to do", when, code, stderr.String())
		}
	}
	check("a new node")
	enrol(t, admin, address, map[string]string{"a": filepath.Join(dir, "a")})
	if code := launch(t, args...).end(); code != 0 {
		t.Errorf("on the roster: code %d", code)
	}
	dismiss(t, admin, address)
	check("a node that was removed")
	if code := geo.end(); code != 0 {
		t.Errorf("geo-config: got code %d, want 0\n%s", code, geo.stderr)
	}
}

// dismiss removes the rows of all nodes.
func dismiss(t *testing.T, admin wire.Key, address string) {
	t.Helper()
	store := openStore(t, admin, address)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	rows, err := store.Read(ctx, geoconfig.Query{Nodes: true})
	if err != nil {
		t.Fatal(err)
	}
	b := geoconfig.Batch{Key: "dismiss"}
	for _, n := range rows.Nodes {
		b.Remove = append(b.Remove, geoconfig.Removal{Key: n.Key(), Revision: n.Revision})
	}
	if _, err := store.Apply(ctx, b); err != nil {
		t.Fatal(err)
	}
}
