package command

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cartwheel.dev/clients/bootstrap"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/geo/changes"
	"cartwheel.dev/node/geo/join"
	"cartwheel.dev/node/geo/remote"
	"cartwheel.dev/node/wire"
)

// adminFlags are those of commands that read or change the configuration.
type adminFlags struct {
	Admin string `placeholder:"FILE" help:"Administrator's file (default: $CARTWHEEL_ADMIN, ./cartwheel-demo/admin.json, cartwheel/admin.json in the user's configuration, or /etc/cartwheel/admin.json)."`
}

// adminLimit bounds what a command does with the configuration.
const adminLimit = 20 * time.Second

// administration is a connection to the configuration in an administrator's name.
// close ends it.
type administration struct {
	*remote.Store
	host *wire.Host
	file bootstrap.Admin
	// who is the administrator's name in the audit log.
	who string
}

// administer connects to the configuration.
func (e *env) administer(ctx context.Context, f adminFlags) (*administration, error) {
	path, err := e.adminFile(f.Admin)
	if err != nil {
		return nil, err
	}
	a := &administration{}
	if a.file, err = bootstrap.LoadAdmin(path); err != nil {
		return nil, err
	}
	key, err := wire.LoadKey(a.file.Key)
	if err != nil {
		return nil, err
	}
	if a.host, err = wire.New(wire.Options{Key: key}); err != nil {
		return nil, fault.Wrap(fault.IO, "command.administer", "", err)
	}
	if a.Store, err = join.Dial(a.host, a.file.GeoConfig); err != nil {
		_ = a.host.Close() // nothing was asked
		return nil, err
	}
	rows, err := a.Read(ctx, geoconfig.Query{Users: true})
	if err != nil {
		a.close()
		return nil, err
	}
	a.who = key.KeyID()
	for _, u := range rows.Users {
		if u.Key == key.KeyID() {
			a.who = string(u.Name)
		}
	}
	return a, nil
}

func (a *administration) close() {
	_ = a.Close() // a command has nothing left to lose
	_ = a.host.Close()
}

// order is a change in the administrator's name.
func (a *administration) order() changes.Order { return changes.Order{Who: a.who, At: time.Now()} }

// administered runs what a command does with the configuration, within its limit.
func administered(e *env, f adminFlags, run func(context.Context, *administration) error) error {
	ctx, cancel := context.WithTimeout(e.ctx, adminLimit)
	defer cancel()
	stop := e.progress("asking geo-config")
	a, err := e.administer(ctx, f)
	stop()
	if err != nil {
		return err
	}
	defer a.close()
	return run(ctx, a)
}

// adminFile finds the administrator's file.
func (e *env) adminFile(named string) (string, error) {
	const op fault.Op = "command.adminFile"
	if named != "" {
		return named, nil
	}
	if f := e.getenv("CARTWHEEL_ADMIN"); f != "" {
		return f, nil
	}
	tried := []string{filepath.Join("cartwheel-demo", bootstrap.AdminName)}
	if dir, err := os.UserConfigDir(); err == nil {
		tried = append(tried, filepath.Join(dir, "cartwheel", bootstrap.AdminName))
	}
	tried = append(tried, filepath.Join("/etc/cartwheel", bootstrap.AdminName))
	for _, f := range tried {
		if _, err := os.Stat(f); err == nil {
			return f, nil
		} else if !errors.Is(err, os.ErrNotExist) {
			return "", fault.FromOS(op, f, err)
		}
	}
	return "", fault.Errorf(fault.NotFound, op, "administrator's file", "none of %s is there: name one with --admin, or found a cluster with `cartwheel cluster init`", strings.Join(tried, ", "))
}
