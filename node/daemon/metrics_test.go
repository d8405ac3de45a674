package daemon

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/freeport"
	"cartwheel.dev/node/wire"
)

// freePort is an address at which nobody listens.
func freePort(t *testing.T) string {
	t.Helper()
	var ports freeport.Pool
	t.Cleanup(func() { ports.Close() })
	port, err := ports.Take()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v\n%s", url, answer.Status, err, text)
	}
	return string(text)
}

func TestMetrics_OfARunningNode(t *testing.T) {
	dir := t.TempDir()
	admin, err := wire.NewKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	geo := launch(t, "geo-config", "--data", filepath.Join(dir, "geo"), "--listen", "/ip4/127.0.0.1/tcp/0", "--admin", admin.KeyID())
	enrol(t, admin, geo.Ready.Addresses[0], map[string]string{"a": filepath.Join(dir, "a")})
	at := freePort(t)
	args := []string{"node", "--data", filepath.Join(dir, "a"), "--site", "a", "--listen", "/ip4/127.0.0.1/tcp/0",
		"--geo-config", geo.Ready.Addresses[0], "--lease", "1s", "--metrics", at}
	node := launch(t, args...)
	if text := fetch(t, "http://"+at+"/readyz"); text != "ready\n" {
		t.Errorf("readyz says %q", text)
	}
	text := fetch(t, "http://"+at+"/metrics")
	for _, want := range []string{`node="` + node.Ready.ID + `"`, `site="a"`, "cartwheel_geo_config_reachable 1", "cartwheel_journal_bytes", "cartwheel_read_only 0"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
	var told bytes.Buffer
	other := append(append([]string{}, args...), "--data", filepath.Join(dir, "b"))
	if code := Run(context.Background(), other, Stdio{Out: io.Discard, Err: &told}); code != fault.Busy.ExitCode() || !strings.Contains(told.String(), at) {
		t.Errorf("an address that is taken: exit %d: %s", code, told.String())
	}
	if code := node.end(); code != 0 {
		t.Errorf("the node ended with %d", code)
	}
	if _, err := net.Dial("tcp", at); err == nil {
		t.Error("the figures outlive their node")
	}
	geo.end()
}
