package named

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/server/cluster"
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
	if err := cluster.Replace(l.o.File, file{Version: fileVersion, Snapshots: list}); err != nil {
		l.o.Logger.Warn("the list of snapshots could not be kept beside the data", logattr.Path(l.o.File), logattr.Err(err))
	}
}
