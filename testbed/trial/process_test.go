package trial

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"cartwheel.dev/geo-config/fault"
)

func TestLook_MeasuresAProcess(t *testing.T) {
	before, err := Look(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	const much = 64 << 20
	held := make([]byte, much)
	for round := 0; ; round++ {
		for i := range held {
			held[i] += byte(i)
		}
		u, err := Look(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if u.CPU > before.CPU { // it counts by ticks
			if u.Resident < much || u.Peak < u.Resident {
				t.Errorf("%d bytes are held, and %d seen, %d at most", len(held), u.Resident, u.Peak)
			}
			break
		}
	}
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := Look(ended.Process.Pid); !fault.Is(err, fault.NotFound) {
		t.Errorf("a process that has ended: %v, want not found", err)
	}
}

func TestFolderBytes_CountsAllFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]int{"x": 10, "a/y": 200, "a/b/z": 3000} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := FolderBytes(dir); err != nil || n != 3210 {
		t.Errorf("%d bytes, %v; want 3210", n, err)
	}
}
