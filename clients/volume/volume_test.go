//go:build linux

package volume_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/volume"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/servertest"
)

var _ volume.Files = (*cartwheel.Client)(nil)

var nobody = mount.Caller{}

// client opens a client of a cluster at a site.
func client(t *testing.T, c *servertest.Cluster, site ids.Site) *cartwheel.Client {
	t.Helper()
	return clientWith(t, c, cartwheel.Options{Site: site})
}

// clientWith opens a client of a cluster.
func clientWith(t *testing.T, c *servertest.Cluster, o cartwheel.Options) *cartwheel.Client {
	t.Helper()
	key := filepath.Join(t.TempDir(), "user.key")
	encoded, err := c.Users["root"].Marshal()
	if err == nil {
		err = os.WriteFile(key, encoded, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	file := contact.File{Cluster: servertest.ClusterID, UserKey: key}
	for _, n := range c.Nodes {
		file.Nodes = append(file.Nodes, n.Address()+"/p2p/"+string(n.ID()))
	}
	o.Contact = file
	cl, err := cartwheel.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cl.Close(); err != nil {
			t.Error(err)
		}
	})
	return cl
}

// noise returns bytes that no other call returns.
func noise(n int) []byte {
	var seed [32]byte
	for i := range seed {
		seed[i] = byte(rand.Uint32())
	}
	out := make([]byte, n)
	_, _ = rand.NewChaCha8(seed).Read(out) // never fails
	return out
}

// TestVolume_HoldsWhatIsCreated creates, reads and deletes files of many sizes, and
// compares what two clients see.
func TestVolume_HoldsWhatIsCreated(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a", "b"}})
	here, there := client(t, c, "a"), client(t, c, "b")
	made, err := volume.Make(t.Context(), here, nobody, "/", "v")
	if err != nil {
		t.Fatal(err)
	}
	defer made.Close()
	seen, err := volume.Open(t.Context(), there, nobody, "/v")
	if err != nil {
		t.Fatal(err)
	}
	defer seen.Close()
	for i, size := range []int{0, 1, 4096, 4097, 64 << 10, 64<<10 + 1, 3 << 20} {
		name, content := fmt.Sprint("f", size), noise(size)
		by, other := made, seen
		if i%2 == 1 {
			by, other = seen, made
		}
		if err := by.Create(t.Context(), name, content); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, v := range []*volume.Volume{other, by} {
			if got, err := v.Read(t.Context(), name); err != nil || !bytes.Equal(got, content) {
				t.Errorf("%s: read %d bytes (%v), not what was written", name, len(got), err)
			}
			if a, err := v.Stat(t.Context(), name); err != nil || a.Size != uint64(size) {
				t.Errorf("%s: has %d bytes (%v)", name, a.Size, err)
			}
			if err := v.Create(t.Context(), name, []byte("x")); !fault.Is(err, fault.Exists) {
				t.Errorf("%s: created again: got %v, want Exists", name, err)
			}
		}
		e, err := there.Walk(t.Context(), nobody, mount.Root, "/v/"+name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := there.Open(t.Context(), nobody, e.Node, mount.OpenWrite); size > 0 && !fault.Is(err, fault.NotOwner) {
			t.Errorf("%s: opened for writing: got %v, want NotOwner", name, err)
		}
		if err := other.Delete(t.Context(), name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, v := range []*volume.Volume{made, seen} {
			_, rerr := v.Read(t.Context(), name)
			_, serr := v.Stat(t.Context(), name)
			for _, err := range []error{rerr, serr, v.Delete(t.Context(), name)} {
				if !fault.Is(err, fault.NotFound) {
					t.Errorf("%s: deleted, then: got %v, want NotFound", name, err)
				}
			}
		}
	}
}

// TestVolume_OneOfManyCreates has clients create the same names at once, of both
// sizes. One of each succeeds, and its content is there.
func TestVolume_OneOfManyCreates(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a", "b"}})
	var all []*volume.Volume
	for i := range 3 {
		cl := client(t, c, ids.Site([]string{"a", "b"}[i%2]))
		open := volume.Open
		if i == 0 {
			open = func(ctx context.Context, f volume.Files, who mount.Caller, _ string) (*volume.Volume, error) {
				return volume.Make(ctx, f, who, "/", "v")
			}
		}
		v, err := open(t.Context(), cl, nobody, "/v")
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		all = append(all, v)
	}
	for round := range 12 {
		name, size := fmt.Sprint("f", round), []int{100, 200 << 10}[round%2]
		contents := make([][]byte, len(all))
		errs := make([]error, len(all))
		var done sync.WaitGroup
		for i, v := range all {
			contents[i] = noise(size)
			done.Go(func() { errs[i] = v.Create(t.Context(), name, contents[i]) })
		}
		done.Wait()
		won := -1
		for i, err := range errs {
			switch {
			case err == nil && won < 0:
				won = i
			case err == nil:
				t.Errorf("%s was created twice", name)
			case !fault.Is(err, fault.Exists):
				t.Errorf("%s: %v", name, err)
			}
		}
		if won < 0 {
			t.Fatalf("%s was created by nobody: %v", name, errors.Join(errs...))
		}
		for _, v := range all {
			if got, err := v.Read(t.Context(), name); err != nil || !bytes.Equal(got, contents[won]) {
				t.Errorf("%s: read %d bytes (%v), not the winner's", name, len(got), err)
			}
		}
	}
}

// TestOpen_RefusesWhatIsNoVolume opens and makes what cannot be.
func TestOpen_RefusesWhatIsNoVolume(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	cl := client(t, c, "a")
	if _, err := cl.Mkdir(t.Context(), nobody, mount.Root, "plain", 0o755); err != nil {
		t.Fatal(err)
	}
	v, err := volume.Make(t.Context(), cl, nobody, "/plain", "v")
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	for path, want := range map[string]fault.Kind{"/plain": fault.Invalid, "/none": fault.NotFound, "/none/v": fault.NotFound} {
		if _, err := volume.Open(t.Context(), cl, nobody, path); !fault.Is(err, want) {
			t.Errorf("opening %s: got %v, want %v", path, err, want)
		}
	}
	if _, err := volume.Make(t.Context(), cl, nobody, "/plain", "v"); !fault.Is(err, fault.Exists) {
		t.Errorf("making it again: got %v, want Exists", err)
	}
	for _, name := range []string{"", ".", "..", "a/b", "a\x00b"} {
		_, merr := volume.Make(t.Context(), cl, nobody, "/plain", name)
		_, rerr := v.Read(t.Context(), name)
		_, serr := v.Stat(t.Context(), name)
		for _, err := range []error{merr, rerr, serr, v.Create(t.Context(), name, nil), v.Delete(t.Context(), name)} {
			if !fault.Is(err, fault.Invalid) {
				t.Errorf("the name %q: got %v, want Invalid", name, err)
			}
		}
	}
	e, err := cl.Walk(t.Context(), nobody, mount.Root, "/plain")
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{3, 100 << 10} {
		if err := cl.CreateOnce(t.Context(), nobody, e.Node, "f", 0o644, noise(size)); !fault.Is(err, fault.Invalid) {
			t.Errorf("a file of %d bytes in an ordinary directory: got %v, want Invalid", size, err)
		}
	}
	if e, err := cl.Walk(t.Context(), nobody, mount.Root, "/plain/f"); err != nil || e.Node != 0 {
		t.Errorf("the refused file is there: %v", err)
	}
}
