package named

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/logattr"
)

// file is the form in which the list lies beside the data: JSON, version 1.
type file struct {
	Version   int        `json:"version"`
	Snapshots []Snapshot `json:"snapshots"`
}

const fileVersion = 1

// load reads the list of an earlier life. It is not counted as heard, so that collection
// waits until geo-config was read.
func (l *List) load() error {
	const op fault.Op = "named.load"
	if l.o.File == "" {
		return nil
	}
	data, err := os.ReadFile(l.o.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fault.Wrap(fault.IO, op, l.o.File, err)
	}
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return fault.Wrap(fault.Corrupt, op, l.o.File, err)
	}
	if f.Version > fileVersion {
		return fault.Errorf(fault.NewerVersion, op, l.o.File, "it is of version %d, this program reads %d: run a newer one", f.Version, fileVersion)
	}
	l.list = f.Snapshots
	return nil
}

// save writes the list. A failure is told and tried again with the next change: the file is
// a help, geo-config the authority. The caller holds reading.
func (l *List) save(list []Snapshot) {
	if l.o.File == "" {
		return
	}
	data, err := json.Marshal(file{Version: fileVersion, Snapshots: list})
	if err == nil {
		err = replace(l.o.File, data)
	}
	if err != nil {
		l.o.Logger.Warn("the list of snapshots could not be kept beside the data", logattr.Path(l.o.File), logattr.Err(err))
	}
}

// replace writes a file anew, so that a crash leaves the old or the new one.
func replace(name string, data []byte) error {
	temporary := name + ".new"
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(temporary, name)
}
