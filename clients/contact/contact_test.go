package contact_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/clients/contact"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fileOf is a contact file for a cluster, with a user's key.
func fileOf(t *testing.T, c *servertest.Cluster, user string) contact.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "user.key")
	encoded, err := c.Users[user].Marshal()
	if err == nil {
		err = os.WriteFile(path, encoded, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	f := contact.File{Cluster: servertest.ClusterID, UserKey: path}
	for _, n := range c.Nodes {
		f.Nodes = append(f.Nodes, n.Address()+"/p2p/"+string(n.ID()))
	}
	return f
}

func connect(t *testing.T, f contact.File, site ids.Site) (*contact.Cluster, error) {
	t.Helper()
	cl, err := contact.New(contact.Options{File: f, Site: site})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		if err := cl.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return cl, cl.Connect(ctx)
}

func TestConnect_OneNodeNamesAllOthers(t *testing.T) {
	c := servertest.Start(t, servertest.Options{})
	f := fileOf(t, c, "root")
	f.Nodes = f.Nodes[:1]
	cl, err := connect(t, f, "b")
	if err != nil {
		t.Fatal(err)
	}
	if got := len(cl.Nodes()); got != 3 {
		t.Errorf("%d nodes are known, want 3", got)
	}
	if got := len(cl.Sites()); got != 3 {
		t.Errorf("%d sites are known, want 3", got)
	}
	if who := cl.Who(); who == nil || !who.Trusted {
		t.Errorf("the nodes take the client for %v, want a trusted host", who)
	}
}

func TestConnect_PassesOverADeadNode(t *testing.T) {
	c := servertest.Start(t, servertest.Options{})
	f := fileOf(t, c, "root")
	c.Nodes[1].Stop()
	if _, err := connect(t, f, "b"); err != nil {
		t.Error(err)
	}
}

// silent is the address of somebody who takes connections and says nothing, and
// tells of the first one.
func silent(t *testing.T) (address string, taken <-chan struct{}) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	first, ended := make(chan struct{}), make(chan struct{})
	var conns []net.Conn
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if conns = append(conns, c); len(conns) == 1 {
				close(first)
			}
		}
	}()
	t.Cleanup(func() {
		_ = l.Close() // ends the loop above
		<-ended
		for _, c := range conns {
			_ = c.Close() // nothing was written
		}
	})
	k, err := wire.NewKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("/ip4/127.0.0.1/tcp/%d/p2p/%s", l.Addr().(*net.TCPAddr).Port, k.KeyID()), first
}

func TestCall_EndsWhileAnotherStillConnects(t *testing.T) {
	address, taken := silent(t)
	_, id, err := contact.SplitAddress(address)
	if err != nil {
		t.Fatal(err)
	}
	f := contact.File{Cluster: servertest.ClusterID, UserKey: newKey(t), Nodes: []string{address}}
	cl, err := contact.New(contact.Options{File: f})
	if err != nil {
		t.Fatal(err)
	}
	call := func(ctx context.Context) error {
		_, err := cl.Call(ctx, id, wire.Operation, method.Rows, &pb.RowsRequest{}, nil, &pb.RowsResponse{})
		return err
	}
	patient := make(chan error, 1)
	go func() { patient <- call(t.Context()) }()
	<-taken
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := call(ctx); !fault.Is(err, fault.Canceled) {
		t.Errorf("got %v, want canceled", err)
	}
	select {
	case err := <-patient:
		t.Errorf("it waited for the patient one, who got %v", err)
		patient <- err
	default:
	}
	if err := cl.Close(); err != nil {
		t.Error(err)
	}
	<-patient
}

func TestConnect_SaysWhatIsWrong(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	stranger, err := wire.NewKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		change func(*contact.File)
		want   fault.Kind
	}{
		"another cluster":          {func(f *contact.File) { f.Cluster = "other" }, fault.WrongCluster},
		"a key that nobody knows":  {func(f *contact.File) { f.UserKey = newKey(t) }, fault.Unauthorized},
		"nobody at the address":    {func(f *contact.File) { f.Nodes = []string{"/ip4/127.0.0.1/tcp/1/p2p/" + string(c.Nodes[0].ID())} }, fault.Unreachable},
		"somebody else is there":   {func(f *contact.File) { f.Nodes = []string{c.Nodes[0].Address() + "/p2p/" + stranger.KeyID()} }, fault.Unreachable},
		"an address without an ID": {func(f *contact.File) { f.Nodes = []string{c.Nodes[0].Address()} }, fault.Invalid},
	}
	for name, tt := range tests {
		f := fileOf(t, c, "root")
		tt.change(&f)
		if _, err := connect(t, f, "a"); !fault.Is(err, tt.want) {
			t.Errorf("%s: got %v (%v), want %v", name, err, fault.KindOf(err), tt.want)
		}
	}
}

func TestNew_MakesNoMissingKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "user.key")
	f := contact.File{Nodes: []string{"/ip4/127.0.0.1/tcp/1/p2p/12D3KooWCrR3ZmTDsfhQQZJPUhLetTeqvppXWysUNfxts6SUkw4E"}, UserKey: path}
	if _, err := contact.New(contact.Options{File: f}); !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want not found with the path", err)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("a key was made: %v", err)
	}
}

func TestFile_ReadsBackWhatWasSaved(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "contact.json")
	f := contact.File{Cluster: "c", Nodes: []string{"/ip4/10.0.0.1/tcp/7400/p2p/12D3KooWCrR3ZmTDsfhQQZJPUhLetTeqvppXWysUNfxts6SUkw4E"}, UserKey: "user.key"}
	if err := f.Save(path); err != nil {
		t.Fatal(err)
	}
	got, err := contact.Load(path)
	if err != nil || got.Cluster != f.Cluster || len(got.Nodes) != 1 || got.UserKey != filepath.Join(dir, "user.key") {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := contact.Load(filepath.Join(dir, "none.json")); !fault.Is(err, fault.NotFound) {
		t.Errorf("a file that is not there: %v, want NotFound", err)
	}
	if err := os.WriteFile(path, []byte("no json"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := contact.Load(path); !fault.Is(err, fault.Invalid) {
		t.Errorf("a file of something else: %v, want Invalid", err)
	}
}

// newKey makes the file of a key that nobody knows.
func newKey(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "new.key")
	if _, err := wire.MakeKey(path); err != nil {
		t.Fatal(err)
	}
	return path
}
