// Package named keeps a node's list of the cluster's named snapshots: docs/design.md,
// section 5.2. A snapshot is a name for a hybrid time. Its record lies in geo-config, and
// every node reads the list again and again, so that collection knows what to keep and
// readings know what a name means. The list is also kept beside the data, for a start while
// geo-config is away. The package reads no slice and keeps no version itself. A List is safe
// for concurrent use; no lock is held across I/O.
package named

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/server/collection"
)

const (
	kind = "snapshot" // of the records
	form = 1          // of their bodies; 2 is that of schedules
	// partForm is the form of snapshots of a part of the tree, which programs of earlier
	// levels would take for the whole.
	partForm = 3

	// Most bounds the snapshots of a cluster: every collection brings their times along.
	Most = 256
	// readWithin bounds one reading of the list.
	readWithin = 10 * time.Second
)

// IsSnapshot reports whether a row of geo-config is a snapshot's.
func IsSnapshot(key geoconfig.RowKey) bool {
	return key.Table == geoconfig.RecordsTable && strings.HasPrefix(key.Name, kind+"/")
}

// Store is what a List asks of geo-config.
type Store interface {
	Read(context.Context, geoconfig.Query) (geoconfig.Rows, error)
	Apply(context.Context, geoconfig.Batch) (ids.Revision, error)
}

// Options are what a List is made of. Every field but File is needed.
type Options struct {
	Store Store
	// File keeps the list between lives; empty: nothing is kept.
	File string
	// Key names a batch of some kind.
	Key func(kind string) string
	// Vouched is the latest time that another machine's clock is known to have reached, 0
	// where there is none.
	Vouched func() hlc.Time
	HLC     *hlc.Clock
	Lease   time.Duration
	Clock   boottime.Func
	Wall    func() time.Time
	Logger  *slog.Logger
}

// Snapshot is one of the list.
type Snapshot struct {
	Name string   `json:"name"`
	Time hlc.Time `json:"hlc"`
	By   string   `json:"by"`
	// ExpiresNS is when it is deleted, in nanoseconds since 1970; 0: never.
	ExpiresNS int64 `json:"expires_ns,omitempty"`
	// Root is the directory that it is of; 0: the whole tree. Path is where that was, from
	// the root of the tree on, for people.
	Root ids.Object `json:"root,omitempty"`
	Path string     `json:"path,omitempty"`

	revision ids.Revision
}

// List is the snapshots as a node knows them.
type List struct {
	o Options

	reading sync.Mutex // held while the list is read, taken before mu

	mu    sync.Mutex // guards the rest
	list  []Snapshot // by name
	times []hlc.Time // ascending; replaced, never changed
	heard time.Duration
	level int // the feature level of the cluster, as it was read

	schedules []Schedule // by name; replaced, never changed

	// By schedule, the snapshot that was due last and that there is or was, and the one
	// whose failure was told. Run owns both.
	seen, failed map[string]string
}

// New returns the list as it is kept beside the data.
func New(o Options) (*List, error) {
	o.Store = ordered{o.Store}
	l := &List{o: o, seen: map[string]string{}, failed: map[string]string{}}
	return l, l.load()
}

// Run reads the list again and again until ctx ends. It deletes what has expired, and makes
// what is due.
func (l *List) Run(ctx context.Context) {
	told := false // that it cannot be read
	for {
		err := l.refresh(ctx)
		if err != nil && !told && ctx.Err() == nil {
			l.o.Logger.Warn("the snapshots could not be read: no version is given up that may be of a new one", logattr.Err(err))
		}
		told = err != nil
		if err == nil {
			l.expire(ctx)
			l.makeDue(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(l.o.Lease):
		}
	}
}

// Kept tells collection what snapshots there are.
func (l *List) Kept() collection.Snapshots {
	l.mu.Lock()
	defer l.mu.Unlock()
	return collection.Snapshots{Times: l.times, Heard: l.heard, Known: l.level >= needed}
}

// knows returns the feature level of the cluster as it was read last.
func (l *List) knows() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.level
}

