//go:build linux

package gofuse_test

import (
	"log/slog"
	"testing"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/mount/gofuse"
	"cartwheel.dev/clients/mount/memfs"
	"cartwheel.dev/clients/mount/mounttest"
)

// TestSuite_OnTheTwin runs the suite on the twin, mounted twice. Nothing stays
// in the kernels' caches, so that what one mount does the other sees at once.
func TestSuite_OnTheTwin(t *testing.T) {
	t.Parallel()
	mounttest.Run(t, func(t *testing.T) []string {
		store := memfs.New(memfs.Options{})
		return []string{put(t, store), put(t, store)}
	})
}

// TestSuite_OnTheCachedTwin runs the suite on one mount whose kernel keeps
// everything for an hour: the binding alone must keep it true.
func TestSuite_OnTheCachedTwin(t *testing.T) {
	t.Parallel()
	mounttest.Run(t, func(t *testing.T) []string {
		return []string{put(t, memfs.New(memfs.Options{Valid: time.Hour}))}
	})
}

func put(t *testing.T, store *memfs.Store) string {
	t.Helper()
	m, err := gofuse.Mount(store.View(), options(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Unmount(mount.UnmountLimit); err != nil {
			t.Error(err)
		}
	})
	return m.Point()
}

func options(t *testing.T) mount.Options {
	t.Helper()
	return mount.Options{
		Point: mounttest.Point(t), AllowOther: true, SetID: true, Devices: true,
		Logger: slog.New(slog.NewTextHandler(testLog{t}, nil)),
	}
}

// testLog fails the test for whatever is logged: a request that panicked, an
// answer that the kernel refused.
type testLog struct{ t *testing.T }

func (l testLog) Write(line []byte) (int, error) {
	l.t.Errorf("logged: %s", line)
	return len(line), nil
}
