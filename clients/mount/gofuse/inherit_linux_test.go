package gofuse

import (
	"os/exec"
	"strings"
	"testing"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/mount/memfs"
	"cartwheel.dev/clients/mount/mounttest"
)

func TestChildrenGetNoEndOfTheConnection(t *testing.T) {
	mounttest.NeedFUSE(t)
	m, err := Mount(memfs.New(memfs.Options{}).View(), mount.Options{Point: mounttest.Point(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Unmount(mount.UnmountLimit); err != nil {
			t.Error(err)
		}
	}()
	out, err := exec.Command("ls", "-l", "/proc/self/fd").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if strings.Contains(string(out), devFuse) {
		t.Errorf("a child has the device open:\n%s", out)
	}
}
