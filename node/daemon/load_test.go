package daemon

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
)

func TestLoadConfig_FlagsBeforeEnvironmentBeforeFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "node.yaml")
	write(t, file, "data: /from/file\nsite: file\nlease: 5s\nlisten: [/ip4/1.2.3.4/tcp/1]\n")
	c, err := LoadConfig(file,
		[]string{"CARTWHEELD_SITE=env", "CARTWHEELD_DATA=/from/env", "CARTWHEELD_LISTEN=/ip4/1.1.1.1/tcp/1,/ip4/2.2.2.2/tcp/2", "HOME=/x"},
		map[string]any{"data": "/from/flag"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Data != "/from/flag" || c.Site != "env" || c.Lease != 5*time.Second {
		t.Errorf("got data %q, site %q, lease %v; want /from/flag, env, 5s", c.Data, c.Site, c.Lease)
	}
	if want := []string{"/ip4/1.1.1.1/tcp/1", "/ip4/2.2.2.2/tcp/2"}; !slices.Equal(c.Listen, want) {
		t.Errorf("got listen %q, want %q", c.Listen, want)
	}
	if c.MaxLeases != 200_000 {
		t.Errorf("got max_leases %d, want the default", c.MaxLeases)
	}
	if err := c.Validate(); err != nil {
		t.Errorf("validate: %v", err)
	}
}

func TestLoadConfig_RefusesUnknownKeysByName(t *testing.T) {
	file := filepath.Join(t.TempDir(), "node.yaml")
	write(t, file, "data: /d\nsiet: tokyo\nleese: 3s\n")
	_, err := LoadConfig(file, nil, nil)
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "leese, siet") || !strings.Contains(err.Error(), file) {
		t.Errorf("got %v, want both unknown keys and the file named", err)
	}
	_, err = LoadConfig("", []string{"CARTWHEELD_SIET=x"}, nil)
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "siet") {
		t.Errorf("got %v, want the unknown variable named", err)
	}
}

func TestValidate_ReportsEveryProblemWithItsKey(t *testing.T) {
	c, err := LoadConfig("", nil, map[string]any{
		"listen": []string{"localhost:1"}, "lease": "1ms", "site": "a b", "geo_config": []string{"/ip4/1.1.1.1/tcp/1"},
		"pprof": "0.0.0.0:6060", "log_level": "loud",
	})
	if err != nil {
		t.Fatal(err)
	}
	err = c.Validate()
	for _, key := range []string{"data", "site", "listen", "lease", "geo_config", "pprof", "log_level"} {
		if err == nil || !strings.Contains(err.Error(), key+" ") {
			t.Errorf("got %v, want a word on %s", err, key)
		}
	}
}

func TestLoadConfig_RefusesWhatIsNoValue(t *testing.T) {
	file := filepath.Join(t.TempDir(), "node.yaml")
	write(t, file, "workers: many\n")
	for where, load := range map[string]func() error{
		file:           func() error { _, err := LoadConfig(file, nil, nil); return err },
		"environment":  func() error { _, err := LoadConfig("", []string{"CARTWHEELD_WORKERS=many"}, nil); return err },
		"command line": func() error { _, err := LoadConfig("", nil, map[string]any{"workers": "many"}); return err },
	} {
		if err := load(); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "workers: ") || !strings.Contains(err.Error(), where) {
			t.Errorf("%s: got %v, want the key and where it stands", where, err)
		}
	}
	c, err := LoadConfig("", []string{"CARTWHEELD_WORKERS=32", "CARTWHEELD_LEASE=2s", "CARTWHEELD_SITE=1"}, nil)
	if err != nil || c.Workers != 32 || c.Lease != 2*time.Second || c.Site != "1" {
		t.Errorf("from the environment: workers %d, lease %v, site %q, %v", c.Workers, c.Lease, c.Site, err)
	}
}

func TestLoadConfig_NamesAMissingFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "absent.yaml")
	if _, err := LoadConfig(name, nil, nil); !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), name) {
		t.Errorf("got %v, want not found with the name", err)
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
