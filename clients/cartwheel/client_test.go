//go:build linux

package cartwheel_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/mount/gofuse"
	"cartwheel.dev/clients/mount/mounttest"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/servertest"
)

// clientOf opens a client at a site of the cluster, as the user who may act as
// any.
func clientOf(t testing.TB, c *servertest.Cluster, site string) *cartwheel.Client {
	t.Helper()
	cl := opened(t, c, cartwheel.Options{Site: ids.Site(site)})
	t.Cleanup(func() {
		if err := cl.Close(); err != nil {
			t.Error(err)
		}
	})
	return cl
}

// opened opens a client, which the caller closes.
func opened(t testing.TB, c *servertest.Cluster, o cartwheel.Options) *cartwheel.Client {
	t.Helper()
	return openedAs(t, c, "root", o)
}

// openedAs opens a client with a user's key. The caller closes the client.
func openedAs(t testing.TB, c *servertest.Cluster, user string, o cartwheel.Options) *cartwheel.Client {
	t.Helper()
	key := filepath.Join(t.TempDir(), "user.key")
	encoded, err := c.Users[user].Marshal()
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
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	level := slog.LevelWarn
	if os.Getenv("CARTWHEEL_LOG") != "" {
		level = slog.LevelDebug
	}
	o.Contact, o.Name = file, t.Name()
	o.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	cl, err := cartwheel.Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

// mounted mounts a client and answers the mount point.
func mounted(t testing.TB, cl *cartwheel.Client) string {
	t.Helper()
	return mountedAs(t, cl.FileSystem())
}

// mountedAs mounts a client's file system, or what stands before it.
func mountedAs(t testing.TB, fs mount.FileSystem) string {
	t.Helper()
	point := mounttest.Point(t.(*testing.T))
	m, err := gofuse.Mount(fs, mount.Options{Point: point, AllowOther: true, SetID: true, Devices: true, FSName: "cartwheel",
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Unmount(mount.UnmountLimit); err != nil {
			t.Error(err)
		}
	})
	return m.Point()
}

// TestSuite_OnTwoMounts runs the suite on two mounts of one cluster, at two
// sites. What the first makes goes to another slice than the root's, so that
// names and objects are in several.
func TestSuite_OnTwoMounts(t *testing.T) {
	mounttest.Run(t, func(t *testing.T) []string {
		c := servertest.Start(t, servertest.Options{})
		return []string{mounted(t, clientOf(t, c, "b")), mounted(t, clientOf(t, c, "a"))}
	})
}

// TestSuite_OnTwoMountsOfOneSlice runs the suite where names and objects are in
// one slice.
func TestSuite_OnTwoMountsOfOneSlice(t *testing.T) {
	if os.Getenv("CARTWHEEL_WHOLE") != "1" {
		t.Skip("the other half of the suite runs with CARTWHEEL_WHOLE=1")
	}
	mounttest.Run(t, func(t *testing.T) []string {
		c := servertest.Start(t, servertest.Options{})
		return []string{mounted(t, clientOf(t, c, "a")), mounted(t, clientOf(t, c, "b"))}
	})
}
