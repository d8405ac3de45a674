//go:build linux && root

package embedded_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// TestApply_RefusedWhileTheDiskIsFull mounts a disk that is soon full. Run it
// with -tags root, as root.
func TestApply_RefusedWhileTheDiskIsFull(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("no disk can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 600<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	rev := apply(t, s, first())
	var err error
	for i := 0; err == nil && i < 1000; i++ {
		_, err = s.Apply(t.Context(), big(i))
		if err == nil {
			rev++
		}
	}
	if !fault.Is(err, fault.NoSpace) {
		t.Fatalf("got %v, want no space", err)
	}
	// So large a batch does not wait for its commit to need the disk.
	huge := geoconfig.Batch{Key: "huge"}
	for i := range 900 {
		huge.Sites = append(huge.Sites, big(10_000+i).Sites...)
	}
	if _, err := s.Apply(t.Context(), huge); !fault.Is(err, fault.NoSpace) {
		t.Fatalf("a huge batch: got %v, want no space", err)
	}
	if rows, err := s.Read(t.Context(), geoconfig.Query{}); err != nil || rows.Revision != rev {
		t.Fatalf("reading on a full disk: revision %d, %v, want %d", rows.Revision, err, rev)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if got := apply(t, s, big(5000)); got != rev+1 {
		t.Fatalf("with space again: got revision %d, want %d", got, rev+1)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if rows, err := s.Read(t.Context(), geoconfig.Query{}); err != nil || rows.Revision != rev+1 {
		t.Fatalf("opened again: revision %d, %v, want %d", rows.Revision, err, rev+1)
	}
}

func big(i int) geoconfig.Batch {
	return geoconfig.Batch{Key: fmt.Sprint("big", i), Sites: []geoconfig.Site{{Name: ids.Site(fmt.Sprint("s", i)), Location: strings.Repeat("x", 4000)}}}
}
