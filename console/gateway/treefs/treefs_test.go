package treefs_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/console/gateway/treefs"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/server/servertest"
	"github.com/caddyserver/caddy/v2"
)

// patience bounds what a test waits for.
const patience = time.Minute

// contactOf writes a contact file for a user of the cluster.
func contactOf(t *testing.T, c *servertest.Cluster, user string) (string, contact.File) {
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

// site makes a folder "www" with a page, a private file and a link out of it, and a
// file beside it.
func site(t *testing.T, c *servertest.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, f := contactOf(t, c, "root")
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
	write(mount.Root, "outside.txt", "outside", 0o644)
	if _, err := w.Symlink(ctx, mount.Caller{}, www.Node, "out", "../outside.txt"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// shown is the folder www as the user ann sees it.
func shown(t *testing.T) *treefs.FS {
	t.Helper()
	c := servertest.Start(t, servertest.Options{})
	site(t, c)
	path, _ := contactOf(t, c, "ann")
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	t.Cleanup(func() { cancel() })
	f := &treefs.FS{Contact: path, Root: "/www"}
	if err := f.Provision(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Cleanup(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func TestFS_ShowsNoMoreThanItMay(t *testing.T) {
	f := shown(t)
	if got, err := fs.ReadFile(f, "page.txt"); err != nil || string(got) != "hello, wheel" {
		t.Errorf("got %q, %v", got, err)
	}
	list, err := f.ReadDir(".")
	if err != nil || len(list) != 2 || list[0].Name() == "out" || list[1].Name() == "out" {
		t.Errorf("got %v, %v; want the two files without the link", list, err)
	}
	for name, want := range map[string]error{
		"../outside.txt": fs.ErrNotExist, "../../outside.txt": fs.ErrNotExist, "/outside.txt": fs.ErrNotExist, "out": fs.ErrNotExist,
		".Site=a/page.txt": fs.ErrNotExist, ".Site=/page.txt": fs.ErrNotExist, "missing": fs.ErrNotExist, "page.txt/x": fs.ErrNotExist,
		"private.txt": fs.ErrPermission,
	} {
		if file, err := f.Open(name); !errors.Is(err, want) {
			t.Errorf("%s: got %v, %v; want %v", name, file, err, want)
		}
	}
}

// TestFS_AnswersRanges asks the standard library's server, which seeks.
func TestFS_AnswersRanges(t *testing.T) {
	h := httptest.NewServer(http.FileServerFS(shown(t)))
	defer h.Close()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL+"/page.txt", http.NoBody)
	req.Header.Set("Range", "bytes=7-")
	resp, err := h.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusPartialContent || string(got) != "wheel" || resp.Header.Get("Last-Modified") == "" {
		t.Errorf("got %d, %q, %v, %v", resp.StatusCode, got, resp.Header, err)
	}
}

func TestFS_RefusesTheKeyOfATrustedHost(t *testing.T) {
	c := servertest.Start(t, servertest.Options{})
	path, _ := contactOf(t, c, "host")
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	defer cancel()
	f := &treefs.FS{Contact: path}
	if err := f.Provision(ctx); !fault.Is(err, fault.Permission) {
		t.Errorf("got %v, want Permission", err)
	}
}
