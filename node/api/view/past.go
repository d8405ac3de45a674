package view

import (
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/named"
)

// Snapshot is the tree, or a directory with all below it, as it was at a time, kept under
// a name.
type Snapshot struct {
	Name      string       `json:"name"`
	TakenAt   time.Time    `json:"taken_at" doc:"As of when it shows the tree."`
	By        string       `json:"made_by" doc:"An account or a user, or a schedule and who made that."`
	Path      string       `json:"path,omitempty" doc:"The directory that it is of, from the root of the tree on; absent: the whole tree."`
	ExpiresAt *time.Time   `json:"expires_at,omitempty" doc:"When it is deleted; absent: only by order."`
	Revision  ids.Revision `json:"revision"`
}

// OfSnapshot shows a snapshot of the list.
func OfSnapshot(s *named.Snapshot) Snapshot {
	out := Snapshot{Name: s.Name, TakenAt: s.Time.Wall().UTC(), By: s.By, Path: s.Path, Revision: s.Revision()}
	if s.ExpiresNS != 0 {
		out.ExpiresAt = new(time.Unix(0, s.ExpiresNS).UTC())
	}
	return out
}

// Schedule has the nodes make snapshots again and again.
type Schedule struct {
	Name     string       `json:"name" doc:"The names of its snapshots begin with it."`
	By       string       `json:"made_by"`
	EveryMS  int64        `json:"every_ms" doc:"One is due at each whole multiple since 1970, in UTC."`
	KeepMS   int64        `json:"keep_ms" doc:"After how long each is deleted."`
	Most     int          `json:"most_snapshots" doc:"How many of them there are at once, at most."`
	NextAt   time.Time    `json:"next_at" doc:"When the next one is due."`
	Revision ids.Revision `json:"revision"`
}

// OfSchedule shows a schedule at a time.
func OfSchedule(s *named.Schedule, now time.Time) Schedule {
	last := now.UnixNano() / int64(s.Every) * int64(s.Every)
	return Schedule{Name: s.Name, By: s.By, EveryMS: s.Every.Milliseconds(), KeepMS: s.Keep.Milliseconds(), Most: s.Snapshots(),
		NextAt: time.Unix(0, last).Add(s.Every).UTC(), Revision: s.Revision()}
}
