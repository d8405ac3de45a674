package cockroach

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
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

// schemaName is what may stand in a statement within double quotes.
var schemaName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

// connect makes the pool; the first use of it connects.
func connect(o Options) (pool *pgxpool.Pool, where string, err error) {
	const op fault.Op = "cockroach.Open"
	config, err := parse(o)
	if err != nil {
		return nil, "", err
	}
	where = address(config)
	// The session's own limits end what this process can no longer end, as
	// when it is paused or cut off while it holds the line of table state.
	limit := fmt.Sprintf("%dms", (o.Patience + time.Second).Milliseconds())
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
	pool, err = pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, where, failure(op, where, err)
	}
	return pool, where, nil
}

// parse checks the options.
func parse(o Options) (*pgxpool.Config, error) {
	const op fault.Op = "cockroach.Open"
	if !schemaName.MatchString(o.Schema) {
		return nil, fault.Errorf(fault.Invalid, op, o.Schema, "a schema's name has lower-case letters, digits and _, 63 at most")
	}
	if !strings.Contains(o.URL, "://") {
		return nil, fault.E(fault.Invalid, op, "the database's URL", "give it as postgresql://USER@HOST:PORT/DATABASE")
	}
	config, err := pgxpool.ParseConfig(o.URL)
	if err != nil { // pgx leaves the password out of its error
		return nil, &fault.Error{Kind: fault.Invalid, Op: op, Subject: "the database's URL", Public: "give it as postgresql://USER@HOST:PORT/DATABASE", Cause: err}
	}
	config.MaxConns, config.MinConns = maxConns, 0
	config.MaxConnLifetime, config.MaxConnLifetimeJitter = connLife, connLifeJitter
	config.MaxConnIdleTime, config.HealthCheckPeriod = connIdle, healthEvery
	config.ConnConfig.ConnectTimeout = connectPatience
	config.ConnConfig.RuntimeParams["application_name"] = "cartwheel"
	return config, nil
}

// address names a database for people, without user and password.
func address(config *pgxpool.Config) string {
	c := config.ConnConfig
	return fmt.Sprintf("%s:%d/%s", c.Host, c.Port, c.Database)
}

// dialect is what tells the databases apart.
type dialect struct {
	name      string // of geoconfig.Properties
	cockroach bool
	version   string
	// begin starts a transaction that writes.
	begin string
}

// dialectOf asks the database what it is.
func dialectOf(ctx context.Context, q querier) (dialect, error) {
	d := dialect{name: "postgresql"}
	if err := q.QueryRow(ctx, "SELECT version()").Scan(&d.version); err != nil {
		return d, fmt.Errorf("asking for the version: %w", err)
	}
	d.begin = "BEGIN ISOLATION LEVEL SERIALIZABLE"
	switch {
	case strings.Contains(d.version, "CockroachDB"):
		d.name, d.cockroach = "cockroach", true
	case strings.HasPrefix(d.version, "PostgreSQL "):
		// The lock comes before the snapshot, and readers do not notice it.
		d.begin += "; LOCK TABLE state IN EXCLUSIVE MODE"
	default:
		return d, fault.Errorf(fault.NotSupported, "cockroach.Open", "", "the database says that it is %q: it has to be CockroachDB or PostgreSQL", d.version)
	}
	return d, nil
}

// querier is a pool, a connection or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func currentRevision(ctx context.Context, q querier) (ids.Revision, error) {
	var rev ids.Revision
	err := q.QueryRow(ctx, "SELECT revision FROM state WHERE one = 1").Scan(&rev)
	return rev, err
}

// rollback ends a transaction that did not commit. An error breaks the
// connection, which ends it as well.
func rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackPatience)
	defer cancel()
	_ = tx.Rollback(ctx) // of a transaction that has ended it does nothing
}
