package load

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cartwheel.dev/clients/contact"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/server/servertest"
)

// contactFile starts a cluster of nodes at sites a, b and c and returns what clients need
// to find it.
func contactFile(t *testing.T) (string, *servertest.Cluster) {
	t.Helper()
	c := servertest.Start(t, servertest.Options{})
	dir := t.TempDir()
	key, err := c.Users["root"].Marshal()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "user.key"), key, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	f := contact.File{Cluster: servertest.ClusterID, UserKey: "user.key"}
	for _, n := range c.Nodes {
		f.Nodes = append(f.Nodes, n.Address()+"/p2p/"+string(n.ID()))
	}
	file := filepath.Join(dir, "contact.json")
	if err := f.Save(file); err != nil {
		t.Fatal(err)
	}
	return file, c
}

func TestDoObjects_RunsThroughTheLibrary(t *testing.T) {
	file, _ := contactFile(t)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	for _, folder := range []string{"objects", ".Site=b/objects2", "objects"} { // made, made below a cue, found
		l, err := OpenLibrary(ctx, file, "a", folder)
		if err != nil {
			t.Fatal(err)
		}
		r, err := DoObjects(ctx, l, ObjectOptions{Count: 10, Bytes: 5000, Lists: 2, Seed: 1})
		if err != nil || len(r.Get) != 10 || len(r.Delete) != 10 {
			t.Errorf("%s: got %+v, %v", folder, r, err)
		}
		if _, err := l.Get(ctx, "nothing"); err == nil {
			t.Errorf("%s: an object that is not there was got", folder)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestSessions_AreTimedAndLapsesCounted(t *testing.T) {
	file, c := contactFile(t)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	c.AwaitRoot(ctx)
	r, err := Sessions(ctx, SessionOptions{Contact: file, Site: "a", For: 500 * time.Millisecond, Every: 20 * time.Millisecond})
	if err != nil || len(r.RTT) < 3 || r.Failed+r.Lapsed > 0 {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := Sessions(ctx, SessionOptions{Contact: file, Nodes: "nowhere", For: time.Second, Every: time.Second}); !fault.Is(err, fault.NotFound) {
		t.Errorf("a site without nodes: got %v", err)
	}
	k := keeper{result: &r}
	k.note(errLapsed, 0)
	k.note(context.DeadlineExceeded, 0)
	if r.Lapsed != 1 || r.Failed != 1 {
		t.Errorf("got %+v", r)
	}
}
