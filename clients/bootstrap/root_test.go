package bootstrap_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cartwheel.dev/clients/bootstrap"
	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/servertest"
)

// patience bounds what a test waits for.
const patience = time.Minute

// contactOf writes a contact file of a cluster for a user.
func contactOf(t *testing.T, c *servertest.Cluster, user string) (path string) {
	t.Helper()
	dir := t.TempDir()
	key := filepath.Join(dir, "user.key")
	encoded, err := c.Users[user].Marshal()
	if err == nil {
		err = os.WriteFile(key, encoded, 0o600)
	}
	if err != nil {
		t.Fatalf("writing a key: %v", err)
	}
	f := contact.File{Cluster: servertest.ClusterID, UserKey: key}
	for _, n := range c.Nodes {
		f.Nodes = append(f.Nodes, n.Address()+"/p2p/"+string(n.ID()))
	}
	path = filepath.Join(dir, "contact.json")
	if err := f.Save(path); err != nil {
		t.Fatalf("writing a contact file: %v", err)
	}
	return path
}

// nodesOf are a cluster's nodes, behind one that the contact file does not know.
func nodesOf(c *servertest.Cluster) []ids.Node {
	list := []ids.Node{"12D3KooWUnknown"}
	for _, n := range c.Nodes {
		list = append(list, n.ID())
	}
	return list
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestAwaitRoot_WaitsUntilANodeServesIt(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	path, nodes := contactOf(t, c, "root"), nodesOf(c)
	if err := bootstrap.AwaitRoot(within(t, patience), path, nodes); err != nil {
		t.Errorf("a node that serves it: %v", err)
	}
	c.Nodes[0].Stop()
	done := make(chan error, 1)
	go func() { done <- bootstrap.AwaitRoot(within(t, patience), path, nodes) }()
	c.Nodes[0].Start()
	if err := <-done; err != nil {
		t.Errorf("a node that comes back: %v", err)
	}
}

func TestAwaitRoot_TellsWhyItEnds(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	path, nodes := contactOf(t, c, "root"), nodesOf(c)
	nowhere := filepath.Join(t.TempDir(), "contact.json")
	keyless := filepath.Join(t.TempDir(), "contact.json")
	if err := (contact.File{Nodes: []string{"/ip4/127.0.0.1/tcp/1/p2p/" + string(nodes[1])}, UserKey: "missing.key"}).Save(keyless); err != nil {
		t.Fatal(err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, stop := context.WithDeadline(t.Context(), time.Now())
	defer stop()
	for name, c := range map[string]struct {
		ctx   context.Context
		path  string
		nodes []ids.Node
		want  fault.Kind
	}{
		"no contact file":      {t.Context(), nowhere, nodes, fault.NotFound},
		"no user's key":        {t.Context(), keyless, nodes, fault.NotFound},
		"a caller that left":   {canceled, path, nil, fault.Canceled},
		"a deadline":           {late, path, nil, fault.TimedOut},
		"a node of no address": {late, path, nodes[:1], fault.Unreachable},
	} {
		if err := bootstrap.AwaitRoot(c.ctx, c.path, c.nodes); !fault.Is(err, c.want) {
			t.Errorf("%s: got %v of kind %v, want kind %v", name, err, fault.KindOf(err), c.want)
		}
	}
}

// owner reads whose the root directory is.
func owner(t *testing.T, path string) (uid, gid uint32) {
	t.Helper()
	a := attributes(t, path, ".")
	return a.UID, a.GID
}

// attributes reads those of a name in the root directory.
func attributes(t *testing.T, path, name string) mount.Attr {
	t.Helper()
	f, err := contact.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := cartwheel.Open(within(t, patience), cartwheel.Options{Contact: f, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Errorf("closing a client: %v", err)
		}
	}()
	e, err := c.Lookup(within(t, patience), mount.Caller{}, mount.Root, name)
	if err != nil {
		t.Fatal(err)
	}
	return e.Attr
}

func TestOwn_GivesTheRootOnce(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	path := contactOf(t, c, "root")
	if uid, gid := owner(t, path); uid != 0 || gid != 0 {
		t.Fatalf("a new root is of %d:%d, want 0:0", uid, gid)
	}
	for _, uid := range []uint32{1000, 1001} { // the first keeps it
		if err := bootstrap.Own(within(t, patience), path, uid, 2000); err != nil {
			t.Errorf("giving it to %d: %v", uid, err)
		}
		if uid, gid := owner(t, path); uid != 1000 || gid != 2000 {
			t.Errorf("the root is of %d:%d, want 1000:2000", uid, gid)
		}
	}
}

func TestOwn_WantsATrustedHost(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	if err := bootstrap.Own(within(t, patience), contactOf(t, c, "ann"), 1000, 1000); !fault.Is(err, fault.NotOwner) {
		t.Errorf("got %v of kind %v, want kind %v", err, fault.KindOf(err), fault.NotOwner)
	}
	if uid, _ := owner(t, contactOf(t, c, "root")); uid != 0 {
		t.Errorf("the root is of %d, want 0", uid)
	}
	nowhere := filepath.Join(t.TempDir(), "contact.json")
	if err := bootstrap.Own(t.Context(), nowhere, 1000, 1000); !fault.Is(err, fault.NotFound) {
		t.Errorf("without a contact file: got %v, want kind %v", err, fault.NotFound)
	}
}

func TestOpenFolder_MakesWhatEverybodyMayWrite(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	path := contactOf(t, c, "root")
	for _, uid := range []uint32{1000, 1001} { // what is there stays
		if err := bootstrap.OpenFolder(within(t, patience), path, "public", uid, 2000); err != nil {
			t.Fatalf("for %d: %v", uid, err)
		}
		if a := attributes(t, path, "public"); a.Mode != mount.TypeDir|0o777 || a.UID != 1000 || a.GID != 2000 {
			t.Errorf("for %d: got mode %o of %d:%d, want a folder of 1000:2000 with mode 777", uid, a.Mode, a.UID, a.GID)
		}
	}
	if err := bootstrap.OpenFolder(within(t, patience), contactOf(t, c, "ann"), "hers", 1000, 1000); !fault.Is(err, fault.Permission) && !fault.Is(err, fault.NotOwner) {
		t.Errorf("with a user's key: got %v of kind %v, want Permission", err, fault.KindOf(err))
	}
}
