package daemon

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/geo/changes"
	"cartwheel.dev/node/geo/join"
	"cartwheel.dev/node/geo/remote"
	"cartwheel.dev/node/wire"
)

// foundedGeoConfig is a geo-config process with an administrator.
type foundedGeoConfig struct {
	*process
	store   *remote.Store
	address string
}

func startFounded(t *testing.T) *foundedGeoConfig {
	t.Helper()
	key, err := wire.MakeKey(filepath.Join(t.TempDir(), "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	f := &foundedGeoConfig{process: launch(t, "geo-config", "--data", t.TempDir(), "--listen", "/ip4/127.0.0.1/tcp/0", "--admin", key.KeyID())}
	f.address = f.Ready.Addresses[0]
	host, err := wire.New(wire.Options{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	if f.store, err = join.Dial(host, []string{f.address}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.store.Close()
		host.Close()
		f.end()
	})
	return f
}

func (f *foundedGeoConfig) token(life time.Duration) join.Token {
	f.t.Helper()
	token, err := join.Make(f.t.Context(), f.store, changes.Order{Who: "ann", At: time.Now()}, []string{f.address}, "oslo", life)
	if err != nil {
		f.t.Fatal(err)
	}
	return token
}

// nodes returns the IDs of the roster.
func (f *foundedGeoConfig) nodes() (out []string) {
	f.t.Helper()
	rows, err := f.store.Read(f.t.Context(), geoconfig.Query{Nodes: true, Users: true})
	if err != nil {
		f.t.Fatal(err)
	}
	for _, n := range rows.Nodes {
		out = append(out, string(n.ID))
	}
	return out
}

// run runs a command to its end.
func run(t *testing.T, in string, args ...string) (code int, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var b bytes.Buffer
	code = Run(ctx, args, Stdio{In: strings.NewReader(in), Out: &b, Err: &b})
	return code, b.String()
}

func TestJoin_AddsAMachineOnce(t *testing.T) {
	f := startFounded(t)
	token := f.token(time.Hour).String()
	first, second := t.TempDir(), t.TempDir()
	config := filepath.Join(first, "node.yaml")
	code, text := run(t, token+"\n", "join", "-", "--address", "127.0.0.1", "--port", "7499", "--data", filepath.Join(first, "data"), "--config", config)
	if code != 0 || !strings.Contains(text, "at oslo") {
		t.Fatalf("exit %d: %s", code, text)
	}
	if nodes := f.nodes(); len(nodes) != 1 || !strings.Contains(text, nodes[0]) {
		t.Errorf("the roster has %v; the command said %s", nodes, text)
	}
	values, err := LoadConfig(config, nil, nil)
	if err != nil || values.Validate() != nil || values.Site != "oslo" || len(values.GeoConfig) != 1 || values.GeoConfig[0] != f.address {
		t.Errorf("the file says %+v, %v", values, err)
	}
	code, text = run(t, "", "join", token, "--address", "127.0.0.1", "--data", filepath.Join(second, "data"), "--config", filepath.Join(second, "node.yaml"))
	if code != fault.Unauthorized.ExitCode() || !strings.Contains(text, "used or revoked") {
		t.Errorf("the second machine: exit %d: %s", code, text)
	}
	if _, err := os.Stat(filepath.Join(second, "node.yaml")); err == nil {
		t.Error("the machine that was refused has a configuration")
	}
	if nodes := f.nodes(); len(nodes) != 1 {
		t.Errorf("the roster has %v", nodes)
	}
}

func TestJoin_RefusesOldAndWrongTokens(t *testing.T) {
	f := startFounded(t)
	dir := t.TempDir()
	args := func(token string) []string {
		return []string{"join", token, "--address", "127.0.0.1", "--data", filepath.Join(dir, "data"), "--config", filepath.Join(dir, "node.yaml")}
	}
	short := f.token(time.Millisecond)
	<-time.After(2 * time.Millisecond)
	if code, text := run(t, "", args(short.String())...); code != fault.Expired.ExitCode() || !strings.Contains(text, "has expired") {
		t.Errorf("an expired one: exit %d: %s", code, text)
	}
	short.ExpiresNS += time.Hour.Nanoseconds() // whoever has it may say so; geo-config knows better
	if code, text := run(t, "", args(short.String())...); code != fault.Unauthorized.ExitCode() {
		t.Errorf("a forged one: exit %d: %s", code, text)
	}
	if code, text := run(t, "", args("boston")...); code != fault.Invalid.ExitCode() || !strings.Contains(text, "cartwheel cluster token") {
		t.Errorf("no token: exit %d: %s", code, text)
	}
	if nodes := f.nodes(); len(nodes) != 0 {
		t.Errorf("the roster has %v", nodes)
	}
}

func TestMake_RefusesAnEndlessToken(t *testing.T) {
	f := startFounded(t)
	for _, life := range []time.Duration{0, -time.Second, join.MaxLife + 1} {
		if _, err := join.Make(t.Context(), f.store, changes.Order{Who: "ann", At: time.Now()}, []string{f.address}, "oslo", life); !fault.Is(err, fault.Invalid) {
			t.Errorf("%v: %v, want Invalid", life, err)
		}
	}
}
