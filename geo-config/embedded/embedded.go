// Package embedded is the geoconfig.Store for one machine: a SQLite file in
// write-ahead mode with full syncs, held by one process at a time, which the
// others reach over wire. What Apply acknowledged is on the disk. It is no
// consensus: while its process is away nothing changes. It passes the
// conformance suite; like every store it is safe for concurrent use, over one
// connection that runs calls one after the other.
package embedded

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	sqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

var _ geoconfig.Store = (*Store)(nil)

const op fault.Op = "embedded.Open"

// FileName is the database's name within its directory.
const FileName = "geo-config.db"

// Store is an open database.
type Store struct {
	db   *sql.DB
	path string

	mu      sync.Mutex // guards all below; never held across I/O
	rev     ids.Revision
	changed chan struct{} // closed and replaced at every change
	closed  bool
	failed  error // after a write whose outcome is unknown, or damage
}

// Open opens the database in a directory, and makes both where they are
// missing. Errors: Busy (another process has it open), NewerVersion, Corrupt,
// Invalid (the file is something else), Permission, NoSpace, IO.
func Open(ctx context.Context, dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fault.FromOS(op, dir, err)
	}
	path, err := filepath.Abs(filepath.Join(dir, FileName))
	if err != nil {
		return nil, fault.FromOS(op, dir, err)
	}
	// SQLite makes its file readable for all; the roster is nobody's business.
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fault.FromOS(op, path, err)
	}
	if err := file.Close(); err != nil {
		return nil, fault.FromOS(op, path, err)
	}
	db, err := sql.Open("sqlite", source(path))
	if err != nil {
		return nil, failure(op, path, err)
	}
	// One connection: exclusive locking shuts out a second one of our own too.
	db.SetMaxOpenConns(1)
	db.SetConnMaxIdleTime(0)
	db.SetConnMaxLifetime(0)
	s := &Store{db: db, path: path, changed: make(chan struct{})}
	err = prepare(ctx, db, path)
	if err == nil {
		err = failure(op, path, db.QueryRowContext(ctx, "SELECT revision FROM state").Scan(&s.rev))
	}
	if err != nil {
		db.Close() // the error that matters is the first one
		return nil, err
	}
	return s, nil
}

func source(path string) string {
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path)}
	u.RawQuery = url.Values{
		"_pragma": {"locking_mode(EXCLUSIVE)", "journal_mode(WAL)", "synchronous(FULL)", "trusted_schema(OFF)", "cell_size_check(ON)"},
		"_txlock": {"immediate"},
	}.Encode()
	return u.String()
}

// failure gives an error of SQLite its kind. nil stays nil.
func failure(op fault.Op, path string, err error) error {
	if err == nil || fault.KindOf(err) != fault.Other {
		return err
	}
	kind, remedy := fault.IO, ""
	var e *sqlite.Error
	if errors.As(err, &e) {
		kind, remedy = meaning(e.Code() & 0xff)
	}
	return &fault.Error{Kind: kind, Op: op, Subject: path, Public: remedy, Cause: err}
}

func meaning(code int) (fault.Kind, string) {
	switch code {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fault.Busy, "another process has the database open: stop it, or choose another directory"
	case sqlite3.SQLITE_CORRUPT:
		return fault.Corrupt, "the database is damaged: restore a copy, or rebuild it from the nodes"
	case sqlite3.SQLITE_NOTADB:
		return fault.Invalid, "the file is not a database: choose another path"
	case sqlite3.SQLITE_FULL:
		return fault.NoSpace, "the disk is full: free some space"
	case sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_CANTOPEN:
		return fault.Permission, "the database cannot be opened: check its permissions"
	case sqlite3.SQLITE_READONLY:
		return fault.ReadOnly, "the database cannot be written: check its permissions"
	}
	return fault.IO, "the disk or the file system fails"
}

// Properties implements geoconfig.Store.
func (s *Store) Properties(context.Context) (geoconfig.Properties, error) {
	return geoconfig.Properties{Name: "embedded", SinglePoint: true, Durable: true}, nil
}

// Close implements geoconfig.Store.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.wakeLocked()
	s.mu.Unlock()
	return failure("embedded.Close", s.path, s.db.Close())
}

// wakeLocked tells the callers of Follow that something changed. s.mu is held.
func (s *Store) wakeLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// enter says whether a call may run.
func (s *Store) enter(ctx context.Context, op fault.Op) error {
	if err := ctx.Err(); err != nil {
		return fault.Wrap(fault.Canceled, op, "", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fault.E(fault.Closed, op, s.path, "the store was closed")
	}
	return s.failed
}
