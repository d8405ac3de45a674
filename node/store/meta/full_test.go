package meta

import (
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// fullDisk has no room while full is set.
type fullDisk struct {
	vfs.FS
	full atomic.Bool
}

func (d *fullDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	if d.full.Load() {
		return vfs.DiskUsage{}, nil
	}
	return vfs.DiskUsage{AvailBytes: 1 << 40}, nil
}

// TestClose_EndsThoughItsFlushFindsNoRoom closes with rows that are not flushed,
// and no write that waits for room yet.
func TestClose_EndsThoughItsFlushFindsNoRoom(t *testing.T) {
	d := &fullDisk{}
	d.FS = errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if d.full.Load() && (op.Kind == errorfs.OpCreate || op.Kind == errorfs.OpFileWrite) {
			return syscall.ENOSPC
		}
		return nil
	}))
	db := opened(t, d)
	b := db.NewBatch()
	must(t, b.Put(1, []byte("k"), []byte("v"), 1))
	must(t, b.Commit())
	d.full.Store(true)
	closed := make(chan error, 1)
	go func() { closed <- db.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Errorf("closing: %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the close does not end")
	}
}
