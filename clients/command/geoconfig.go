package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"text/tabwriter"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/cockroach"
	"cartwheel.dev/geo-config/cockroach/database"
	"cartwheel.dev/geo-config/cockroach/schema"
	"cartwheel.dev/geo-config/conformance"
	"cartwheel.dev/geo-config/fault"
)

type geoConfigCmd struct {
	Init   geoConfigInitCmd   `cmd:"" help:"Make geo-config's tables in a database, or bring them to this version."`
	Verify geoConfigVerifyCmd `cmd:"" help:"Check in a scratch schema that a database keeps geo-config's promises, and say what it supports."`
	Export geoConfigExportCmd `cmd:"" help:"Write all of a store into a file, to move it."`
	Import geoConfigImportCmd `cmd:"" help:"Fill an empty store from an export, or go on with an import that ended early."`
	Backup geoConfigBackupCmd `cmd:"" help:"Write a copy of a store into a directory, under a name of its own."`

	Rebuild geoConfigRebuildCmd `cmd:"" help:"Make a new store from what the nodes remember, after its data is lost."`
	Settle  geoConfigSettleCmd  `cmd:"" help:"Let slices go on that wait since a rebuild for members which were silent."`
}

// databaseFlags name a database.
type databaseFlags struct {
	Database     string `help:"URL of the CockroachDB or PostgreSQL, without a password, such as postgresql://cartwheel@db:26257/cartwheel." placeholder:"URL"`
	DatabaseFile string `help:"File that holds the database's URL, readable by its owner alone. The variable CARTWHEEL_DATABASE may hold the URL too." type:"path" placeholder:"FILE"`
}

// options finds the database.
func (f databaseFlags) options(e *env) (database.Options, error) {
	url, err := database.Source(f.Database, f.DatabaseFile, e.stdio.Environ)
	if err != nil {
		return database.Options{}, err
	}
	if url == "" {
		return database.Options{}, fault.E(fault.Usage, "command.geoConfig", "--database", "name the database: with --database, --database-file or the variable "+database.Variable)
	}
	return database.Options{URL: url}, nil
}

type geoConfigInitCmd struct {
	databaseFlags `embed:""`

	PrimaryRegion string `help:"Region of a CockroachDB where changes are ordered. Without it the database's own counts; if it has none, the tables get no regions." placeholder:"REGION"`
}

// Help shows how it is called.
func (geoConfigInitCmd) Help() string {
	return help(`cartwheel geo-config init --database-file db.url --primary-region eu-west1

It may be repeated: after an update of Cartwheel, and after a CockroachDB got another region.`)
}

// Run makes the tables.
func (c *geoConfigInitCmd) Run(e *env) error {
	o, err := c.options(e)
	if err != nil {
		return err
	}
	report, err := migrate(e.ctx, o, c.PrimaryRegion)
	if err != nil {
		return err
	}
	return e.print(report, func(w io.Writer) {
		fmt.Fprintln(w, report.Database)
		for _, name := range report.Applied {
			fmt.Fprintln(w, "applied", name)
		}
		for _, why := range report.Skipped {
			fmt.Fprintln(w, "skipped", why)
		}
		fmt.Fprintf(w, "The tables are of version %d. Next: cartwheel geo-config verify, then cartwheeld geo-config with the same database.\n", report.Version)
	})
}

// migrate makes the tables, and places them in regions.
func migrate(ctx context.Context, o database.Options, primary string) (schema.Report, error) {
	o.Patience = schema.Patience
	d, err := database.Open(ctx, o)
	if err != nil {
		return schema.Report{}, err
	}
	defer d.Close()
	report, err := schema.Migrate(ctx, d)
	if err == nil {
		err = schema.Home(ctx, d, primary, &report)
	}
	return report, err
}

type geoConfigVerifyCmd struct {
	databaseFlags `embed:""`
}

// Help shows how it is called.
func (geoConfigVerifyCmd) Help() string {
	return help(`cartwheel geo-config verify --database-file db.url

The tables of a running cluster stay as they are. The database's user needs the right to make a schema.`)
}

// verdict is what verify found.
type verdict struct {
	Features []schema.Feature     `json:"features"`
	Cases    []conformance.Result `json:"cases"`
	// CommitNS is the median time of a change.
	CommitNS time.Duration `json:"commit_ns"`
}

// commitsMeasured is how many changes verify times.
const commitsMeasured = 20

// dropPatience bounds the removal of the scratch schema.
const dropPatience = 30 * time.Second

// Run checks the database.
func (c *geoConfigVerifyCmd) Run(e *env) error {
	o, err := c.options(e)
	if err != nil {
		return err
	}
	v, err := verify(e.ctx, o)
	if err != nil {
		return err
	}
	if err := e.print(v, v.write); err != nil {
		return err
	}
	return v.err()
}

func verify(ctx context.Context, o database.Options) (v verdict, err error) {
	d, err := database.Open(ctx, o)
	if err != nil {
		return v, err
	}
	defer d.Close()
	if v.Features, err = schema.Inspect(ctx, d); err != nil {
		return v, err
	}
	scratch, err := cockroach.NewScratch(ctx, cockroach.Options{Options: o})
	if err != nil {
		return v, err
	}
	defer func() {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropPatience)
		defer cancel()
		err = errors.Join(err, scratch.Drop(late))
	}()
	v.Cases = conformance.Check(ctx, func(ctx context.Context) (geoconfig.Store, error) { return scratch.Open(ctx) })
	if ctx.Err() != nil {
		return v, fault.Wrap(fault.Canceled, "command.verify", "", ctx.Err())
	}
	s, err := scratch.Open(ctx)
	if err != nil {
		return v, err
	}
	defer s.Close()
	v.CommitNS, err = cockroach.Measure(ctx, s, commitsMeasured, time.Now)
	return v, err
}

func (v verdict) write(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, f := range v.Features {
		fmt.Fprintf(t, "%s\t%s\t%s\n", mark(f.Supported), f.Name, f.Detail)
	}
	for _, r := range v.Cases {
		fmt.Fprintf(t, "%s\t%s\t%s\n", mark(len(r.Failures) == 0), r.Name, r.Took.Round(time.Millisecond))
	}
	_ = t.Flush() // whoever reads it has gone
	for _, r := range v.Cases {
		for _, failure := range r.Failures {
			fmt.Fprintf(w, "%s: %s\n", r.Name, failure)
		}
	}
	fmt.Fprintf(w, "A change takes %v.\n", v.CommitNS.Round(100*time.Microsecond))
}

func mark(good bool) string {
	if good {
		return "yes"
	}
	return "no"
}

// err is the failure of a database that must not be used.
func (v verdict) err() error {
	failed := 0
	for _, r := range v.Cases {
		if len(r.Failures) > 0 {
			failed++
		}
	}
	if failed > 0 {
		return fault.Errorf(fault.Other, "command.verify", "the database", "%d of %d claims do not hold: do not use it", failed, len(v.Cases))
	}
	for _, f := range v.Features {
		if f.Needed && !f.Supported {
			return fault.Errorf(fault.Other, "command.verify", "the database", "%s: %s. A crash would lose changes that were acknowledged", f.Name, f.Detail)
		}
	}
	return nil
}

// isThere reports whether a file is there.
func isThere(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// absent refuses a file that is there.
func absent(op fault.Op, path string) error {
	there, err := isThere(path)
	if err != nil {
		return fault.FromOS(op, path, err)
	}
	if there {
		return fault.E(fault.Exists, op, path, "is there already: name another file, or move it away")
	}
	return nil
}
