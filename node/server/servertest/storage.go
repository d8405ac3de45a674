package servertest

import (
	"github.com/cockroachdb/pebble/v2/vfs"

	"cartwheel.dev/node/store"
	"cartwheel.dev/node/store/disk"
)

// storage is the disk of one node: in memory, or in its folder where files is
// nil.
type storage struct {
	files *disk.Memory
	meta  *vfs.MemFS
}

func newStorage() storage { return storage{disk.NewMemory(), vfs.NewCrashableMem()} }

// synced is what is certain to be there after power loss. The metadata is looked
// at first: it must not be newer than the journal.
func (s storage) synced() storage {
	if s.files == nil {
		return s
	}
	meta := s.meta.CrashClone(vfs.CrashCloneCfg{})
	return storage{s.files.CrashClone(nil), meta}
}

// provide has a store use the disk. Files that are allocated ahead are small, as
// they take memory.
func (s storage) provide(o *store.Options) {
	if s.files == nil {
		return
	}
	o.Disk, o.MetaFS = s.files, s.meta
	o.Journal.SegmentBytes, o.Pack.PackBytes, o.BallastBytes = 8<<20, 16<<20, 0
}
