package load

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cartwheel.dev/clients/contact"
	"cartwheel.dev/node/server/servertest"
)

func TestObjectsGoThroughTheLibrary(t *testing.T) {
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
