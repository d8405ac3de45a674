package supervisor

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"cartwheel.dev/clients/supervisor/supervisortest"
)

func TestMain(m *testing.M) {
	supervisortest.Main(os.Stdout)
	os.Exit(m.Run())
}

// TestKill_EndsAMountThatWaitsForItself kills a mount which is out of the list of mounts
// already, as one that was asked to stop is.
func TestKill_EndsAMountThatWaitsForItself(t *testing.T) {
	point := t.TempDir()
	f := New()
	t.Cleanup(f.Close)
	command := exec.Command(os.Args[0])
	command.Env = supervisortest.Stuck(point)
	c, err := f.Spawn(Spec{Name: "mount", Mount: point, Log: filepath.Join(t.TempDir(), "log"), Command: command})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Unmount(point, syscall.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	if c.Kill(); c.Running() {
		t.Error("it was killed, and runs on")
	}
}
