package embedded

import (
	"context"
	"database/sql"
	"fmt"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
)

// The schema, documented in docs/formats/geo-config.md.
const (
	// applicationID marks the file as ours: "CWgc".
	applicationID = 0x43576763
	// schemaVersion is kept in PRAGMA user_version.
	schemaVersion = 2
)

// tableNames lists the tables of rows in the order of geoconfig.Table.
var tableNames = [...]struct {
	table geoconfig.Table
	name  string
}{
	{geoconfig.ClusterTable, "cluster"},
	{geoconfig.SitesTable, "sites"},
	{geoconfig.NodesTable, "nodes"},
	{geoconfig.SlicesTable, "slices"},
	{geoconfig.UsersTable, "users"},
	{geoconfig.RecordsTable, "records"},
}

// isFollowed reports whether changes of a table's rows reach followers.
func isFollowed(t geoconfig.Table) bool { return t != geoconfig.RecordsTable }

// nameOf returns the SQL table of a table of rows.
func nameOf(t geoconfig.Table) (string, bool) {
	for _, n := range tableNames {
		if n.table == t {
			return n.name, true
		}
	}
	return "", false
}

// migrations bring a database from version i to i+1, each in the transaction
// that sets the new version.
func migrations() []func(tx *sql.Tx) error {
	return []func(tx *sql.Tx) error{createTables, createRecords}
}

func createTables(tx *sql.Tx) error {
	var statements []string
	for _, t := range tableNames {
		if t.table == geoconfig.RecordsTable {
			continue // came later
		}
		// Slices go by number, so that their index is in that order.
		key := "TEXT"
		if t.table == geoconfig.SlicesTable {
			key = "INTEGER"
		}
		statements = append(statements,
			fmt.Sprintf(`CREATE TABLE %s (key %s PRIMARY KEY, revision INTEGER NOT NULL, row TEXT) STRICT`, t.name, key),
			fmt.Sprintf(`CREATE INDEX %s_revision ON %s (revision)`, t.name, t.name))
	}
	statements = append(statements,
		`CREATE TABLE audit (number INTEGER PRIMARY KEY AUTOINCREMENT, revision INTEGER NOT NULL, record TEXT NOT NULL) STRICT`,
		`CREATE TABLE batches (number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, revision INTEGER NOT NULL) STRICT`,
		`CREATE TABLE state (one INTEGER PRIMARY KEY CHECK (one = 1), revision INTEGER NOT NULL) STRICT`,
		`INSERT INTO state VALUES (1, 0)`)
	for _, s := range statements {
		if _, err := tx.Exec(s); err != nil {
			return fmt.Errorf("creating the tables: %w", err)
		}
	}
	return nil
}

// createRecords adds the table of records. It has no index of revisions: nobody
// follows it.
func createRecords(tx *sql.Tx) error {
	_, err := tx.Exec(`CREATE TABLE records (key TEXT PRIMARY KEY, revision INTEGER NOT NULL, row TEXT NOT NULL) STRICT`)
	if err != nil {
		return fmt.Errorf("creating the table of records: %w", err)
	}
	return nil
}

// prepare checks that the file is ours and sound, brings it to schemaVersion,
// and takes the lock. A file that it refuses it leaves as it is.
func prepare(ctx context.Context, db *sql.DB, path string) error {
	var application, version, objects int
	if err := db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&application); err != nil {
		return failure(op, path, err)
	}
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return failure(op, path, err)
	}
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&objects); err != nil {
		return failure(op, path, err)
	}
	fresh := application == 0 && version == 0 && objects == 0
	if !fresh && application != applicationID {
		return fault.E(fault.Invalid, op, path, "the file is a database of another program: choose another path")
	}
	if version > schemaVersion {
		return fault.Errorf(fault.NewerVersion, op, path,
			"the database is of version %d and this program knows up to %d: install the newer program", version, schemaVersion)
	}
	if err := check(ctx, db, path); err != nil {
		return err
	}
	return failure(op, path, migrate(ctx, db, version))
}

// migrate writes even when there is nothing to migrate: in exclusive locking
// mode the first write takes the lock that keeps other processes out.
func migrate(ctx context.Context, db *sql.DB, version int) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit this does nothing
	for _, step := range migrations()[version:] {
		if err := step(tx); err != nil {
			return err
		}
	}
	for _, s := range []string{
		fmt.Sprintf("PRAGMA application_id = %d", applicationID),
		fmt.Sprintf("PRAGMA user_version = %d", schemaVersion),
	} {
		if _, err := tx.Exec(s); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func check(ctx context.Context, db *sql.DB, path string) error {
	var verdict string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return failure(op, path, err)
	}
	if verdict != "ok" {
		return fault.Errorf(fault.Corrupt, op, path, "the database is damaged (%s): restore a copy, or rebuild it from the nodes", verdict)
	}
	return nil
}
