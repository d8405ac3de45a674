package past

import (
	"context"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/hlc"
)

// ageValid is how long the kernel may believe the name of an age.
const ageValid = time.Second

// nameValid is the same of a snapshot's name, which may be deleted.
const nameValid = time.Second

// logical is the bits of a hybrid time that count events: a time of a path includes all
// of its tick.
const logical = 1<<16 - 1

// moment returns the hybrid time that a cue names in a directory, and how long the kernel
// may believe the name. For the name of a snapshot it asks the directory's active.
func (f *FileSystem) moment(ctx context.Context, q cue.Cue, dir ids.Object, cues cue.Set) (hlc.Time, time.Duration, error) {
	switch at, back := q.Moment(f.opt.Zone); {
	case back > 0:
		at := hlc.FromWall(f.opt.Wall().Add(-back)) | logical
		return f.table.ages.fix(age{dir, cues, q.Text}, at, f.opt.Clock()), ageValid, nil
	case !at.IsZero():
		return hlc.FromWall(at) | logical, valid, nil
	}
	at, root, err := f.named(ctx, q.Text, dir)
	if err == nil && root != 0 {
		err = inPart(ctx, f, place{dir, at, cues}, root, q.Text)
	}
	return at, nameValid, err
}
