package meta

import (
	"fmt"
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

func newFullDisk() *fullDisk {
	d := &fullDisk{}
	d.FS = errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if d.full.Load() && (op.Kind == errorfs.OpCreate || op.Kind == errorfs.OpFileWrite) {
			return syscall.ENOSPC
		}
		return nil
	}))
	return d
}

// TestClose_EndsThoughItsFlushFindsNoRoom closes with rows that are not flushed,
// and no write that waits for room yet.
func TestClose_EndsThoughItsFlushFindsNoRoom(t *testing.T) {
	d := newFullDisk()
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

// TestRoom_IsAMemtableAfterAStart changes the metadata of a new process on a full
// disk. It may take as much as the one before it did, less what that left to its
// log: deletions must go on. The loop is faster than the flush that finds the disk
// full, so it waits for that once Pebble has begun to flush: with half a memtable.
func TestRoom_IsAMemtableAfterAStart(t *testing.T) {
	const memtable = 1 << 20
	d := newFullDisk()
	db, err := Open("meta", Options{FS: d, MemtableBytes: memtable})
	must(t, err)
	d.full.Store(true)
	taken := 0
	for i := 0; db.Room() == nil && taken < 3*memtable; i++ {
		b := db.NewBatch()
		must(t, b.Put(1, fmt.Appendf(nil, "k%d", i), make([]byte, 8<<10), uint64(i+1)))
		must(t, b.Commit())
		taken += 8 << 10
		if db.p.Metrics().MemTable.Size >= memtable {
			<-db.patient.full()
		}
	}
	if taken < memtable || taken > 2*memtable {
		t.Errorf("%d bytes were taken on a full disk, want one memtable (%d) or more, and less than two", taken, memtable)
	}
	d.full.Store(false)
	must(t, db.Close())
}
