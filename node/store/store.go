// Package store is what is on one node's disk, put together: the one log, the
// packs of chunks and the versioned metadata in one data directory that belongs
// to one cluster and node. It does not know what entries mean: the server
// applies them, in Recover too. A Store and its parts may be used by any number
// of goroutines.
package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/store/disk"
	"cartwheel.dev/node/store/journal"
	"cartwheel.dev/node/store/meta"
	"cartwheel.dev/node/store/pack"
)

// Options say what to open; zero values of the sizes take the defaults.
type Options struct {
	// Dir is the data directory. With Disk set it only names it in errors.
	Dir string
	// Disk stands in for the directory; nil opens the real one.
	Disk disk.Disk
	// MetaFS stands in for the file system below Pebble, which then uses the
	// directory MetaDir of it; nil is the real one, below Dir.
	MetaFS vfs.FS

	ClusterID ids.Cluster
	NodeID    ids.Node

	Journal journal.Options
	Pack    pack.Options
	Meta    meta.Options
	// BallastBytes is the length of a file whose space is given back when the
	// disk is full; 0 means none.
	BallastBytes int64
	// CheckpointBytes is the length of log from which NeedsCheckpoint is true,
	// 128 MiB: it bounds what a start has to replay.
	CheckpointBytes int64
	// Clock gives the time that pins are counted by; nil is the time since
	// Open by the system's monotonic clock.
	Clock func() time.Duration
	// Wall dates a new data directory; nil is time.Now.
	Wall   func() time.Time
	Logger *slog.Logger
	// Fatal hears of the first failure after which this process must stop
	// acknowledging and end. It may be called from any goroutine, and when it
	// returns to meta, that goroutine panics.
	Fatal func(error)
}

// MetaDir is the directory of the metadata below the data directory.
const MetaDir = "meta"

// Store is an open data directory.
type Store struct {
	opts    Options
	d       disk.Disk
	real    *disk.Real // to close, if Open opened it
	unlock  func() error
	marker  marker
	journal *journal.Journal
	packs   *pack.Packs
	meta    *meta.DB

	ballast    ballast
	checkpoint sync.Mutex // one checkpoint at a time
	closing    sync.Once
	closeErr   error
}

