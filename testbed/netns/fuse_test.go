package netns_test

import (
	"context"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"cartwheel.dev/clients/supervisor/supervisortest"
	"cartwheel.dev/testbed/netns"
)

// TestDelete_EndsWhatWaitsForItsOwnMount ends a process that SIGKILL does not end.
func TestDelete_EndsWhatWaitsForItsOwnMount(t *testing.T) {
	r := run(t)
	name := r.Name("one")
	if err := netns.Create(name); err != nil {
		t.Fatal(err)
	}
	point := t.TempDir()
	cmd := netns.Command(context.Background(), name, os.Args[0])
	cmd.Env = supervisortest.Stuck(point)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(point, unix.MNT_DETACH|unix.MNT_FORCE) })
	if said := supervisortest.Await(out); said != "" {
		t.Fatalf("the process says %s", said)
	}
	if n, err := netns.Delete(t.Context(), 0, name); err != nil || n != 1 {
		t.Errorf("ended %d: %v", n, err)
	}
	_ = cmd.Wait() // it was killed
}
