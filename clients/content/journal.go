package content

import "cartwheel.dev/geo-config/ids"

// Journal keeps what was written and is not yet committed, so that it survives
// a crash of this process.
type Journal interface {
	// Write keeps a write before it is acknowledged and numbers it. An append's
	// offset is where it stood for its writer.
	Write(w Written) (number uint64, err error)
	// Begin notes that a commit of the writes up to a number is on its way, which
	// makes the file's time of change mtime.
	Begin(object ids.Object, upto uint64, mtimeNs int64) error
	// Done gives back the room of the object's writes from..upto, which are
	// committed, or refused and told; version is the object's afterwards. With
	// upto below from it notes the version alone. Writes of one object are done
	// in their order.
	Done(object ids.Object, from, upto uint64, version uint64)
	// Sync makes what was written survive a crash of the machine.
	Sync() error
}

// Written is one acknowledged change of a file.
type Written struct {
	Object  ids.Object
	Version uint64 // what it was made on top of; 0: unknown
	Kind    WriteKind
	Offset  uint64
	Length  uint64 // of a hole
	Data    []byte
	// Who says in the caller's own encoding who wrote.
	Who []byte
}

// WriteKind says what a Written does. The numbers are stored: never renumber.
type WriteKind uint8

// The kinds of Written.
const (
	WriteData     WriteKind = 1 // Data at Offset
	WriteAppend   WriteKind = 2 // Data at the end
	WriteHole     WriteKind = 3 // zeros at Offset for Length, the size unchanged
	WriteTruncate WriteKind = 4 // the size becomes Offset
	WriteExtend   WriteKind = 5 // the size becomes at least Offset
	WriteCreate   WriteKind = 6 // the file was made: Data is what its active will be told, a pb.OperateRequest
)

// journalShare is how many times as many bytes the write journal may hold live
// as may be dirty: bytes that are overwritten before they are committed are dirty
// once, and journaled each time. A writer that meets the bound waits for commits.
const journalShare = 4
