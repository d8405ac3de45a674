package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestUnit_IsAcceptedBySystemd has systemd itself read the units.
func TestUnit_IsAcceptedBySystemd(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	dir := t.TempDir()
	args := []string{"verify"}
	for _, process := range []string{"geo-config", "node"} {
		c := clusterUnitCmd{Process: process, Program: "/bin/true", User: "root", Etc: "/etc/cartwheel", Data: "/var/lib/cartwheel", Listen: []string{"/ip4/0.0.0.0/tcp/7300"}}
		path := filepath.Join(dir, "cartwheel-"+process+".service")
		if err := os.WriteFile(path, []byte(c.unit()), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
	}
	if out, err := exec.Command(analyze, args...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze says %v:\n%s", err, out)
	}
}