// All returns the snapshots, the oldest first, and how long ago the list was read; negative:
// it was not read since the node started.
func (l *List) All() ([]Snapshot, time.Duration) {
	now := l.o.Clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	out := slices.Clone(l.list)
	slices.SortFunc(out, func(a, b Snapshot) int { return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Name, b.Name)) })
	if l.heard == 0 {
		return out, -1
	}
	return out, now - l.heard
}

// Records returns the list as the records that geo-config has, for whoever rebuilds it.
func (l *List) Records() ([]geoconfig.Record, error) {
	l.mu.Lock()
	list := slices.Clone(l.list)
	l.mu.Unlock()
	out := make([]geoconfig.Record, len(list))
	for i, s := range list {
		r, err := s.record()
		if err != nil {
			return nil, err
		}
		out[i] = r
	}
	return out, nil
}

// record encodes a snapshot for geo-config.
func (s Snapshot) record() (geoconfig.Record, error) {
	body, err := json.Marshal(s)
	of := form
	if s.Root != 0 {
		of = partForm
	}
	return geoconfig.Record{Kind: kind, Name: s.Name, Form: of, Body: body, ExpiresNS: s.ExpiresNS, Revision: s.revision},
		fault.Wrap(fault.Invalid, "named.record", s.Name, err)
}

// find returns a snapshot of the list.
func (l *List) find(name string) (Snapshot, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i, ok := slices.BinarySearchFunc(l.list, name, func(s Snapshot, name string) int { return cmp.Compare(s.Name, name) })
	if !ok {
		return Snapshot{}, false
	}
	return l.list[i], true
}

// refresh reads the list anew. Whatever was made before the call is in it.
// Callers that wait for each other share one reading.
func (l *List) refresh(ctx context.Context) error {
	asked := l.o.Clock()
	l.reading.Lock()
	defer l.reading.Unlock()
	l.mu.Lock()
	heard := l.heard
	l.mu.Unlock()
	if heard > asked {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	began := l.o.Clock()
	list, schedules, level := []Snapshot{}, []Schedule{}, 0
	q := geoconfig.Query{Records: geoconfig.MaxRecordPage, RecordKind: kind}
	for more := true; more; {
		rows, err := l.o.Store.Read(ctx, q)
		if err != nil {
			return err
		}
		if rows.Cluster != nil {
			level = rows.Cluster.Feature
		}
		for _, r := range rows.Records {
			q.RecordsAfter = r.Name
			if r.Form == scheduleForm {
				s, err := decodeSchedule(&r)
				if err != nil {
					return err
				}
				schedules = append(schedules, s)
				continue
			}
			s, err := decode(&r)
			if err != nil {
				return err
			}
			list = append(list, s)
		}
		more = rows.MoreRecords
	}
	l.take(list, schedules, level, began)
	return nil
}

// take makes a list the current one.
func (l *List) take(list []Snapshot, schedules []Schedule, level int, heard time.Duration) {
	slices.SortFunc(list, func(a, b Snapshot) int { return cmp.Compare(a.Name, b.Name) })
	var times []hlc.Time
	for _, s := range list {
		times = append(times, s.Time)
	}
	slices.Sort(times)
	l.mu.Lock()
	changed := !slices.Equal(l.list, list)
	l.list, l.times, l.heard, l.level = list, slices.Compact(times), heard, level
	l.schedules = schedules
	l.mu.Unlock()
	if changed {
		l.save(list)
	}
}

// decode reads a record.
func decode(r *geoconfig.Record) (Snapshot, error) {
	const op fault.Op = "named.decode"
	if r.Form > partForm {
		return Snapshot{}, fault.Errorf(fault.NewerVersion, op, r.Key().String(), "is of form %d, and this program knows %d: install the newer program", r.Form, partForm)
	}
	s := Snapshot{}
	if err := json.Unmarshal(r.Body, &s); err != nil || s.Time == 0 || (s.Root != 0) != (r.Form == partForm) {
		return Snapshot{}, fault.E(fault.Corrupt, op, r.Key().String(), "the record of a snapshot is malformed")
	}
	s.Name, s.ExpiresNS, s.revision = r.Name, r.ExpiresNS, r.Revision
	return s, nil
}
