//go:build linux

package cartwheel_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"cartwheel.dev/clients/earlier"
	"cartwheel.dev/clients/mount/mounttest"
	"cartwheel.dev/clients/sending"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/servertest"
	"golang.org/x/sys/unix"
)

// momentAt asks a mount as the command does.
func momentAt(path string) (earlier.Moment, error) {
	buf := make([]byte, 256)
	n, err := unix.Lgetxattr(path, earlier.MomentAttribute, buf)
	if err != nil {
		return earlier.Moment{}, fault.FromOS("", path, err)
	}
	return earlier.ParseMoment(path, buf[:n])
}

// TestSending_CopiesASnapshotAndWhatChanged sends a tree over two sites, all of which changed
// since, and then the difference to a later snapshot. Each copy is the tree as it was.
func TestSending_CopiesASnapshotAndWhatChanged(t *testing.T) {
	t.Parallel()
	mounttest.NeedFUSE(t)
	c := servertest.Start(t, servertest.Options{Sites: []string{"a", "b"}})
	one, two := mounted(t, clientOf(t, c, "a")), mounted(t, clientOf(t, c, "b"))
	tree, to := filepath.Join(two, "tree"), filepath.Join(t.TempDir(), "copy")
	plantPast(t, filepath.Join(one, "tree"))
	sparse, err := os.Create(filepath.Join(one, "tree/near/sparse"))
	must(t, err)
	_, err = sparse.WriteAt(noise(5000), 10<<20+7)
	must(t, err, sparse.Truncate(16<<20), sparse.Close())
	snapshot := func(name string) (map[string]string, hlc.Time) {
		want := described(t, tree) // all of it is at the actives then
		return want, orderSnapshot(t, c, &pb.SnapshotRequest{Make: name})
	}
	copied := func(name, since string, want map[string]string, at hlc.Time) int {
		t.Helper()
		var stream bytes.Buffer
		sent, err := sending.Send(t.Context(), &stream, 0, sending.Source{Path: tree, Snapshot: name, Since: since, Moment: momentAt})
		must(t, err)
		if sent.Time != at {
			t.Errorf("%s is sent as of %v, and it is of %v", name, sent.Time, at)
		}
		size := stream.Len()
		_, err = sending.Receive(t.Context(), &stream, sending.Place{Path: to})
		must(t, err)
		sameAttributes(t, to, want)
		return size
	}
	before, at := snapshot("before")
	changePast(t, tree)
	copied("before", "", before, at)
	after, at := snapshot("after")
	must(t, os.RemoveAll(filepath.Join(tree, "far/moved")))
	copied("after", "before", after, at)

	past, err := os.Open(filepath.Join(tree, ".Snapshot=before/near/sparse"))
	must(t, err)
	defer past.Close()
	for _, c := range []struct{ from, data, hole int64 }{{0, 10<<20 + 7, 0}, {10<<20 + 100, 10<<20 + 100, 10<<20 + 5007}} {
		data, err := unix.Seek(int(past.Fd()), c.from, unix.SEEK_DATA)
		must(t, err)
		if hole, err := unix.Seek(int(past.Fd()), c.from, unix.SEEK_HOLE); err != nil || data != c.data || hole != c.hole {
			t.Errorf("from %d: data at %d and a hole at %d, %v, want %d and %d", c.from, data, hole, err, c.data, c.hole)
		}
	}
	if _, err := unix.Seek(int(past.Fd()), 10<<20+6000, unix.SEEK_DATA); !errors.Is(err, unix.ENXIO) {
		t.Errorf("behind all data: got %v, want ENXIO", err)
	}
	if _, err := momentAt(tree); !errors.Is(err, unix.ENODATA) {
		t.Errorf("the present tells a moment: %v", err)
	}
	must(t, os.WriteFile(filepath.Join(tree, "near/small"), []byte("one more"), 0o640))
	last, at := snapshot("last")
	if n := copied("last", "after", last, at); n > 100_000 {
		t.Errorf("the difference by one file and a removed folder has %d bytes", n)
	}
}
