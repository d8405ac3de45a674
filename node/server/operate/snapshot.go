package operate

import (
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/invariant"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/store"
)

// Snapshot describes a slice's committed state as the metadata has it now;
// false where there is no whole one. On the loop's goroutine only (Do, Ask): a
// state that is copied to another node, or saved by a checkpoint, is named by
// this serial, and must have every entry up to it.
func (l *Loop) Snapshot(id ids.Slice) (replica.Snapshot, bool) {
	at, known := l.o.Core.Snapshot(id)
	if !known {
		return at, false
	}
	applied, err := l.o.Meta.Applied(id)
	if err != nil {
		l.fail(err)
		return replica.Snapshot{}, false
	}
	invariant.Equal(invariant.Violation{Rule: invariant.SnapshotApplied, Slice: id, Serial: at.Serial, File: store.MetaDir,
		Want: uint64(at.Serial), Got: uint64(applied)})
	return at, true
}
