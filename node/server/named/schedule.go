package named

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/version"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/logattr"
)

const (
	scheduleForm = 2 // of the bodies of schedules; below it, they are of snapshots

	// stamp is what stands behind a schedule's name in those of its snapshots: the minute
	// at which each was due.
	stamp = "20060102T1504Z"
	// mostScheduled bounds the snapshots that all schedules keep together, so that there
	// is room for others.
	mostScheduled = Most - 32
	// longestSchedule bounds the name of a schedule, so that its snapshots have names.
	longestSchedule = 100
	// leastEvery is the shortest time between two snapshots of a schedule.
	leastEvery = time.Minute
)

// Schedule has snapshots made again and again. Each is due at a whole multiple of Every since
// 1970, in UTC, and is kept for Keep.
type Schedule struct {
	Name  string        `json:"-"`
	By    string        `json:"by"`
	Every time.Duration `json:"every_ns"`
	Keep  time.Duration `json:"keep_ns"`

	revision ids.Revision
}

// snapshots is how many of the schedule there are at once.
func (s Schedule) snapshots() int { return int((s.Keep+s.Every-1)/s.Every) + 1 }

// due names the snapshot that was due last at a time.
func (s Schedule) due(now time.Time) string {
	at := time.Unix(0, now.UnixNano()/int64(s.Every)*int64(s.Every)).UTC()
	return s.Name + "-" + at.Format(stamp)
}

// valid checks what a schedule is to be.
func (s Schedule) valid() error {
	const op fault.Op = "named.valid"
	wrong := func(format string, args ...any) error {
		return fault.Errorf(fault.Invalid, op, s.Name, format, args...)
	}
	switch {
	case len(s.Name) > longestSchedule:
		return wrong("is longer than %d letters", longestSchedule)
	case s.Every < leastEvery || s.Every%leastEvery != 0:
		return wrong("would make a snapshot every %v: choose whole minutes", s.Every)
	case s.Keep < s.Every:
		return wrong("would make a snapshot every %v and keep each for %v: keep them for as long at least", s.Every, s.Keep)
	}
	return valid(s.Name, s.Keep)
}

// decodeSchedule reads a record.
func decodeSchedule(r *geoconfig.Record) (Schedule, error) {
	s := Schedule{}
	if err := json.Unmarshal(r.Body, &s); err != nil || s.Every < leastEvery || s.Keep < s.Every {
		return s, fault.E(fault.Corrupt, "named.decodeSchedule", r.Key().String(), "the record of a schedule is malformed")
	}
	s.Name, s.revision = r.Name, r.Revision
	return s, nil
}

// Schedules returns the schedules, by name.
func (l *List) Schedules() []Schedule {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.schedules // replaced, never changed
}

func (l *List) schedule(name string) (Schedule, bool) {
	for _, s := range l.Schedules() {
		if s.Name == name {
			return s, true
		}
	}
	return Schedule{}, false
}

// MakeSchedule has the nodes make snapshots again and again, the first one at once. With
// dryRun it only looks. Errors: Exists (the name is taken), Invalid, NotSupported (a node's
// program is too old), TooLarge, and those of geo-config.
func (l *List) MakeSchedule(ctx context.Context, s Schedule, dryRun bool) error {
	const op fault.Op = "named.MakeSchedule"
	if err := s.valid(); err != nil {
		return err
	}
	if err := l.refresh(ctx); err != nil {
		return err
	}
	if err := l.allows(s.Name, version.Schedules, "schedules"); err != nil {
		return err
	}
	room := mostScheduled
	for _, other := range l.Schedules() {
		room -= other.snapshots()
	}
	if s.snapshots() > room {
		return fault.Errorf(fault.TooLarge, op, s.Name, "would keep %d snapshots, and beside those of other schedules there is room for %d: make them less often, or keep them for less long", s.snapshots(), max(room, 0))
	}
	if dryRun {
		return nil
	}
	body, err := json.Marshal(s)
	if err != nil {
		return fault.Wrap(fault.Invalid, op, s.Name, err)
	}
	r := geoconfig.Record{Kind: kind, Name: s.Name, Form: scheduleForm, Body: body}
	if _, err := l.o.Store.Apply(ctx, geoconfig.Batch{Key: l.o.Key("schedule"), Records: []geoconfig.Record{r}, Audit: l.audit(s.By, "schedule.create", s.Name)}); err != nil {
		if fault.Is(err, fault.Conflict) {
			return fault.E(fault.Exists, op, s.Name, "a snapshot or a schedule of this name was made just now: choose another name")
		}
		return err
	}
	return l.refresh(ctx)
}

// allows refuses a name that is taken, and what the cluster does not know yet.
func (l *List) allows(name string, needs int, what string) error {
	const op fault.Op = "named.allows"
	if level := l.knows(); level < needs {
		return fault.Errorf(fault.NotSupported, op, name,
			"the cluster uses features of level %d, and %s are of level %d: update the nodes of older versions, which `cartwheel status` shows", level, what, needs)
	}
	if s, taken := l.find(name); taken {
		return fault.Errorf(fault.Exists, op, name, "a snapshot of this name was made at %s by %s: choose another name, or delete that one with `cartwheel snapshot delete %s`",
			s.Time.Wall().UTC().Format(time.RFC3339), s.By, name)
	}
	if s, taken := l.schedule(name); taken {
		return fault.Errorf(fault.Exists, op, name, "a schedule of this name was made by %s: choose another name, or end that one with `cartwheel snapshot delete %s`", s.By, name)
	}
	return nil
}

// makeDue makes what schedules have due. Every node tries, and geo-config takes the first.
// What this node has seen is not made again where somebody deleted it.
func (l *List) makeDue(ctx context.Context) {
	now := l.now().Wall()
	due := map[string]string{}
	for _, s := range l.Schedules() {
		name := s.due(now)
		due[s.Name] = name
		if l.seen[s.Name] == name {
			continue
		}
		if _, there := l.find(name); !there {
			_, err := l.Make(ctx, Snapshot{Name: name, By: fmt.Sprintf("schedule %s of %s", s.Name, s.By)}, s.Keep, false)
			if err != nil && !fault.Is(err, fault.Exists) {
				if ctx.Err() == nil && l.failed[s.Name] != name {
					l.o.Logger.Warn("a snapshot that is due could not be made; the node tries again", slog.String("snapshot", name), logattr.Err(err))
				}
				l.failed[s.Name] = name
				delete(due, s.Name)
				continue
			}
		}
	}
	l.seen = due
}

// now is the time by this node's clock and by another machine's: a clock that is ahead
// alone makes and deletes nothing.
func (l *List) now() hlc.Time {
	now := l.o.HLC.Now()
	if vouched := l.o.Vouched(); vouched != 0 {
		now = min(now, vouched)
	}
	return now
}
