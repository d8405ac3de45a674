// Package cue reads the semantic cues of a path (docs/design.md, 7; WheelFS,
// section 3): the components `.Name` and `.Name=value` that change how the
// operations below them behave. It parses components, gathers them into a Set,
// merges what objects inherit and renders cues for people; table.go says, as
// data, which cue is persistent, which calls it affects and which are honoured.
// It acts on nothing itself and knows no sites or objects. Everything here is
// a plain value or a pure function: share freely.
package cue

import (
	"strings"

	"cartwheel.dev/geo-config/fault"
)

// Limits on what one path may ask for.
const (
	// MaxPerPath bounds the cues of one path; one more is Invalid.
	MaxPerPath = 32
	// MaxValue bounds a value in bytes; a longer one is Invalid.
	MaxValue = 128
	// MaxCopies bounds .RepLevel, .RepSites and .SyncLevel.
	MaxCopies = 16
	// MaxTimeLimit bounds .MaxTime, in milliseconds: a day.
	MaxTimeLimit = 24 * 60 * 60 * 1000
	// MaxCoherence bounds .Coherence, in seconds: a day.
	MaxCoherence = 24 * 60 * 60
)

// Name says which cue.
type Name uint8

// The cues. Each is a category of its own: a later one of the same name
// overrides an earlier one.
const (
	None Name = iota
	Site
	KeepTogether
	RepSites
	RepLevel
	SyncLevel
	EventualConsistency
	MaxTime
	WholeFile
	Hotspot
	WriteOnce
	Coherence
	Snapshot
	names
)

// Names returns every cue, in the order of the table in docs/design.md, 7.
func Names() []Name {
	out := make([]Name, 0, names-1)
	for n := Site; n < names; n++ {
		out = append(out, n)
	}
	return out
}

// String is the name as the documentation spells it, with its dot.
func (n Name) String() string { return n.row().text }

// Cue is one parsed component. Which of the values counts, the name says.
type Cue struct {
	Name   Name
	Text   string // Site, Snapshot
	Number int64  // RepSites, RepLevel, SyncLevel (Quorum), MaxTime in ms, Coherence in s
}

// Quorum is the Number of `.SyncLevel=quorum`.
const Quorum = -1

// RandomSite is the Text of `.Site=random`.
const RandomSite = "random"

// String renders the cue as a path component that parses to it again.
func (c Cue) String() string {
	switch c.Name.row().shape {
	case noValue:
		return c.Name.String()
	case textValue:
		return c.Name.String() + "=" + c.Text
	}
	return c.Name.String() + "=" + numberText(c.Number)
}

// Parse reads one path component. ok is false where it is an ordinary name:
// any that does not begin with a dot and the name of a cue (in any case),
// followed by its end or by an equals sign. A cue with a bad value is an
// Invalid fault that names the cue, the value and what is allowed.
func Parse(component string) (c Cue, ok bool, err error) {
	const op fault.Op = "cue.Parse"
	if len(component) < 2 || component[0] != '.' {
		return Cue{}, false, nil
	}
	head, value, valued := strings.Cut(component, "=")
	name := lookup(head)
	if name == None {
		return Cue{}, false, nil
	}
	c, problem := parseValue(name, value, valued)
	if problem != "" {
		return c, true, fault.Errorf(fault.Invalid, op, name.String(), "%s; allowed: %s", problem, name.row().allowed)
	}
	return c, true, nil
}

// ParseBytes is Parse for names as kernels give them; ordinary names cost no
// allocation.
func ParseBytes(component []byte) (c Cue, ok bool, err error) {
	if len(component) < 2 || component[0] != '.' {
		return Cue{}, false, nil
	}
	return Parse(string(component))
}

// lookup finds the cue of a component's part before the equals sign.
func lookup(head string) Name {
	for n := Site; n < names; n++ {
		if text := n.row().text; len(text) == len(head) && strings.EqualFold(text, head) {
			return n
		}
	}
	return None
}
