package treefs_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"cartwheel.dev/console/gateway/gatewaytest"
	"cartwheel.dev/console/gateway/treefs"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/server/servertest"
	"github.com/caddyserver/caddy/v2"
)

// shown is the folder www as the user ann sees it.
func shown(t *testing.T) *treefs.FS {
	t.Helper()
	c := servertest.Start(t, servertest.Options{})
	gatewaytest.WriteSite(t, c)
	path, _ := gatewaytest.Contact(t, c, "ann")
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
	if err != nil || len(list) != 7 || slices.ContainsFunc(list, func(e fs.DirEntry) bool { return e.Name() == "out" }) {
		t.Errorf("got %v, %v; want the files and folders without the link", list, err)
	}
	if got, err := fs.ReadFile(f, "blind/page.txt"); err != nil || string(got) != "inside" {
		t.Errorf("in a folder that may be searched: got %q, %v", got, err)
	}
	for _, name := range []string{"closed", "blind"} {
		if list, err := f.ReadDir(name); !errors.Is(err, fs.ErrPermission) || len(list) > 0 {
			t.Errorf("the list of %s: got %v, %v", name, list, err)
		}
	}
	for name, want := range map[string]error{
		"../outside.txt": fs.ErrNotExist, "../../outside.txt": fs.ErrNotExist, "/outside.txt": fs.ErrNotExist, "out": fs.ErrNotExist,
		".Site=a/page.txt": fs.ErrNotExist, ".Site=/page.txt": fs.ErrNotExist, "missing": fs.ErrNotExist, "page.txt/x": fs.ErrNotExist,
		"private.txt": fs.ErrPermission, "excepted.txt": fs.ErrPermission, "closed": fs.ErrPermission, "closed/page.txt": fs.ErrPermission,
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
	path, _ := gatewaytest.Contact(t, c, "host")
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	defer cancel()
	f := &treefs.FS{Contact: path}
	if err := f.Provision(ctx); !fault.Is(err, fault.Permission) {
		t.Errorf("got %v, want Permission", err)
	}
}