// Open opens a data directory or makes a new one. The faults are Busy (another
// process has it), WrongCluster and Unauthorized (it belongs to another cluster
// or node), NewerVersion, NoSpace, Corrupt and IO. Recover comes next.
func Open(o Options) (*Store, error) {
	o = o.withDefaults()
	s := &Store{opts: o, d: o.Disk}
	if s.d == nil {
		r, err := disk.OpenReal(o.Dir)
		if err != nil {
			return nil, fault.Wrap(fault.IO, "store.Open", o.Dir, err)
		}
		s.d, s.real = r, r
	}
	if err := s.open(); err != nil {
		// The first error is the one to act on.
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

func (o Options) withDefaults() Options {
	if o.CheckpointBytes == 0 {
		o.CheckpointBytes = 128 << 20
	}
	if o.Clock == nil {
		start := time.Now()
		o.Clock = func() time.Duration { return time.Since(start) }
	}
	if o.Wall == nil {
		o.Wall = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Fatal == nil {
		o.Fatal = func(error) {}
	}
	o.Journal.Fatal, o.Pack.Fatal, o.Meta.Fatal = o.Fatal, o.Fatal, o.Fatal
	o.Pack.Clock, o.Pack.Wall, o.Pack.Logger, o.Meta.Logger = o.Clock, o.Wall, o.Logger, o.Logger
	return o
}

func (s *Store) open() error {
	if err := s.lock(); err != nil {
		return err
	}
	fresh, err := s.checkMarker()
	if err != nil {
		return err
	}
	s.ballast.d, s.ballast.bytes = s.d, s.opts.BallastBytes
	relieve := s.ballast.relieve
	s.opts.Journal.Relieve, s.opts.Pack.Relieve, s.opts.Meta.Relieve = relieve, relieve, relieve
	dir := filepath.Join(s.opts.Dir, MetaDir)
	if s.opts.MetaFS != nil {
		dir, s.opts.Meta.FS = MetaDir, s.opts.MetaFS
	}
	if s.meta, err = meta.Open(dir, s.opts.Meta); err != nil {
		return err
	}
	if s.packs, err = pack.Open(s.d, s.opts.Pack); err != nil {
		return err
	}
	if s.journal, err = journal.Open(s.d, s.opts.Journal); err != nil {
		return err
	}
	s.ballast.opened()
	if fresh {
		return s.writeMarker()
	}
	return s.checkLog()
}

// Prepare makes what a full disk must not lack, where there is room for it: the
// journal's next segment and the ballast. It is to be called from time to time.
func (s *Store) Prepare() error {
	if !s.journal.Spare() {
		s.journal.Prepare()
	}
	u := s.Usage()
	if u.Disk.Total == 0 {
		return nil
	}
	return s.ballast.restore(u.Disk.Free)
}

// Room reports whether the log can take n more bytes, and the metadata what
// follows from them: nil, Overloaded or NoSpace.
func (s *Store) Room(n int) error {
	if err := s.journal.Room(n); err != nil {
		return err
	}
	return s.meta.Room()
}

// Free returns how much of the file system's space is free for new content:
// less what the journal still has to take. known is false where the system does
// not say.
func (s *Store) Free(u Usage) (free int64, known bool) {
	if u.Disk.Total == 0 {
		return 0, false
	}
	free = u.Disk.Free
	if !s.journal.Spare() {
		free -= s.journal.SegmentBytes()
	}
	return free, true
}

// checkLog refuses a directory whose metadata has been applied from a log that
// is no longer there.
func (s *Store) checkLog() error {
	applied, err := s.meta.Slices()
	if err != nil {
		return err
	}
	if len(applied) > 0 && s.journal.Segments() == 0 {
		return fault.E(fault.Corrupt, "store.Open", s.opts.Dir,
			"the log is gone, and with it what this node promised; restore the directory, or empty it and let the peers fill it")
	}
	return nil
}

const lockName = "lock"

// lock keeps a second daemon out.
func (s *Store) lock() error {
	l, ok := s.d.(disk.Locker)
	if !ok {
		return nil
	}
	unlock, err := l.Lock(lockName, fmt.Appendf(nil, "%d\n", os.Getpid()))
	if fault.Is(err, fault.Busy) {
		return fault.Errorf(fault.Busy, "store.Open", s.opts.Dir,
			"process %s uses this data directory; stop it, or give this one another", s.holder())
	}
	s.unlock = unlock
	return err
}

// holder reads who holds the lock.
func (s *Store) holder() string {
	f, err := s.d.Open(disk.MarkerOpen, lockName, disk.ReadOnly)
	if err != nil {
		return "(unknown)"
	}
	defer f.Close()
	b := make([]byte, 32)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) || n == 0 {
		return "(unknown)"
	}
	return strings.TrimSpace(string(b[:n]))
}

// Journal returns the node's one log.
func (s *Store) Journal() *journal.Journal { return s.journal }

// Packs returns the chunks.
func (s *Store) Packs() *pack.Packs { return s.packs }

// Meta returns the versioned metadata.
func (s *Store) Meta() *meta.DB { return s.meta }

// NodeID names the node whose data directory this is.
func (s *Store) NodeID() ids.Node { return s.opts.NodeID }

// Incarnation tells this life of the data directory from earlier ones.
func (s *Store) Incarnation() ids.Incarnation { return s.marker.Incarnation }

// Recover hands the server every record that is still in the log, in order, and
// then opens the log for appends. For an entry of an operation the server
//   - puts its inline chunks by Packs().PutLazy, whatever its serial, since
//     packs may lack what metadata has, and
//   - applies it to Meta only if its serial is above Meta().Applied.
//
// The payload is valid only during the call; what PutLazy keeps is copied first.
func (s *Store) Recover(fn func(journal.Position, journal.Record) error) error {
	err := s.journal.Replay(0, fn)
	if err == nil {
		err = s.Prepare()
	}
	if fault.Is(err, fault.NoSpace) {
		return nil // Prepare is tried again
	}
	return err
}

// NeedsCheckpoint reports whether the log is long enough for a checkpoint.
func (s *Store) NeedsCheckpoint() bool { return s.journal.Bytes() >= s.opts.CheckpointBytes }

// Checkpoint makes metadata and packs durable and then trims the log before
// keep. The caller chooses keep before the call: every record before it is
// applied to Meta and its chunks are in Packs, or it is of no use any more
// (also an entry not yet committed, and the newest state of a replica, are of
// use: keep lies at or before them, or they were appended again behind it).
func (s *Store) Checkpoint(ctx context.Context, keep journal.Position) error {
	s.checkpoint.Lock()
	defer s.checkpoint.Unlock()
	if err := s.packs.Sync(); err != nil {
		return err
	}
	if !plant.On(plant.MetaUnflushed) {
		if err := s.meta.Flush(ctx); err != nil {
			return err
		}
	}
	return s.journal.Trim(keep)
}

// Usage is how much the parts take and what the file system has, in bytes.
type Usage struct {
	Disk    disk.Usage
	Journal int64
	Chunks  int64
	Meta    int64
	Packs   int64 // length of the files that chunks lie in
	Waiting int64 // of Chunks, what lost a reference and waits for its pack to be looked at
}

// Usage returns the space taken and left.
func (s *Store) Usage() Usage {
	packs := s.packs.Space()
	u := Usage{Journal: s.journal.Bytes(), Chunks: packs.Chunks, Meta: s.meta.Bytes(), Packs: packs.Files, Waiting: packs.Doubted}
	if m, ok := s.d.(disk.Measurer); ok {
		// Where the system cannot say, the zero value does.
		u.Disk, _ = m.Usage()
	}
	return u
}

// Err returns the failure after which this store acknowledges nothing, if any.
func (s *Store) Err() error {
	if err := s.journal.Err(); err != nil {
		return err
	}
	return s.packs.Err()
}

// Close writes what is queued and closes everything; a second call returns the
// first one's error.
func (s *Store) Close() error {
	s.closing.Do(func() { s.closeErr = s.close() })
	return s.closeErr
}

func (s *Store) close() error {
	var first error
	keep := func(err error) {
		if first == nil {
			first = err
		}
	}
	if s.journal != nil {
		keep(s.journal.Close())
	}
	if s.packs != nil {
		keep(s.packs.Close())
	}
	if s.meta != nil {
		keep(s.meta.Close())
	}
	if s.unlock != nil {
		keep(s.unlock())
	}
	if s.real != nil {
		keep(s.real.Close())
	}
	return first
}
