package daemon

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/cockroach"
	"cartwheel.dev/geo-config/cockroach/database"
	"cartwheel.dev/geo-config/embedded"
	"cartwheel.dev/geo-config/fault"
)

// databaseFlags name the database of a geo-config server.
type databaseFlags struct {
	Database     string `help:"URL of a CockroachDB or PostgreSQL that holds the configuration, without a password, such as postgresql://cartwheel@db:26257/cartwheel. Default: an embedded store in the data directory." placeholder:"URL"`
	DatabaseFile string `help:"File that holds the database's URL, readable by its owner alone. The variable CARTWHEEL_DATABASE may hold the URL too." type:"path"`
}

// openStore opens the database that the options or the environment name, and
// otherwise the embedded store in the data directory.
func (f databaseFlags) openStore(ctx context.Context, data string, environ []string) (geoconfig.Store, error) {
	const op fault.Op = "daemon.openStore"
	url, err := database.Source(f.Database, f.DatabaseFile, environ)
	if err != nil {
		return nil, err
	}
	if url == "" {
		s, err := embedded.Open(ctx, data)
		if err != nil {
			return nil, fault.Wrap(fault.IO, op, data, err)
		}
		return s, nil
	}
	if err := os.MkdirAll(data, 0o700); err != nil { // the key is in it
		return nil, fault.FromOS(op, data, err)
	}
	// Two configurations of one cluster are the end of it. A later start
	// without the database would bring the old one back.
	old := filepath.Join(data, embedded.FileName)
	if _, err := os.Stat(old); err == nil {
		return nil, fault.E(fault.Invalid, op, old,
			"an embedded store is here, and a database was named: move its content with cartwheel geo-config export and import, then move the file away")
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.FromOS(op, old, err)
	}
	s, err := cockroach.Open(ctx, cockroach.Options{Options: database.Options{URL: url}})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// followPause is how long the server waits before it follows a database again
// that did not answer.
const followPause = time.Second

// outlive waits after an error of a store that may pass, and returns the others.
func outlive(ctx context.Context, err error) error {
	switch fault.KindOf(err) {
	case fault.Unreachable, fault.TimedOut, fault.Overloaded:
	default:
		return err
	}
	timer := time.NewTimer(followPause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}
