package fault

import (
	"errors"
	"strings"
)

// Explain writes an error for people: the things that it is about, what is
// wrong and what to do, each once, from the outside in. The names of methods
// stay out; a log has them.
func Explain(err error) string {
	var parts []string
	gather(err, &parts)
	if len(parts) == 0 {
		return KindOf(err).String()
	}
	return strings.Join(parts, ": ")
}

func gather(err error, parts *[]string) {
	if err == nil {
		return
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok { // this very error, not one below it
		var all []string
		for _, e := range joined.Unwrap() {
			add(&all, Explain(e))
		}
		add(parts, strings.Join(all, "; "))
		return
	}
	e, ok := err.(*Error) //nolint:errorlint // this very error, not one below it
	if !ok {
		var below *Error
		if errors.As(err, &below) {
			gather(below, parts)
			return
		}
		add(parts, err.Error())
		return
	}
	add(parts, e.Subject)
	add(parts, e.Public)
	if e.Cause == nil && e.Public == "" {
		add(parts, e.Kind.String())
	}
	gather(e.Cause, parts)
}

// add appends a text that is not there yet.
func add(parts *[]string, text string) {
	if text == "" {
		return
	}
	for _, p := range *parts {
		if p == text {
			return
		}
	}
	*parts = append(*parts, text)
}

// ExitCode is what a command that failed with err exits with: that of the first
// error that has a kind, where several were joined.
func ExitCode(err error) int {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) && Is(err, Other) {
		for _, e := range joined.Unwrap() {
			if KindOf(e) != Other {
				return ExitCode(e)
			}
		}
	}
	return KindOf(err).ExitCode()
}
