package database

import (
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"cartwheel.dev/geo-config/fault"
)

// NoTable is the SQLSTATE of a table that does not exist.
const NoTable = "42P01"

// Other SQLSTATE codes that have a meaning of their own here.
const (
	codeSerialization = "40001"
	codeAmbiguous     = "40003" // statement completion unknown
	codeDeadlock      = "40P01"
	codeOldRestart    = "CR000" // CockroachDB's former restart
	codeUnique        = "23505"
	// Of things that a migration makes.
	codeDuplicateObject = "42710"
	codeDuplicateTable  = "42P07"
	codeDuplicateSchema = "42P06"
	codeNoDatabase      = "3D000"
	codeNoRight         = "42501"
	codeReadOnly        = "25006"
	codeIdle            = "25P03" // idle in transaction too long
	codeCanceled        = "57014"
	codeLocked          = "55P03"
	codeDiskFull        = "53100"
)

// Code returns the SQLSTATE of an error, or "".
func Code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// MustRestart reports whether a transaction failed because of another one, and
// certainly changed nothing.
func MustRestart(err error) bool {
	switch Code(err) {
	case codeSerialization, codeDeadlock, codeOldRestart, codeUnique:
		return true
	}
	return errors.Is(err, pgx.ErrTxCommitRollback)
}

// IsUnsettled reports whether the transaction may have come through or not, or
// could not begin: the next one finds out by the keys.
func IsUnsettled(err error) bool {
	code := Code(err)
	switch {
	case err == nil:
		return false
	case code == codeAmbiguous, code == codeIdle, strings.HasPrefix(code, "08"), strings.HasPrefix(code, "57P"):
		return true
	case code != "":
		return false
	}
	return brokenConnection(err)
}

// brokenConnection reports whether an error is of the network.
func brokenConnection(err error) bool {
	var connecting *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connecting) || errors.As(err, &network) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || pgconn.SafeToRetry(err) ||
		strings.Contains(err.Error(), "conn closed")
}

// IsDuplicate reports whether a statement failed because another process made the
// same thing at the same time. PostgreSQL calls it a duplicate in its catalogue.
func IsDuplicate(err error) bool {
	switch Code(err) {
	case codeDuplicateObject, codeDuplicateTable, codeDuplicateSchema:
		return true
	}
	return MustRestart(err)
}

// Failure gives an error of the database its kind. nil stays nil.
func (d *Database) Failure(op fault.Op, err error) error { return failure(op, d.where, err) }

func failure(op fault.Op, where string, err error) error {
	if err == nil || isOurs(err) {
		return err
	}
	if code := Code(err); code != "" {
		kind, remedy := meaning(code)
		return &fault.Error{Kind: kind, Op: op, Subject: where, Public: remedy, Cause: err}
	}
	if k := fault.KindOf(err); k == fault.Canceled || k == fault.TimedOut {
		return fault.Wrap(k, op, where, err)
	}
	if MustRestart(err) {
		return &fault.Error{Kind: fault.Overloaded, Op: op, Subject: where, Public: "too many changes at once: try again", Cause: err}
	}
	if IsUnsettled(err) {
		return &fault.Error{Kind: fault.Unreachable, Op: op, Subject: where, Public: "the database does not answer: check that it runs and that this machine reaches it", Cause: err}
	}
	return &fault.Error{Kind: fault.IO, Op: op, Subject: where, Cause: err}
}

// isOurs reports whether an error has its kind already.
func isOurs(err error) bool {
	var e *fault.Error
	return errors.As(err, &e)
}

// meaning translates a SQLSTATE, the exact ones first and then their classes.
func meaning(code string) (fault.Kind, string) {
	switch code {
	case codeSerialization, codeDeadlock, codeOldRestart, codeUnique, codeLocked:
		return fault.Overloaded, "too many changes at once: try again"
	case codeAmbiguous:
		return fault.Unreachable, "the database does not know whether the change was made: try again"
	case codeCanceled:
		return fault.TimedOut, "the database took too long"
	case codeDiskFull:
		return fault.NoSpace, "the database's disk is full: free some space"
	case NoTable:
		return fault.Invalid, "the database has no tables of Cartwheel: run cartwheel geo-config init"
	case codeNoDatabase:
		return fault.NotFound, "there is no such database: create it"
	case codeNoRight:
		return fault.Permission, "the database's user may not do this: grant it the schema"
	case codeReadOnly:
		return fault.ReadOnly, "the database takes no changes"
	}
	if len(code) < 2 {
		return fault.IO, ""
	}
	switch code[:2] {
	case "08", "57", "25":
		return fault.Unreachable, "the database broke the connection: check that it runs"
	case "28":
		return fault.Unauthorized, "the database refuses this user: check its name, its password and its certificate"
	case "53":
		return fault.Overloaded, "the database lacks memory or connections"
	case "58":
		return fault.IO, "the database's disk fails"
	}
	if code == "XX001" || code == "XX002" {
		return fault.Corrupt, "the database is damaged: restore a copy, or rebuild it from the nodes"
	}
	return fault.IO, "the database failed"
}
