// Package gatewaytest has what the tests of the gateway share: contact files of a
// cluster that runs in the test. It has no state, and any goroutine of a test may
// call it.
package gatewaytest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/node/server/servertest"
)

// patience bounds what a test waits for.
const patience = time.Minute

// Contact writes a contact file with the key of one user, and returns its path and
// its content. The test's end removes it.
func Contact(t *testing.T, c *servertest.Cluster, user string) (string, contact.File) {
	t.Helper()
	dir := t.TempDir()
	key := filepath.Join(dir, "user.key")
	encoded, err := c.Users[user].Marshal()
	if err == nil {
		err = os.WriteFile(key, encoded, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	f := contact.File{Cluster: servertest.ClusterID, UserKey: key}
	for _, n := range c.Nodes {
		f.Nodes = append(f.Nodes, n.Address()+"/p2p/"+string(n.ID()))
	}
	path := filepath.Join(dir, "contact.json")
	if err := f.Save(path); err != nil {
		t.Fatal(err)
	}
	return path, f
}

// notForAnn is an ACL (version 2, then 8 bytes an entry: tag, permissions, ID) that
// lets everybody read but the user 1000.
var notForAnn = []byte{2, 0, 0, 0,
	1, 0, 6, 0, 255, 255, 255, 255, // the owner: read and write
	2, 0, 0, 0, 0xe8, 3, 0, 0, // user 1000: nothing
	4, 0, 4, 0, 255, 255, 255, 255, // the group: read
	16, 0, 4, 0, 255, 255, 255, 255, // the mask: read
	32, 0, 4, 0, 255, 255, 255, 255} // others: read

// WriteSite makes a folder "www" and a file beside it. In the folder are a page, a
// link out of it, and what ann may not read: a file of root's, one whose ACL excepts
// her, and two folders of root's, of which she may search neither and one. The folders "open" and
// "sticky" take what she writes, and the second keeps what is not hers.
func WriteSite(t *testing.T, c *servertest.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, f := Contact(t, c, "root")
	w, err := cartwheel.Open(ctx, cartwheel.Options{Contact: f, Name: "writer"})
	if err != nil {
		t.Fatal(err)
	}
	write := func(dir mount.Inode, name, text string, mode uint32) {
		e, o, err := w.Create(ctx, mount.Caller{}, dir, name, mode, mount.OpenWrite)
		if err == nil {
			_, err = w.Write(ctx, mount.Caller{}, e.Node, o.Handle, 0, []byte(text), 0)
		}
		if err == nil {
			err = w.Fsync(ctx, mount.Caller{}, e.Node, o.Handle, false)
		}
		if err != nil {
			t.Fatalf("writing %s: %v", name, err)
		}
		w.Release(e.Node, o.Handle, 0, false)
	}
	www, err := w.Mkdir(ctx, mount.Caller{}, mount.Root, "www", 0o755)
	if err != nil {
		t.Fatal(err)
	}
	write(www.Node, "page.txt", "hello, wheel", 0o644)
	write(www.Node, "private.txt", "secret", 0o600)
	write(www.Node, "excepted.txt", "secret", 0o644)
	for name, mode := range map[string]uint32{"closed": 0o700, "blind": 0o711, "open": 0o777, "sticky": 0o1777} {
		dir, err := w.Mkdir(ctx, mount.Caller{}, www.Node, name, mode)
		if err != nil {
			t.Fatal(err)
		}
		write(dir.Node, "page.txt", "inside", 0o644)
	}
	excepted, err := w.Lookup(ctx, mount.Caller{}, www.Node, "excepted.txt")
	if err == nil {
		err = w.SetXattr(ctx, mount.Caller{}, excepted.Node, mount.AccessACL, notForAnn, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	write(mount.Root, "outside.txt", "outside", 0o644)
	if _, err := w.Symlink(ctx, mount.Caller{}, www.Node, "out", "../outside.txt"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
