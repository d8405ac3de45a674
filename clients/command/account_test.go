package command

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/clients/bootstrap"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/inmem"
	"cartwheel.dev/node/geo/serve"
	"cartwheel.dev/node/people"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/wiretest"
)

// office is a geo-config that commands reach by an administrator's file.
type office struct {
	*testing.T
	store *inmem.Store
	admin string // the file
	dir   string
}

func newOffice(t *testing.T) *office {
	t.Helper()
	dir := t.TempDir()
	o := &office{T: t, store: inmem.New(), admin: filepath.Join(dir, "admin.json"), dir: dir}
	host := wiretest.Open(t, wire.Options{Key: wiretest.Key(t, 1), Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Limits: wire.DefaultLimits(), Times: wiretest.Times()})
	server := serve.Serve(host, o.store, serve.Options{})
	t.Cleanup(func() { server.Close(); o.store.Close() })
	key, err := wire.MakeKey(filepath.Join(dir, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.store.Apply(t.Context(), geoconfig.Batch{Key: "first", Cluster: &geoconfig.Cluster{ID: "c1", Generation: 1},
		Users: []geoconfig.User{{Name: "root", Key: key.KeyID(), TrustedHost: true, Admin: true}}})
	if err != nil {
		t.Fatal(err)
	}
	file := bootstrap.Admin{Cluster: "c1", GeoConfig: []string{host.Addresses()[0] + "/p2p/" + host.KeyID()}, Key: "admin.key", Console: "https://console.example/"}
	if err := file.Save(o.admin); err != nil {
		t.Fatal(err)
	}
	return o
}

// run wants an exit code, and returns what was printed.
func (o *office) run(want int, words ...string) (out, said string) {
	o.Helper()
	ctx, cancel := context.WithTimeout(o.Context(), 30*time.Second)
	defer cancel()
	var stdout, stderr bytes.Buffer
	if code := Run(ctx, append(append([]string{"cartwheel"}, words...), "--admin", o.admin), Stdio{Out: &stdout, Err: &stderr}); code != want {
		o.Fatalf("%q: exit code %d, want %d: %s%s", words, code, want, stdout.String(), stderr.String())
	}
	return stdout.String(), stderr.String()
}

func TestConsoleLink_LetsTheFirstPersonIn(t *testing.T) {
	o := newOffice(t)
	out, _ := o.run(0, "account", "ls")
	if !strings.Contains(out, "no accounts yet") {
		t.Errorf("got %q", out)
	}
	var link linkView
	out, _ = o.run(0, "console", "link", "--json")
	if err := json.Unmarshal([]byte(out), &link); err != nil {
		t.Fatal(err)
	}
	token, ok := strings.CutPrefix(link.URL, "https://console.example/sign-in#link=")
	if !ok || link.Account != "admin" {
		t.Fatalf("got %+v", link)
	}
	s := people.New(people.Options{Store: o.store})
	if _, session, err := s.UseLink(t.Context(), token, people.Origin{Address: "192.0.2.1"}); err != nil || session.Role != people.Administrator {
		t.Fatalf("the link opens %+v, %v", session, err)
	}
	_, said := o.run(2, "console", "link")
	if !strings.Contains(said, "name the one to sign in") {
		t.Errorf("got %q", said)
	}
	o.run(fault.ExitCode(fault.E(fault.NotFound, "", "", "")), "console", "link", "nobody")
	o.run(2, "console", "link", "admin", "--console", "console.example")
	o.run(2, "console", "link", "admin", "--expires", "25h")
}

func TestAccount_IsAddedChangedAndRemoved(t *testing.T) {
	o := newOffice(t)
	file := filepath.Join(o.dir, "password")
	if err := os.WriteFile(file, []byte("correct horse battery\r\nmore\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.run(0, "account", "add", "root", "--role", "administrator")
	o.run(0, "account", "add", "ann")
	o.run(0, "account", "role", "ann", "operator")
	o.run(0, "account", "password", "ann", "--file", file)
	s := people.New(people.Options{Store: o.store})
	token, _, err := s.SignIn(t.Context(), "ann", "correct horse battery", people.Origin{})
	if err != nil {
		t.Fatal(err)
	}
	o.run(0, "account", "disable", "ann")
	if _, err := s.Authenticate(t.Context(), token); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("after disabling: %v, want unauthorized", err)
	}
	out, _ := o.run(0, "account", "ls")
	for _, line := range []string{"ann      operator       not: it is disabled", "root     administrator  by a link (cartwheel console link root)"} {
		if !strings.Contains(out, line) {
			t.Errorf("the list lacks %q:\n%s", line, out)
		}
	}
	o.run(0, "account", "enable", "ann")
	if _, said := o.run(fault.ExitCode(fault.E(fault.NotEmpty, "", "", "")), "account", "remove", "root"); !strings.Contains(said, "last administrator") {
		t.Errorf("got %q", said)
	}
	o.run(0, "account", "remove", "ann")
	out, _ = o.run(0, "audit", "--json")
	for _, action := range []string{"account.add", "account.role", "account.password", "account.disable", "account.enable", "account.remove"} {
		if !strings.Contains(out, `"action": "`+action+`"`) {
			t.Errorf("the audit log has no %s", action)
		}
	}
	if strings.Contains(out, "correct horse") {
		t.Error("the audit log has the password")
	}
}
