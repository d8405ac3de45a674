// Package fault is the one error type of Cartwheel: what was being done, to
// what, what kind of failure it was, and why. Kinds are closed, numbered and
// append-only; the tables beside this file turn them into errnos, HTTP statuses
// and exit codes, and nobody matches on text. It is not a logger: an error is
// returned or logged, never both. Values are immutable and safe to share.
package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Op names the exported method that failed, as package.Method.
type Op string

// Error is a failure with its kind. Public holds what a person may read;
// Cause stays inside the process and does not cross the wire.
type Error struct {
	Kind    Kind
	Op      Op
	Subject string // path, object, node, slice or file that it is about
	Public  string // what to do about it, or more exactly what is wrong
	Cause   error
}

// E builds an Error. Subject may be empty.
func E(kind Kind, op Op, subject, public string) *Error {
	return &Error{Kind: kind, Op: op, Subject: subject, Public: public}
}

// Wrap gives an error an op and subject, keeping its kind; nil stays nil. An
// error of another type becomes of kind k.
func Wrap(k Kind, op Op, subject string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: orKind(KindOf(err), k), Op: op, Subject: subject, Cause: err}
}

func orKind(got, fallback Kind) Kind {
	if got == Other {
		return fallback
	}
	return got
}

func (e *Error) Error() string {
	var parts []string
	if e.Op != "" {
		parts = append(parts, string(e.Op))
	}
	if e.Subject != "" {
		parts = append(parts, e.Subject)
	}
	if e.Public != "" {
		parts = append(parts, e.Public)
	}
	if e.Cause != nil {
		parts = append(parts, e.Cause.Error())
	}
	if e.Public == "" && e.Cause == nil {
		parts = append(parts, e.Kind.String())
	}
	return strings.Join(parts, ": ")
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Is reports whether target is an *Error of the same kind with no other field
// set, so that errors.Is(err, fault.E(fault.NotFound, "", "", "")) works.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Kind == e.Kind && t.Op == "" && t.Subject == "" && t.Public == "" && t.Cause == nil
}

// KindOf returns the kind of the outermost Error in err's chain; contexts map
// to Canceled and TimedOut, everything else to Other, nil to None.
func KindOf(err error) Kind {
	if err == nil {
		return None
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	if errors.Is(err, context.Canceled) {
		return Canceled
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return TimedOut
	}
	return Other
}

// Is reports whether err is of kind k.
func Is(err error, k Kind) bool { return err != nil && KindOf(err) == k }

// Errorf builds an Error whose public text is formatted.
func Errorf(kind Kind, op Op, subject, format string, args ...any) *Error {
	return E(kind, op, subject, fmt.Sprintf(format, args...))
}

// SubjectOf returns the first subject in err's chain.
func SubjectOf(err error) string {
	var e *Error
	for cause := err; errors.As(cause, &e); cause = e.Cause {
		if e.Subject != "" {
			return e.Subject
		}
	}
	return ""
}
