// Package history describes the retained versions of one name of a directory, for people
// and for programs. It asks nobody: a mount answers Attribute. Its types are plain values.
package history

import (
	"encoding/json"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// Attribute and the name of an entry, of a directory below a mount, is the extended
// attribute with the JSON of that name's History.
const Attribute = "user.cartwheel.history."

// What a version is.
const (
	// Created: a new object has the name from then on.
	Created = "created"
	// Renamed: an object that was there before has the name from then on, or has it too.
	Renamed = "renamed here"
	// Written: the content changed.
	Written = "written"
	// Removed: nothing has the name from then on.
	Removed = "removed"
	// Earlier: it is from before the time from which on all versions are retained.
	Earlier = "from earlier"
)

// Version is a name's object from a time on.
type Version struct {
	Time time.Time `json:"time"`
	What string    `json:"what"`
	// Size is that of a file, in bytes.
	Size uint64 `json:"size"`
	// Object is empty where the name was removed.
	Object string `json:"object,omitempty"`
	// Snapshot is the cue below which the version is found; empty where there is none.
	Snapshot string `json:"snapshot,omitempty"`
}

// History is the versions of a name, newest first. More says that there are older ones,
// which are left out. Since is the time from which on all are retained.
type History struct {
	Versions []Version `json:"versions"`
	More     bool      `json:"more,omitempty"`
	Since    time.Time `json:"since"`
}

// Parse reads the value of Attribute. It answers Corrupt where that is not a History.
func Parse(path string, value []byte) (History, error) {
	var h History
	if err := json.Unmarshal(value, &h); err != nil {
		return h, fault.Wrap(fault.Corrupt, "history.Parse", path, err)
	}
	return h, nil
}
