//go:build linux

package cartwheel_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"cartwheel.dev/clients/mount/mounttest"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/servertest"
	"golang.org/x/sys/unix"
)

// TestSnapshot_OfAPartShowsNothingElse makes a snapshot of a directory whose parent is at
// another site. Its name works there and below, also where a directory was moved out of it
// since, and nowhere else.
func TestSnapshot_OfAPartShowsNothingElse(t *testing.T) {
	t.Parallel()
	mounttest.NeedFUSE(t)
	c := servertest.Start(t, servertest.Options{Sites: []string{"a", "b"}})
	point := mounted(t, clientOf(t, c, "a"))
	must(t, os.Mkdir(filepath.Join(point, ".Site=a", "near"), 0o755), os.Mkdir(filepath.Join(point, "near", ".Site=b", "far"), 0o755),
		os.MkdirAll(filepath.Join(point, "near/far/one/two"), 0o755), os.Mkdir(filepath.Join(point, "near/other"), 0o755),
		os.WriteFile(filepath.Join(point, "near/far/one/two/file"), []byte("as it was"), 0o644))
	described(t, mounted(t, clientOf(t, c, "b"))) // all is at the actives then
	var far unix.Stat_t
	must(t, unix.Stat(filepath.Join(point, "near/far"), &far))
	orderSnapshot(t, c, &pb.SnapshotRequest{Make: "part", Path: "/near/far", Root: far.Ino})
	must(t, os.WriteFile(filepath.Join(point, "near/far/one/two/file"), []byte("later"), 0o644),
		os.Rename(filepath.Join(point, "near/far/one"), filepath.Join(point, "moved")))
	for _, path := range []string{"near/far/.Snapshot=part/one/two/file", "moved/.Snapshot=part/two/file", "moved/two/.Snapshot=part/file"} {
		if data, err := os.ReadFile(filepath.Join(point, path)); err != nil || string(data) != "as it was" {
			t.Errorf("%s: got %q, %v", path, data, err)
		}
	}
	for _, path := range []string{".Snapshot=part", "near/.Snapshot=part", "near/other/.Snapshot=part", "near/.Snapshot=part/far"} {
		if _, err := os.Stat(filepath.Join(point, path)); !errors.Is(err, unix.ENOENT) {
			t.Errorf("%s: got %v, want ENOENT", path, err)
		}
	}
}
