// Package earlier compares a tree with what it was at another time, and restores what it
// was, by way of the cue .Snapshot below a mount. It works on paths as any program does, with
// the rights of its caller, and knows nothing of nodes. Contents that a restore writes are
// chunks that the nodes have, so that a mount does not upload them again. Its functions keep
// no state and may be called at once; a restore owns the place that it writes.
package earlier

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/hlc"
)

// MomentAttribute is, of anything below .Snapshot at a mount, the extended attribute with the
// Moment that is shown there.
const MomentAttribute = "user.cartwheel.moment"

// Moment is the hybrid time of what is below .Snapshot, and the object that is shown.
type Moment struct {
	Time   hlc.Time   `json:"hlc"`
	Object ids.Object `json:"object"`
}

// ParseMoment reads the value of MomentAttribute. It answers Corrupt where that is no Moment.
func ParseMoment(path string, value []byte) (Moment, error) {
	var m Moment
	if err := json.Unmarshal(value, &m); err != nil || m.Time == 0 {
		return m, fault.E(fault.Corrupt, "earlier.ParseMoment", path, "what the mount answers is no moment")
	}
	return m, nil
}

// Now is the name that stands for the present where that of a snapshot is asked for.
const Now = "now"

// At returns the path of a directory as of a snapshot, a time or an age; Now is the present.
func At(dir, when string) string {
	if when == Now {
		return dir
	}
	return filepath.Join(dir, cue.Snapshot.String()+"="+when)
}

// Inside returns where a path was at a time: below the nearest directory above it that is
// there now. The path itself may be gone. Errors: NotFound, where no directory is there.
func Inside(path, when string) (string, error) {
	for dir, rest := filepath.Dir(path), filepath.Base(path); ; dir, rest = filepath.Dir(dir), filepath.Join(filepath.Base(dir), rest) {
		info, err := os.Stat(dir)
		if err == nil && info.IsDir() {
			return filepath.Join(At(dir, when), rest), nil
		}
		if filepath.Dir(dir) == dir {
			return "", fault.E(fault.NotFound, "earlier.Inside", path, "no directory above it is there")
		}
	}
}

// kindOf names a type of file for people.
func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "directory"
	case m&fs.ModeSymlink != 0:
		return "link"
	case m.IsRegular():
		return "file"
	}
	return "special file"
}
