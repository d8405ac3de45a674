package gofuse_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/mount/gofuse"
	"cartwheel.dev/clients/mount/memfs"
	"cartwheel.dev/clients/mount/mounttest"
	"golang.org/x/sys/unix"
)

// TestMount_ServesItsOwnProcess has a process with one slot of the scheduler
// open files of its own mount, as package os does it: with the runtime's poller.
func TestMount_ServesItsOwnProcess(t *testing.T) {
	mounttest.NeedFUSE(t)
	const role = "GOFUSE_OWN_MOUNT"
	if point := os.Getenv(role); point != "" {
		useOwn(t, point)
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	point := mounttest.Point(t)
	cmd := exec.CommandContext(ctx, self, "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), role+"="+point)
	// Killed while it waits for itself, it is stuck until its mount is cut off.
	cmd.Cancel = func() error { return errors.Join(cmd.Process.Kill(), unix.Unmount(point, unix.MNT_FORCE)) }
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func useOwn(t *testing.T, point string) {
	runtime.GOMAXPROCS(1)
	m, err := gofuse.Mount(memfs.New(memfs.Options{}).View(), mount.Options{Point: point})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Unmount(mount.UnmountLimit); err != nil {
			t.Error(err)
		}
	}()
	file := filepath.Join(point, "file")
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
}
