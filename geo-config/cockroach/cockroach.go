package cockroach

import (
	"cmp"
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/cockroach/database"
	"cartwheel.dev/geo-config/cockroach/schema"
	"cartwheel.dev/geo-config/fault"
)

var _ geoconfig.Store = (*Store)(nil)

// Options say how a store uses its database.
type Options struct {
	database.Options

	// Poll is how often to look for other processes' changes; 0: DefaultPoll.
	Poll time.Duration
}

// Store is an open database.
type Store struct {
	db    *database.Database
	calls chan *call // to the writer
	watch *watch
	tasks sync.WaitGroup // the writer and the poller

	readings singleflight.Group // of followers
}

// Open opens the database, whose tables have to be there in the form that this
// program knows. Errors beside those of every method: Invalid (the URL, or no
// tables: run schema.Migrate), NewerVersion, Unauthorized, Permission, NotFound
// (no such database), Busy (an archive was loaded in part).
func Open(ctx context.Context, o Options) (*Store, error) {
	s, lines, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := checkLoaded("cockroach.Open", lines); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// open returns the store, and how many lines of an archive that is being loaded
// it has; -1: none is.
func open(ctx context.Context, o Options) (*Store, int64, error) {
	d, err := database.Open(ctx, o.Options)
	if err != nil {
		return nil, 0, err
	}
	s := &Store{db: d, calls: make(chan *call, maxWaiting), watch: newWatch(d, max(cmp.Or(o.Poll, DefaultPoll), minPoll))}
	lines, err := s.prepare(ctx)
	if err != nil {
		d.Close()
		return nil, 0, d.Failure("cockroach.Open", err)
	}
	s.tasks.Go(s.write)
	s.tasks.Go(s.watch.keepPolling)
	return s, lines, nil
}

// prepare checks the tables.
func (s *Store) prepare(ctx context.Context) (lines int64, err error) {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	version, err := schema.Version(ctx, s.db)
	if err != nil {
		return 0, err
	}
	if err := schema.Check(version); err != nil {
		return 0, err
	}
	err = s.db.Pool.QueryRow(ctx, "SELECT revision, archive_lines FROM state WHERE one = 1").Scan(&s.watch.rev, &lines)
	return lines, err
}

// Properties implements geoconfig.Store. PostgreSQL is one process.
func (s *Store) Properties(ctx context.Context) (geoconfig.Properties, error) {
	const op fault.Op = "cockroach.Properties"
	if err := s.db.Enter(ctx, op); err != nil {
		return geoconfig.Properties{}, err
	}
	return geoconfig.Properties{Name: s.db.Name, SinglePoint: !s.db.IsCockroach(), Durable: true}, nil
}

// Close implements geoconfig.Store.
func (s *Store) Close() error {
	s.db.Stop()
	s.tasks.Wait()
	s.db.Close()
	return nil
}
