package cockroach

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

var _ geoconfig.Store = (*Store)(nil)

// Limits of a store. All are per process.
const (
	// DefaultSchema is where the tables are unless Options says otherwise.
	DefaultSchema = "cartwheel"
	// DefaultPoll is how often followers make the store look for changes of
	// other processes.
	DefaultPoll = 250 * time.Millisecond
	// minPoll bounds the load that a setting can bring about.
	minPoll = 5 * time.Millisecond
	// maxConns is the size of the pool. One connection writes and one polls; a
	// read that finds none free waits for one.
	maxConns = 8
	// maxWaiting is how many changes may wait for a transaction. Further calls
	// fail with kind Overloaded.
	maxWaiting = 1024
	// maxGroup is how many calls go into one transaction.
	maxGroup = 128
	// maxGroupRows bounds the rows of a group beside its first batch.
	maxGroupRows = geoconfig.MaxBatchRows
	// maxGroupBytes ends a group whose rows have more JSON; the rest goes into
	// the next transaction.
	maxGroupBytes = geoconfig.MaxBatchBytes
	// DefaultPatience bounds one transaction, and with it how long a lock is
	// held.
	DefaultPatience = 10 * time.Second
	// writePatience and readPatience bound the repetitions of a transaction that
	// did not come through. A call then fails, as Overloaded or Unreachable.
	writePatience = 20 * time.Second
	readPatience  = 5 * time.Second
	// maxRestarts bounds the restarts for serialization failures.
	maxRestarts = 100
)

// Options say how a store uses its database.
type Options struct {
	// URL is a connection string of PostgreSQL's form. It may leave out the
	// password, which then comes from PGPASSWORD or the password file.
	URL string
	// Schema is where the tables are; empty: DefaultSchema.
	Schema string
	// Poll is how often to look for other processes' changes; 0: DefaultPoll.
	Poll time.Duration
	// Patience bounds one transaction; 0: DefaultPatience.
	Patience time.Duration

	// loading opens a store that an archive is still loaded into.
	loading bool
}

// defaults fills what was left out.
func (o Options) defaults() Options {
	o.Schema = cmp.Or(o.Schema, DefaultSchema)
	o.Patience = cmp.Or(o.Patience, DefaultPatience)
	o.Poll = max(cmp.Or(o.Poll, DefaultPoll), minPoll)
	return o
}

// Store is an open database.
type Store struct {
	pool     *pgxpool.Pool
	dialect  dialect
	where    string // host and database, for people
	poll     time.Duration
	patience time.Duration

	calls chan *call      // to the writer
	life  context.Context // ends with Close
	end   context.CancelFunc
	tasks sync.WaitGroup // the writer and the poller

	mu       sync.Mutex // guards all below; never held across I/O
	rev      ids.Revision
	changed  chan struct{} // closed and replaced when rev or pollErr changes
	pollErr  error         // of the last poll
	pollings int           // counts the polls that ended
	waiters  int           // calls of Follow that wait
	wanted   chan struct{} // tells the poller of the first of them
}

// Open opens the database, whose tables have to be there in the form that this
// program knows. Errors beside those of every method: Invalid (the URL, or no
// tables: run Migrate), NewerVersion, Unauthorized, Permission, NotFound (no
// such database).
func Open(ctx context.Context, o Options) (*Store, error) {
	const op fault.Op = "cockroach.Open"
	o = o.defaults()
	pool, where, err := connect(o)
	if err != nil {
		return nil, err
	}
	s := &Store{
		pool: pool, where: where, poll: o.Poll, patience: o.Patience, calls: make(chan *call, maxWaiting),
		changed: make(chan struct{}), wanted: make(chan struct{}, 1),
	}
	s.life, s.end = context.WithCancel(context.Background())
	if err := s.prepare(ctx, o); err != nil {
		s.end()
		pool.Close()
		return nil, failure(op, where, err)
	}
	s.tasks.Go(s.write)
	s.tasks.Go(s.keepPolling)
	return s, nil
}

// prepare learns what the database is, and checks its tables.
func (s *Store) prepare(ctx context.Context, o Options) error {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	var err error
	if s.dialect, err = dialectOf(ctx, s.pool); err != nil {
		return err
	}
	version, err := schemaVersion(ctx, s.pool)
	if err != nil {
		return err
	}
	if err := checkVersion(version); err != nil {
		return err
	}
	s.rev, err = currentRevision(ctx, s.pool)
	if err != nil {
		return err
	}
	var lines int64
	if err := s.pool.QueryRow(ctx, "SELECT archive_lines FROM state WHERE one = 1").Scan(&lines); err != nil || o.loading {
		return err
	}
	return checkLoaded("cockroach.Open", lines)
}

// Properties implements geoconfig.Store. PostgreSQL is one process.
func (s *Store) Properties(ctx context.Context) (geoconfig.Properties, error) {
	if err := s.enter(ctx, "cockroach.Properties"); err != nil {
		return geoconfig.Properties{}, err
	}
	return geoconfig.Properties{Name: s.dialect.name, SinglePoint: !s.dialect.cockroach, Durable: true}, nil
}

// Close implements geoconfig.Store.
func (s *Store) Close() error {
	s.end()
	s.tasks.Wait()
	s.pool.Close()
	return nil
}

// enter says whether a call may run.
func (s *Store) enter(ctx context.Context, op fault.Op) error {
	if err := ctx.Err(); err != nil {
		return fault.Wrap(fault.Canceled, op, "", err)
	}
	if s.life.Err() != nil {
		return s.closed(op)
	}
	return nil
}

func (s *Store) closed(op fault.Op) error {
	return fault.E(fault.Closed, op, s.where, "the store was closed")
}

// begin returns the context of a transaction, which ends with the caller's, with
// the store, and after the store's patience.
func (s *Store) begin(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	stop := context.AfterFunc(s.life, cancel)
	return ctx, func() { stop(); cancel() }
}
