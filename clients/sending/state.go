package sending

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"cartwheel.dev/geo-config/fault"
)

// Names beside the place of a copy, and in the directory where it is received.
const (
	receivingSuffix = ".receiving" // the directory
	receivedSuffix  = ".received"  // the record

	stateName   = "state"
	treeName    = "tree"    // of a whole stream: what becomes the copy
	contentName = "content" // and a number: a file that is being written
	filesName   = "files"   // of a difference: the files that were written
	journalName = "journal" // of a difference: its records without contents
	newName     = "new"     // a name before it is at its place
	replacing   = ".new"    // ends the name of a file that replaces another one
)

// fileVersion is that of the state and of the record.
const fileVersion = 1

// Record says which stream a copy received last. It lies beside the copy.
type Record struct {
	Version int `json:"version"`
	Header
	// Plain: owners, extended attributes and ACLs were left out.
	Plain bool `json:"plain,omitempty"`
}

// state is how far a stream was received: all of it that is before Offset.
type state struct {
	Version int    `json:"version"`
	Header  Header `json:"header"`
	Offset  int64  `json:"offset"`
	Sum     []byte `json:"sum"`
	Records uint64 `json:"records"`
	Bytes   uint64 `json:"bytes"`
	Changes uint64 `json:"changes"`
	Plain   bool   `json:"plain,omitempty"`
	Order   order  `json:"order"`
	// Object is the record of the file that is being written; empty: none is. Written is how
	// much of it is.
	Object  []byte `json:"object,omitempty"`
	Written int64  `json:"written,omitempty"`
	// Open are the records of the directories that are not finished, the outer ones first.
	Open [][]byte `json:"open,omitempty"`
	// Files and Journal are of a difference: how many files were written, and the length of
	// the journal.
	Files   uint64 `json:"files,omitempty"`
	Journal int64  `json:"journal,omitempty"`
	// Whole: the stream was received to its end, and is being put to its place.
	Whole bool `json:"whole,omitempty"`
}

// load reads a file of JSON. It reports whether the file is there.
func load(path string, into any, version *int) (bool, error) {
	const op fault.Op = "sending.load"
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fault.FromOS(op, path, err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return false, fault.E(fault.Corrupt, op, path, "is no file that `cartwheel snapshot receive` wrote: move it away")
	}
	if *version > fileVersion {
		return false, fault.Errorf(fault.NewerVersion, op, path, "is of version %d, and this program reads %d: run the newer program", *version, fileVersion)
	}
	return true, nil
}

// save replaces a file of JSON at once. Unless unsynced, it waits until that is on the disk.
func save(path string, value any, unsynced bool) error {
	const op fault.Op = "sending.save"
	text, err := json.Marshal(value)
	if err != nil {
		return fault.Wrap(fault.Invalid, op, path, err)
	}
	f, err := os.OpenFile(path+replacing, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fault.FromOS(op, path, err)
	}
	_, err = f.Write(append(text, '\n'))
	if err == nil && !unsynced {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err == nil && !unsynced {
		err = syncDir(filepath.Dir(path))
	}
	return fault.FromOS(op, path, err)
}

// syncDir waits until the names of a directory are on the disk, where the system can.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	_ = d.Sync() // some systems refuse it for directories, and have nothing else
	return nil
}

// exists reports whether there is something at a path.
func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, fault.FromOS("sending.exists", path, err)
}
