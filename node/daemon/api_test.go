package daemon

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cartwheel.dev/node/api/view"
	"cartwheel.dev/node/wire"
)

// askAPI asks the API with the token in a node's data, where there is to be one.
func askAPI(t *testing.T, url, data string) (*http.Response, func()) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if data != "" {
		token, err := os.ReadFile(filepath.Join(data, tokenName))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return answer, func() { _ = answer.Body.Close() }
}

func TestAPI_OfARunningNode(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "a")
	admin, err := wire.NewKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	geo := launch(t, "geo-config", "--data", filepath.Join(dir, "geo"), "--listen", "/ip4/127.0.0.1/tcp/0", "--admin", admin.KeyID())
	enrol(t, admin, geo.Ready.Addresses[0], map[string]string{"a": data})
	at := "http://" + freePort(t)
	node := launch(t, "node", "--data", data, "--site", "a", "--listen", "/ip4/127.0.0.1/tcp/0",
		"--geo-config", geo.Ready.Addresses[0], "--lease", "1s", "--api", strings.TrimPrefix(at, "http://"))
	refused, done := askAPI(t, at+"/api/v1/overview", "")
	done()
	if refused.StatusCode != http.StatusUnauthorized {
		t.Errorf("without an account: got %s, want 401", refused.Status)
	}
	ready, done := askAPI(t, at+"/readyz", "")
	done()
	if ready.StatusCode != http.StatusOK {
		t.Errorf("readyz: got %s", ready.Status)
	}
	answer, done := askAPI(t, at+"/api/v1/overview", data)
	var o view.Overview
	if err := json.NewDecoder(answer.Body).Decode(&o); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("got %s, %v", answer.Status, err)
	}
	done()
	if o.Counts.Nodes != 1 || o.Counts.NodesUp != 1 || string(o.Served.Node) != node.Ready.ID || !o.Freshness.GeoConfig.Reachable {
		t.Errorf("got %+v", o)
	}
	for _, path := range []string{"/nodes", "/sites", "/slices", "/network", "/activity", "/clients", "/operations", "/users", "/tokens", "/database", "/settings", "/snapshots", "/schedules", "/scrub", "/space"} {
		answer, done := askAPI(t, at+"/api/v1"+path, data)
		done()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s: got %s", path, answer.Status)
		}
	}
	if code := node.end(); code != 0 {
		t.Errorf("the node ended with %d", code)
	}
	geo.end()
}
