package past

import (
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/hlc"
)

// ageValid is how long the kernel may believe the name of an age.
const ageValid = time.Second

// logical is the bits of a hybrid time that count events: a time of a path includes all
// of its tick.
const logical = 1<<16 - 1

// moment returns the hybrid time that a cue names in a directory, and how long the kernel
// may believe the name.
func (f *FileSystem) moment(q cue.Cue, dir ids.Object, cues cue.Set) (hlc.Time, time.Duration, error) {
	switch at, back := q.Moment(f.opt.Zone); {
	case back > 0:
		at := hlc.FromWall(f.opt.Wall().Add(-back)) | logical
		return f.table.ages.fix(age{dir, cues, q.Text}, at, f.opt.Clock()), ageValid, nil
	case !at.IsZero():
		return hlc.FromWall(at) | logical, valid, nil
	}
	return 0, 0, fault.E(fault.NotSupported, "past.moment", q.String(),
		"snapshots have no names yet; give a time such as 2026-01-31T12:00 or an age such as -1h")
}
