// Package database is a pool of connections to a CockroachDB or a PostgreSQL,
// with what geo-config needs of it: limits, errors that have a kind, and
// transactions that run again until they have an outcome. It knows no tables. A
// Database is safe for concurrent use.
package database

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"cartwheel.dev/geo-config/fault"
)

// Limits of a database. All are per process.
const (
	// DefaultSchema is where the tables are unless Options says otherwise.
	DefaultSchema = "cartwheel"
	// DefaultPatience bounds one transaction, and with it how long a lock is
	// held.
	DefaultPatience = 10 * time.Second
	// maxConns is the size of the pool. A query that finds no connection free
	// waits for one.
	maxConns = 8
)

// How connections are kept. A limited life spreads them anew over the nodes of
// the database, and lets none outlive a change of the schema for long.
const (
	connectPatience = 5 * time.Second
	connLife        = 30 * time.Minute
	connLifeJitter  = 5 * time.Minute
	connIdle        = 5 * time.Minute
	healthEvery     = 30 * time.Second
)

// rollbackPatience bounds the end of a transaction that failed.
const rollbackPatience = time.Second

// sessionMargin is how much longer than this process the database itself is
// patient.
const sessionMargin = time.Second

// Options name a database.
type Options struct {
	// URL is a connection string of PostgreSQL's form. It may leave out the
	// password, which then comes from PGPASSWORD or the password file.
	URL string
	// Schema is where the tables are; empty: DefaultSchema.
	Schema string
	// Patience bounds one transaction; 0: DefaultPatience.
	Patience time.Duration
}

// Database is an open pool. Its fields do not change.
type Database struct {
	Pool *pgxpool.Pool
	// Name is cockroach or postgresql.
	Name string
	// Version is what the server calls itself.
	Version string
	// Schema is where the tables are.
	Schema string
	// begin starts a transaction that writes.
	begin    string
	where    string // host and database, for people
	patience time.Duration
	life     context.Context // ends with Stop
	end      context.CancelFunc
}

// Open makes the pool and asks the server what it is.
func Open(ctx context.Context, o Options) (*Database, error) {
	const op fault.Op = "database.Open"
	o.Schema, o.Patience = cmp.Or(o.Schema, DefaultSchema), cmp.Or(o.Patience, DefaultPatience)
	config, err := parse(o)
	if err != nil {
		return nil, err
	}
	d := &Database{Schema: o.Schema, where: address(config), patience: o.Patience}
	if d.Pool, err = pgxpool.NewWithConfig(context.Background(), config); err != nil {
		return nil, d.Failure(op, err)
	}
	d.life, d.end = context.WithCancel(context.Background())
	bounded, cancel := d.Bound(ctx)
	defer cancel()
	if err := d.ask(bounded); err != nil {
		d.Close()
		return nil, d.Failure(op, err)
	}
	return d, nil
}

// schemaName is what may stand in a statement within double quotes.
var schemaName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

// parse checks the options.
func parse(o Options) (*pgxpool.Config, error) {
	if !schemaName.MatchString(o.Schema) {
		return nil, fault.Errorf(fault.Invalid, "database.Open", o.Schema, "a schema's name has lower-case letters, digits and _, 63 at most")
	}
	wrong := fault.E(fault.Invalid, "database.Open", "the database's URL", "give it as postgresql://USER@HOST:PORT/DATABASE")
	if !strings.Contains(o.URL, "://") {
		return nil, wrong
	}
	config, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		wrong.Cause = err // pgx leaves the password out of it
		return nil, wrong
	}
	config.MaxConns, config.MinConns = maxConns, 0
	config.MaxConnLifetime, config.MaxConnLifetimeJitter = connLife, connLifeJitter
	config.MaxConnIdleTime, config.HealthCheckPeriod = connIdle, healthEvery
	config.ConnConfig.ConnectTimeout = connectPatience
	config.ConnConfig.RuntimeParams["application_name"] = "cartwheel"
	// The session's own limits end what this process can no longer end, as
	// when it is paused or cut off while it holds a lock.
	limit := fmt.Sprintf("%dms", (o.Patience + sessionMargin).Milliseconds())
	settings := strings.Join([]string{
		`SET search_path TO "` + o.Schema + `"`,
		"SET statement_timeout TO '" + limit + "'",
		"SET lock_timeout TO '" + limit + "'",
		"SET idle_in_transaction_session_timeout TO '" + limit + "'",
	}, "; ")
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, settings)
		return err
	}
	return config, nil
}

// address names a database for people, without user and password.
func address(config *pgxpool.Config) string {
	c := config.ConnConfig
	return fmt.Sprintf("%s:%d/%s", c.Host, c.Port, c.Database)
}

// ask learns what the server is, and how to start a writing transaction there.
func (d *Database) ask(ctx context.Context) error {
	if err := d.Pool.QueryRow(ctx, "SELECT version()").Scan(&d.Version); err != nil {
		return fmt.Errorf("asking for the version: %w", err)
	}
	d.begin = "BEGIN ISOLATION LEVEL SERIALIZABLE"
	switch {
	case strings.Contains(d.Version, "CockroachDB"):
		d.Name = "cockroach"
	case strings.HasPrefix(d.Version, "PostgreSQL "):
		d.Name = "postgresql"
	default:
		return fault.Errorf(fault.NotSupported, "database.Open", d.where, "the database says that it is %q: it has to be CockroachDB or PostgreSQL", d.Version)
	}
	return nil
}

// IsCockroach tells the databases apart.
func (d *Database) IsCockroach() bool { return d.Name == "cockroach" }

// Where names the database for people, without user and password.
func (d *Database) Where() string { return d.where }

// Begin starts a transaction that writes, alone among those that name the same
// table: on PostgreSQL it queues for the table's lock, which comes before the
// snapshot and which readers do not notice. CockroachDB queues at the first row.
// Its commit is on disk when it is acknowledged, whatever PostgreSQL's default is.
func (d *Database) Begin(ctx context.Context, table string) (pgx.Tx, error) {
	begin := d.begin
	if !d.IsCockroach() {
		begin += "; SET LOCAL synchronous_commit TO on; LOCK TABLE " + table + " IN EXCLUSIVE MODE"
	}
	return d.Pool.BeginTx(ctx, pgx.TxOptions{BeginQuery: begin})
}

// Rollback ends a transaction that did not commit. An error breaks the
// connection, which ends it as well.
func Rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackPatience)
	defer cancel()
	_ = tx.Rollback(ctx) // of a transaction that has ended it does nothing
}

// Bound returns the context of a transaction, which ends with the caller's, with
// Stop, and after the database's patience.
func (d *Database) Bound(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithTimeout(ctx, d.patience)
	stop := context.AfterFunc(d.life, cancel)
	return ctx, func() { stop(); cancel() }
}

// Life is the context of what runs until Stop.
func (d *Database) Life() context.Context { return d.life }

// Enter says whether a call may run.
func (d *Database) Enter(ctx context.Context, op fault.Op) error {
	if err := ctx.Err(); err != nil {
		return fault.Wrap(fault.Canceled, op, "", err)
	}
	if d.life.Err() != nil {
		return d.Closed(op)
	}
	return nil
}

// Closed is the error of a call that Stop ended.
func (d *Database) Closed(op fault.Op) error {
	return fault.E(fault.Closed, op, d.where, "the store was closed")
}

// Stop ends all that runs.
func (d *Database) Stop() { d.end() }

// Close stops, and closes the connections. It may be called again.
func (d *Database) Close() {
	d.end()
	d.Pool.Close()
}
