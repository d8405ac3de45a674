package meta

import (
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2"

	"cartwheel.dev/geo-config/fault"
)

// logger is what Pebble reports to. Pebble tells failed commits, rotations and
// corruption through Fatalf and relies on its not returning.
type logger struct {
	logger *slog.Logger
	fatal  func(error)
	// closed reports whether the metadata was closed on a full disk: Pebble may
	// then be unable to go on, and its goroutine stays where it is.
	closed func() bool
}

var _ pebble.Logger = logger{}

func newLogger(log *slog.Logger, fatal func(error), closed func() bool) logger {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return logger{logger: log, fatal: fatal, closed: closed}
}

// Infof implements pebble.Logger; what Pebble calls information is detail here.
func (l logger) Infof(format string, args ...any) {
	l.logger.Debug("metadata engine", slog.String("detail", fmt.Sprintf(format, args...)))
}

// Errorf implements pebble.Logger.
func (l logger) Errorf(format string, args ...any) {
	l.logger.Warn("metadata engine", slog.String("detail", fmt.Sprintf(format, args...)))
}

// Fatalf implements pebble.Logger and does not return.
func (l logger) Fatalf(format string, args ...any) {
	if l.closed() {
		select {}
	}
	err := fault.Errorf(fault.IO, "meta.Fatal", "", format, args...)
	if l.fatal != nil {
		l.fatal(err)
	}
	panic(err) // a return here would turn a fatal error into silence
}
