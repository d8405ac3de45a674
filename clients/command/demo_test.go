package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cartwheel.dev/geo-config/fault"
)

func TestDemoConsole_SaysWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	self := filepath.Join(dir, "bin", "cartwheel")
	write := func(parts ...string) string {
		path := filepath.Join(append([]string{dir}, parts...)...)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	find := func(c demoRunCmd, missing, folder string) {
		t.Helper()
		got, err := c.console(self)
		if err != nil || !strings.Contains(got.Missing, missing) || missing == "" && got.Missing != "" || folder != "" && filepath.Clean(got.Dir) != folder {
			t.Errorf("got %+v, %v, want %q missing and folder %q", got, err, missing, folder)
		}
	}
	refuse := func(c demoRunCmd, subject string) {
		t.Helper()
		if got, err := c.console(self); !fault.Is(err, fault.NotFound) || fault.SubjectOf(err) != subject {
			t.Errorf("got %+v, %v, want that %s is not found", got, err, subject)
		}
	}
	own, gateway := filepath.Join(dir, "own"), filepath.Join(dir, "bin", "cartwheel-gateway")
	find(demoRunCmd{}, "scripts/build", "")
	refuse(demoRunCmd{Console: own}, gateway)
	write("bin", "cartwheel-gateway")
	find(demoRunCmd{}, "scripts/console", "")
	refuse(demoRunCmd{Console: own}, own)
	find(demoRunCmd{NoConsole: true}, "", "")
	write("share", "cartwheel", "console", "index.html")
	find(demoRunCmd{}, "", filepath.Join(dir, "share", "cartwheel", "console"))
	write("console", "dist", "index.html")
	find(demoRunCmd{}, "", filepath.Join(dir, "console", "dist"))
	write("own", "index.html")
	find(demoRunCmd{Console: own}, "", own)
}
