package acceptance

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// startPrograms starts a demo for a test that runs other people's programs on
// its mounts. Such tests take minutes and need the programs named, so they run
// only where CARTWHEEL_PROGRAMS is set; there a missing program is a failure.
func startPrograms(t *testing.T, needs ...string) *demo {
	t.Helper()
	if os.Getenv("CARTWHEEL_PROGRAMS") == "" {
		t.Skip("set CARTWHEEL_PROGRAMS=1 to run real programs on the mounts")
	}
	for _, name := range needs {
		if _, err := exec.LookPath(name); err != nil {
			t.Fatalf("%v: run scripts/setup programs", err)
		}
	}
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(path, 0o755); err != nil { // some programs run as a user of their own
			t.Fatal(err)
		}
	}
	if os.Getenv("CARTWHEEL_PROCESSES") == "" {
		t.Fatal("set CARTWHEEL_PROCESSES=1, too")
	}
	return startDemoIn(t, filepath.Join(dir, "demo"))
}

// shell runs a script with sh -eu in dir and returns what it printed.
func (d *demo) shell(dir, script string) string {
	d.t.Helper()
	return d.run("sh", "-euc", "cd '"+dir+"'\n"+script)
}

// mkdir makes a directory on the first site's mount, whose active is at that
// site, and returns its path on every site's mount, in the sites' order.
func (d *demo) mkdir(name string) []string {
	d.t.Helper()
	if err := os.Mkdir(filepath.Join(d.Sites[0].Mount, name), 0o755); err != nil {
		d.t.Fatal(err)
	}
	var out []string
	for _, s := range d.Sites {
		out = append(out, filepath.Join(s.Mount, name))
	}
	return out
}

// same fails the test where two commands print different things.
func (d *demo) same(what, got, want string) {
	d.t.Helper()
	if got == want {
		return
	}
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range wantLines {
		if i >= len(gotLines) || gotLines[i] != wantLines[i] {
			line := "nothing"
			if i < len(gotLines) {
				line = gotLines[i]
			}
			d.t.Errorf("%s: line %d is %q, want %q (%d lines, want %d)", what, i+1, line, wantLines[i], len(gotLines), len(wantLines))
			return
		}
	}
	d.t.Errorf("%s: %d lines, want %d; the first that is too many is %q", what, len(gotLines), len(wantLines), gotLines[len(wantLines)])
}
