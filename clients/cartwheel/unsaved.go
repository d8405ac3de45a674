package cartwheel

import (
	"fmt"
	"strings"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// Unsaved is a file with writes that are not at the nodes.
type Unsaved struct {
	Object ids.Object
	Bytes  uint64
	Name   func() string // what a person knows it by; nil: by its object
	// Err says why writes of it were given up; nil: they are still sent.
	Err error
}

// describe is the file's name, and why it was given up.
func (u *Unsaved) describe() string {
	name := u.Object.String()
	if u.Name != nil {
		name = u.Name()
	}
	if u.Err != nil {
		return name + " (" + u.Err.Error() + ")"
	}
	return name
}

// mostListed bounds the files that an error names.
const mostListed = 20

// unsavedError is the error that says what was not saved, and what becomes of it.
// keptIn is the cache folder whose journal has it; empty: there is none.
func unsavedError(list []Unsaved, keptIn string) error {
	if len(list) == 0 {
		return nil
	}
	var bytes uint64
	var names []string
	kind := fault.TimedOut
	for i := range list {
		u := &list[i]
		bytes += u.Bytes
		if u.Err != nil {
			keptIn, kind = "", fault.KindOf(u.Err)
		}
		if len(names) < mostListed {
			names = append(names, u.describe())
		}
	}
	if more := len(list) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	fate := "lost"
	if keptIn != "" {
		fate = "kept in " + keptIn + " and sent by the next mount that has it as --cache-dir"
	}
	return fault.Errorf(kind, "cartwheel.Close", "", "%d files with %d unsent bytes are not saved, and %s: %s",
		len(list), bytes, fate, strings.Join(names, ", "))
}
