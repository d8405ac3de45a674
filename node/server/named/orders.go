package named

import (
	"context"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/version"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/server/collection"
)

// needed is the feature level of snapshots.
const needed = version.Snapshots

// maxPath bounds the path of a part of the tree.
const maxPath = 4096

// Resolve returns a snapshot. Errors: NotFound, or those of the store where the
// name is not known and geo-config cannot be asked. It may wait for geo-config.
func (l *List) Resolve(ctx context.Context, name string) (Snapshot, error) {
	const op fault.Op = "named.Resolve"
	if s, ok := l.find(name); ok {
		return s, nil
	}
	if err := l.refresh(ctx); err != nil {
		return Snapshot{}, &fault.Error{Kind: fault.KindOf(err), Op: op, Subject: name, Cause: err,
			Public: "this node knows no snapshot of this name, and geo-config does not answer: try again once it is back"}
	}
	s, ok := l.find(name)
	if !ok {
		return Snapshot{}, missing(op, name)
	}
	return s, nil
}

func missing(op fault.Op, name string) error {
	return fault.E(fault.NotFound, op, name, "there is no snapshot of this name; `cartwheel snapshot list` lists those that there are")
}

// Make makes a snapshot of the tree as of now and returns it: one with the name, the maker and
// the part of the tree that s has. It is deleted after keep; 0: never. One of a part keeps the
// versions of the whole tree, too: a slice does not know what lies below a directory. With dryRun it only looks. Errors: Exists (the name is taken), Invalid,
// NotSupported (a node's program is too old), TooLarge, TimedOut (it is not made), and those
// of geo-config: the outcome may be unknown then, which the list tells.
func (l *List) Make(ctx context.Context, s Snapshot, keep time.Duration, dryRun bool) (Snapshot, error) {
	const op fault.Op = "named.Make"
	name, by := s.Name, s.By
	if err := s.valid(keep); err != nil {
		return Snapshot{}, err
	}
	if err := l.refresh(ctx); err != nil {
		return Snapshot{}, err
	}
	needs, what := needed, "snapshots"
	if s.Root != 0 {
		needs, what = version.Parts, "snapshots of a part of the tree"
	}
	if err := l.allows(name, needs, what); err != nil {
		return Snapshot{}, err
	}
	if all, _ := l.All(); len(all) >= Most {
		return Snapshot{}, fault.Errorf(fault.TooLarge, op, name, "there are %d snapshots, and no more can be kept: delete one that is not needed", len(all))
	}
	began := l.o.Clock()
	s.Time, s.ExpiresNS = l.o.HLC.Now(), 0
	if keep > 0 {
		s.ExpiresNS = s.Time.Wall().Add(keep).UnixNano()
	}
	if dryRun {
		return s, nil
	}
	r, err := s.record()
	if err != nil {
		return Snapshot{}, err
	}
	if s.revision, err = l.o.Store.Apply(ctx, geoconfig.Batch{Key: l.o.Key("snapshot"), Records: []geoconfig.Record{r}, Audit: l.audit(by, "snapshot.create", name)}); err != nil {
		if fault.Is(err, fault.Conflict) {
			return Snapshot{}, fault.E(fault.Exists, op, name, "a snapshot of this name was made just now: choose another name")
		}
		return Snapshot{}, err
	}
	if took := l.o.Clock() - began; took > collection.Margin(l.o.Lease)/2 {
		// Collection may have passed its time before its record was there.
		if err := l.remove(ctx, name, s.revision, "snapshot.delete", by); err != nil {
			return Snapshot{}, err
		}
		return Snapshot{}, fault.Errorf(fault.TimedOut, op, name, "geo-config took %v, and a part of the past may be given up by now, so it is not made: try again", took.Round(time.Millisecond))
	}
	return s, l.refresh(ctx)
}

// valid checks what a snapshot is to be.
func (s Snapshot) valid(keep time.Duration) error {
	if (s.Root != 0) != (s.Path != "") || s.Path != "" && s.Path[0] != '/' || len(s.Path) > maxPath {
		return fault.Errorf(fault.Invalid, "named.valid", s.Path, "is no part of the tree: a directory and its path from / on are needed, which has %d bytes at most", maxPath)
	}
	return valid(s.Name, keep)
}

// valid checks a snapshot's name, and for how long it is kept.
func valid(name string, keep time.Duration) error {
	const op fault.Op = "named.valid"
	q, is, err := cue.Parse(cue.Snapshot.String() + "=" + name)
	if err != nil || !is {
		return fault.E(fault.Invalid, op, name, "is no name for a snapshot: it has letters, digits, and behind the first ._-, 128 at most")
	}
	if at, age := q.Moment(time.UTC); age != 0 || !at.IsZero() {
		return fault.E(fault.Invalid, op, name, "means a time or an age, so it cannot be a snapshot's name: choose another one")
	}
	if keep < 0 {
		return fault.E(fault.Invalid, op, name, "is to be kept for less than nothing")
	}
	return nil
}

// Delete deletes a snapshot and returns what it was. What only it kept goes with the next
// collections. A schedule of the name ends, and what it made stays until it expires. With
// dryRun it only looks. Errors: NotFound, and those of geo-config.
func (l *List) Delete(ctx context.Context, by, name string, dryRun bool) (Snapshot, error) {
	const op fault.Op = "named.Delete"
	if err := l.refresh(ctx); err != nil {
		return Snapshot{}, err
	}
	s, ok := l.find(name)
	action := "snapshot.delete"
	if !ok {
		var schedule Schedule
		if schedule, ok = l.schedule(name); !ok {
			return Snapshot{}, missing(op, name)
		}
		s, action = Snapshot{Name: name, By: schedule.By, revision: schedule.revision}, "schedule.delete"
	}
	if dryRun {
		return s, nil
	}
	if err := l.remove(ctx, name, s.revision, action, by); err != nil {
		return Snapshot{}, err
	}
	return s, l.refresh(ctx)
}

// remove takes a record away.
func (l *List) remove(ctx context.Context, name string, revision ids.Revision, action, by string) error {
	key := geoconfig.RecordKey{Kind: kind, Name: name}
	_, err := l.o.Store.Apply(ctx, geoconfig.Batch{Key: l.o.Key("snapshot"),
		Remove: []geoconfig.Removal{{Key: key.Row(), Revision: revision}}, Audit: l.audit(by, action, name)})
	return err
}

// audit is the record of a change.
func (l *List) audit(by, action, name string) []geoconfig.AuditRecord {
	return []geoconfig.AuditRecord{{AtNS: l.o.Wall().UnixNano(), Who: by, Action: action, Subject: geoconfig.RecordKey{Kind: kind, Name: name}.Row().String()}}
}

// expire deletes the snapshots whose time is over.
func (l *List) expire(ctx context.Context) {
	now := l.now().Wall().UnixNano()
	all, _ := l.All()
	for _, s := range all {
		if s.ExpiresNS == 0 || now < s.ExpiresNS {
			continue
		}
		// Another node may have done it just now; the next look tells.
		if err := l.remove(ctx, s.Name, s.revision, "snapshot.delete", "expiry"); err == nil {
			_ = l.refresh(ctx) // Run reads it again soon
		}
	}
}
