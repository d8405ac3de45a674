package daemon

import (
	"bytes"
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/node/api"
	"cartwheel.dev/node/people"
	"cartwheel.dev/node/wire"
)

// visitor is a browser at one node.
type visitor struct {
	*testing.T
	at, csrf string
	cookies  []*http.Cookie
}

func (v *visitor) send(want int, method, path string, body any) {
	v.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		v.Fatal(err)
	}
	r, err := http.NewRequestWithContext(v.Context(), method, v.at+"/api/v1"+path, bytes.NewReader(text))
	if err != nil {
		v.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(api.CSRFHeader, v.csrf)
	for _, k := range v.cookies {
		r.AddCookie(k)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		v.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != want {
		v.Fatalf("%s %s: got %s, want %d", method, path, answer.Status, want)
	}
	for _, set := range answer.Cookies() {
		v.cookies = slices.DeleteFunc(slices.Clone(v.cookies), func(k *http.Cookie) bool { return k.Name == set.Name })
		if set.MaxAge >= 0 {
			v.cookies = append(v.cookies, set)
		}
	}
	if strings.HasPrefix(path, "/session") && method != "DELETE" {
		var session api.SessionView
		if json.NewDecoder(answer.Body).Decode(&session) == nil {
			v.csrf = session.CSRF
		}
	}
}

// TestPeople_SignInAtARunningNode runs a node with an administrator's key, at which
// people sign in, and one without, at which their sessions count, also where it has not
// seen them before geo-config ends.
func TestPeople_SignInAtARunningNode(t *testing.T) {
	dir := t.TempDir()
	key := filepath.Join(dir, "admin.key")
	admin, err := wire.MakeKey(key)
	if err != nil {
		t.Fatal(err)
	}
	geo := launch(t, "geo-config", "--data", filepath.Join(dir, "geo"), "--listen", "/ip4/127.0.0.1/tcp/0", "--admin", admin.KeyID())
	data := map[string]string{"a": filepath.Join(dir, "a"), "b": filepath.Join(dir, "b")}
	enrol(t, admin, geo.Ready.Addresses[0], data)
	s := people.New(people.Options{Store: openStore(t, admin, geo.Ready.Addresses[0])})
	link, err := s.FirstLink(t.Context(), people.Actor{Who: "test"}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]string{}
	var nodes []interface{ end() int }
	for site, extra := range map[string][]string{"a": {"--api-key", key}, "b": nil} {
		address := freePort(t)
		at[site] = "http://" + address
		nodes = append(nodes, launch(t, append([]string{"node", "--data", data[site], "--site", site, "--listen", "/ip4/127.0.0.1/tcp/0",
			"--geo-config", geo.Ready.Addresses[0], "--lease", "1s", "--api", address}, extra...)...))
	}
	v := &visitor{T: t, at: at["b"]}
	v.send(http.StatusForbidden, "POST", "/session", api.SignIn{Link: link})
	v.at = at["a"]
	v.send(http.StatusOK, "POST", "/session", api.SignIn{Link: link})
	v.send(http.StatusOK, "PUT", "/session/password", api.PasswordChange{New: "correct horse battery"})
	v.send(http.StatusOK, "POST", "/accounts", api.NewAccount{Name: "ann", Role: "viewer"})
	before := *v
	before.at = at["b"]
	before.send(http.StatusOK, "GET", "/overview", nil)
	v.send(http.StatusNoContent, "DELETE", "/session", nil)
	before.send(http.StatusUnauthorized, "GET", "/overview", nil)
	v.send(http.StatusOK, "POST", "/session", api.SignIn{Name: people.FirstAccount, Password: "correct horse battery"})
	v.send(http.StatusOK, "GET", "/overview", nil) // this node vouches for the session
	geo.end()
	v.at = at["b"] // which has not checked it, and cannot
	v.send(http.StatusOK, "GET", "/overview", nil)
	v.send(http.StatusForbidden, "POST", "/accounts", api.NewAccount{Name: "bob", Role: "viewer"})
	for _, n := range nodes {
		if code := n.end(); code != 0 {
			t.Errorf("a node ended with %d", code)
		}
	}
}
