package scrub

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/store/pack"
)

// phase is what a round reads.
type phase int

const (
	phaseChunks  phase = iota // the packs, chunk by chunk
	phaseRecords              // the records of references, which name chunks
	phaseStates               // the states of slices, compared with those of their actives
)

// String returns the word for people.
func (p phase) String() string {
	switch p {
	case phaseRecords:
		return "records"
	case phaseStates:
		return "states"
	}
	return "chunks"
}

// stateVersion is the form of the file. Another form is thrown away: what it says is only
// where to go on, and what was counted.
const stateVersion = 1

// stateFile holds the state as JSON, in the scrub's directory.
const stateFile = "state.json"

// state is what another life of the node must know.
type state struct {
	Version int

	Round, EndedRound uint64
	Running, Ordered  bool
	Rate              int64 // of an ordered round, bytes a second
	// Began and Ended are in Unix time, nanoseconds; Took is of the last whole round.
	Began, Ended int64
	Took         time.Duration

	// The place: At is the first chunk that was not read, of those up to the pack Until.
	// Then Slice and Behind are the record behind which to go on, and then Slice is the
	// first one whose state was not compared.
	Phase  phase
	At     pack.Place
	Until  uint32
	Slice  ids.Slice
	Behind []byte

	Now, Last, Total status.ScrubCounts
	Lost             []lostChunk
	Different        []differentState
}

// differentState is a state that differed from the active's. Anew is how often it was made
// anew since.
type differentState struct {
	status.DifferentState
	Anew int
}

// lostChunk is a chunk that is named and that no member has given.
type lostChunk status.LostChunk

func (l *lostChunk) clone() status.LostChunk {
	out := status.LostChunk(*l)
	out.Slices, out.Objects = slices.Clone(l.Slices), slices.Clone(l.Objects)
	return out
}

func (st *state) encode() ([]byte, error) {
	st.Version = stateVersion
	data, err := json.Marshal(st)
	return data, fault.Wrap(fault.Corrupt, "scrub.encode", "", err)
}

// load reads the state; without one it is zero.
func load(files vfs.FS, dir string, logger *slog.Logger) (state, error) {
	const op fault.Op = "scrub.load"
	err := files.MkdirAll(dir, 0o700)
	if err == nil {
		err = syncDir(files, files.PathDir(dir))
	}
	if err != nil {
		return state{}, fault.Wrap(fault.IO, op, dir, err)
	}
	f, err := files.Open(files.PathJoin(dir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, nil
	}
	if err != nil {
		return state{}, fault.Wrap(fault.IO, op, dir, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return state{}, fault.Wrap(fault.IO, op, dir, err)
	}
	data := make([]byte, info.Size())
	var st state
	if _, err = f.ReadAt(data, 0); err == nil {
		err = json.Unmarshal(data, &st)
	}
	if err != nil || st.Version != stateVersion {
		logger.Warn("the place of the scrub cannot be read: it begins anew", logattr.Err(err))
		return state{}, nil
	}
	return st, nil
}

// write replaces the file as a whole.
func write(files vfs.FS, dir string, data []byte) error {
	const op fault.Op = "scrub.write"
	name := files.PathJoin(dir, stateFile)
	f, err := files.Create(name+".new", vfs.WriteCategoryUnspecified)
	if err != nil {
		return fault.Wrap(fault.IO, op, name, err)
	}
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = files.Rename(name+".new", name)
	}
	if err == nil {
		err = syncDir(files, dir)
	}
	return fault.Wrap(fault.IO, op, name, err)
}

// syncDir makes the names in a directory durable.
func syncDir(files vfs.FS, dir string) error {
	d, err := files.OpenDir(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
