// Package schema holds geo-config's tables in a database: the files of SQL that
// make them, which version is there, and where the rows live in a CockroachDB of
// several regions. It reads and writes no row of them. It keeps nothing in
// memory, so it is safe for concurrent use; other processes may migrate too.
package schema

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"cartwheel.dev/geo-config/cockroach/database"
	"cartwheel.dev/geo-config/fault"
)

// The files are named NNNN_what.sql. Those of migrations run everywhere, each
// once. Those of locality need what only CockroachDB has.
//
//go:embed migrations/*.sql locality/*.sql
var files embed.FS

// Kinds of migrations, as table migrations has them.
const (
	schemaKind   = "schema"
	localityKind = "locality"
)

// migration is one file.
type migration struct {
	kind       string
	version    int
	name       string
	statements []string
	// regions is how many regions the database must span; only of locality.
	regions int
}

// migrationsOf reads the files of one kind, in the order of their versions.
func migrationsOf(kind string) ([]migration, error) {
	dir := map[string]string{schemaKind: "migrations", localityKind: "locality"}[kind]
	names, err := fs.Glob(files, dir+"/*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var out []migration
	for i, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		m := migration{kind: kind, name: path.Base(name), statements: statementsOf(string(text))}
		number, _, _ := strings.Cut(m.name, "_")
		if m.version, err = strconv.Atoi(number); err != nil || m.version != i+1 {
			return nil, fmt.Errorf("migration %s: its number has to be %d", m.name, i+1)
		}
		if _, needs, ok := strings.Cut(string(text), regionsMark); ok {
			if _, err := fmt.Sscan(needs, &m.regions); err != nil {
				return nil, fmt.Errorf("migration %s: %w", m.name, err)
			}
		}
		out = append(out, m)
	}
	return out, nil
}

// regionsMark precedes the number of regions that a file of locality needs.
const regionsMark = "-- Regions needed: "

// statementsOf cuts a file at the semicolons that end a line, without its
// comments.
func statementsOf(text string) []string {
	var out []string
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if trimmed := strings.TrimSpace(line); trimmed == "" || strings.HasPrefix(trimmed, "--") {
			continue
		}
		body, ends := strings.CutSuffix(line, ";")
		lines = append(lines, body)
		if ends {
			out, lines = append(out, strings.Join(lines, "\n")), nil
		}
	}
	if len(lines) > 0 {
		out = append(out, strings.Join(lines, "\n"))
	}
	return out
}

// Patience is the one that a database should have while its tables are made: a
// change of a large table's home takes a while.
const Patience = 10 * time.Minute

// Version returns the version of the tables; 0: there are none.
func Version(ctx context.Context, d *database.Database) (int, error) {
	var version int
	err := d.Pool.QueryRow(ctx, "SELECT coalesce(max(version), 0) FROM migrations WHERE kind = $1", schemaKind).Scan(&version)
	if database.Code(err) == database.NoTable {
		return 0, nil
	}
	return version, err
}

// Check compares the tables' version with this program's.
func Check(version int) error {
	const op fault.Op = "schema.Check"
	known, err := migrationsOf(schemaKind)
	if err != nil {
		return err
	}
	switch {
	case version > len(known):
		return fault.Errorf(fault.NewerVersion, op, "", "the tables are of version %d and this program knows up to %d: install the newer program", version, len(known))
	case version == 0:
		return fault.E(fault.Invalid, op, "", "the database has no tables of Cartwheel: run cartwheel geo-config init")
	case version < len(known):
		return fault.Errorf(fault.Invalid, op, "", "the tables are of version %d and this program needs %d: run cartwheel geo-config init", version, len(known))
	}
	return nil
}

// Report says what a migration found and did.
type Report struct {
	// Database is what the server calls itself.
	Database string `json:"database"`
	// Version is that of the tables now.
	Version int `json:"version"`
	// Applied are the files that ran, in order.
	Applied []string `json:"applied,omitempty"`
	// Skipped says of each file of locality that did not run why.
	Skipped []string `json:"skipped,omitempty"`
	// Regions of the database, the primary one first; none on PostgreSQL.
	Regions []string `json:"regions,omitempty"`
}

// Migrate makes the tables or brings them to this program's version. It may be
// repeated, and may run beside other processes: every statement may.
//
// It runs each statement by itself, as CockroachDB asks for changes of a schema,
// and notes a file when all of its statements succeeded.
func Migrate(ctx context.Context, d *database.Database) (Report, error) {
	const op fault.Op = "schema.Migrate"
	m := &migrator{db: d, report: Report{Database: d.Version}}
	err := m.tables(ctx)
	return m.report, d.Failure(op, err)
}

// migrator is one run of Migrate.
type migrator struct {
	db     *database.Database
	report Report
}

// tables makes the tables, or brings them to the newest version.
func (m *migrator) tables(ctx context.Context) error {
	version, err := Version(ctx, m.db)
	if err != nil {
		return err
	}
	if err := Check(version); fault.Is(err, fault.NewerVersion) {
		return err
	}
	for _, s := range []string{
		`CREATE SCHEMA IF NOT EXISTS "` + m.db.Schema + `"`,
		`CREATE TABLE IF NOT EXISTS migrations (kind TEXT NOT NULL, version INT8 NOT NULL, name TEXT NOT NULL, PRIMARY KEY (kind, version))`,
	} {
		if err := m.exec(ctx, s); err != nil {
			return err
		}
	}
	list, err := migrationsOf(schemaKind)
	if err != nil {
		return err
	}
	for _, file := range list[version:] {
		if err := m.apply(ctx, file, file.statements); err != nil {
			return err
		}
	}
	m.report.Version = len(list)
	return nil
}

// apply runs a file's statements and notes it.
func (m *migrator) apply(ctx context.Context, file migration, statements []string) error {
	for _, s := range statements {
		if err := m.exec(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", file.name, err)
		}
	}
	_, err := m.db.Pool.Exec(ctx, "INSERT INTO migrations (kind, version, name) VALUES ($1, $2, $3) ON CONFLICT (kind, version) DO NOTHING", file.kind, file.version, file.name)
	if err != nil {
		return fmt.Errorf("%s: %w", file.name, err)
	}
	m.report.Applied = append(m.report.Applied, file.name)
	return nil
}

// migrateRestarts bounds the repetitions of a statement that met another
// process's, which makes the same thing at the same time.
const migrateRestarts = 10

// exec runs one statement.
func (m *migrator) exec(ctx context.Context, statement string) error {
	for n := 0; ; n++ {
		_, err := m.db.Pool.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol)
		if !database.IsDuplicate(err) || n >= migrateRestarts {
			return err
		}
		if err := database.Pause(ctx, n); err != nil {
			return err
		}
	}
}
