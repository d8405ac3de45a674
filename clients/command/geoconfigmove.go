package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"cartwheel.dev/geo-config/archive"
	"cartwheel.dev/geo-config/cockroach"
	"cartwheel.dev/geo-config/cockroach/database"
	"cartwheel.dev/geo-config/embedded"
	"cartwheel.dev/geo-config/fault"
)

// storeFlags name a store: a database or an embedded one.
type storeFlags struct {
	databaseFlags `embed:""`

	Data string `help:"Directory of an embedded store, whose server does not run." type:"path" placeholder:"DIR"`
}

// isEmbedded reports whether the flags name an embedded store. A directory on
// the command line counts more than a database in the environment.
func (f storeFlags) isEmbedded() (bool, error) {
	if f.Data != "" && (f.Database != "" || f.DatabaseFile != "") {
		return false, fault.E(fault.Usage, "command.geoConfig", "--data", "name either a database or the directory of an embedded store")
	}
	return f.Data != "", nil
}

// source is a store to write out, and what closes it.
type source struct {
	archive.Source
	io.Closer
}

// open opens a store that has to be there.
func (f storeFlags) open(e *env, stale bool) (source, error) {
	const op fault.Op = "command.open"
	isEmbedded, err := f.isEmbedded()
	if err != nil {
		return source{}, err
	}
	if isEmbedded {
		file := filepath.Join(f.Data, embedded.FileName)
		there, err := isThere(file)
		if err != nil {
			return source{}, fault.FromOS(op, file, err)
		}
		if !there {
			return source{}, fault.E(fault.NotFound, op, file, "there is no embedded store: name the directory that was given to cartwheeld geo-config as --data")
		}
		s, err := embedded.Open(e.ctx, f.Data)
		if err != nil {
			return source{}, err
		}
		return source{s, s}, nil
	}
	o, err := f.options(e)
	if err != nil {
		return source{}, err
	}
	s, err := cockroach.Open(e.ctx, cockroach.Options{Options: o})
	if err != nil {
		return source{}, err
	}
	return source{cockroach.Dumper{Store: s, Stale: stale}, s}, nil
}

// save writes a store's archive under its final name once it is whole and on the
// disk. Only its owner may read it: it has the secret of the cluster.
func save(ctx context.Context, from archive.Source, dir string, name func(archive.Summary) string) (archive.Summary, string, error) {
	const op fault.Op = "command.save"
	file, err := os.CreateTemp(dir, ".geo-config-*.part") // of mode 0600
	if err != nil {
		return archive.Summary{}, "", fault.FromOS(op, dir, err)
	}
	defer os.Remove(file.Name()) // unless it got its name
	defer file.Close()
	summary, err := archive.Export(ctx, from, file)
	if err != nil {
		return summary, "", err
	}
	if err := file.Sync(); err != nil {
		return summary, "", fault.FromOS(op, file.Name(), err)
	}
	path := filepath.Join(dir, name(summary))
	if err := absent(op, path); err != nil {
		return summary, "", err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return summary, "", fault.FromOS(op, path, err)
	}
	// What was written is read again, as an import would.
	whole, err := archive.Open(path)
	if err != nil {
		return summary, "", err
	}
	return summary, path, whole.Close()
}

// moved is what export, import and backup print.
type moved struct {
	archive.Summary
	File string `json:"file"`
}

type geoConfigExportCmd struct {
	storeFlags `embed:""`

	File string `arg:"" help:"The file to write, which is not there yet." type:"path"`
}

// Help shows how it is called.
func (geoConfigExportCmd) Help() string {
	return help(`cartwheel geo-config export --data /var/lib/cartwheel-geo move.jsonl

Stop cartwheeld geo-config first, and start it on the new store: changes between would be lost. Files are read and written meanwhile. The file holds the cluster's secret.`)
}

// Run writes the file.
func (c *geoConfigExportCmd) Run(e *env) error {
	if err := absent("command.export", c.File); err != nil {
		return err
	}
	from, err := c.open(e, false)
	if err != nil {
		return err
	}
	defer from.Close()
	summary, path, err := save(e.ctx, from, filepath.Dir(c.File), func(archive.Summary) string { return filepath.Base(c.File) })
	if err != nil {
		return err
	}
	return e.done(moved{summary, path}, "Exported %s.", summary)
}

type geoConfigImportCmd struct {
	storeFlags `embed:""`

	File string `arg:"" help:"The file that export or backup wrote." type:"existingfile"`
}

// Help shows how it is called.
func (geoConfigImportCmd) Help() string {
	return help(`cartwheel geo-config import --database-file db.url move.jsonl

A store that holds anything is refused, unless an import of the same file into it ended early: then it goes on. A database needs cartwheel geo-config init first.`)
}

// Run fills the store.
func (c *geoConfigImportCmd) Run(e *env) error {
	isEmbedded, err := c.isEmbedded()
	if err != nil {
		return err
	}
	f, err := archive.Open(c.File)
	if err != nil {
		return err
	}
	defer f.Close()
	if isEmbedded {
		err = importEmbedded(e.ctx, c.Data, f)
	} else {
		var o database.Options
		if o, err = c.options(e); err == nil {
			err = cockroach.Load(e.ctx, cockroach.Options{Options: o}, f)
		}
	}
	if err != nil {
		return err
	}
	return e.done(moved{f.Summary(), c.File}, "Imported %s.", f.Summary())
}

func importEmbedded(ctx context.Context, dir string, f *archive.File) error {
	s, err := embedded.Open(ctx, dir)
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Load(ctx, f)
}

type geoConfigBackupCmd struct {
	storeFlags `embed:""`

	Dir string `arg:"" help:"The directory to write into." type:"existingdir"`
}

// Help shows how it is called.
func (geoConfigBackupCmd) Help() string {
	return help(`cartwheel geo-config backup --database-file db.url /var/backups/cartwheel

A database may be in use. On CockroachDB the copy is as of some seconds ago and holds no change up. cartwheel geo-config import restores it. The file holds the cluster's secret.`)
}

// Run writes the copy.
func (c *geoConfigBackupCmd) Run(e *env) error {
	from, err := c.open(e, true)
	if err != nil {
		return err
	}
	defer from.Close()
	summary, path, err := save(e.ctx, from, c.Dir, func(s archive.Summary) string {
		return fmt.Sprintf("geo-config-%s-%d-%.8s.jsonl", s.Cluster, s.Revision, s.SHA256)
	})
	if err != nil {
		return err
	}
	return e.done(moved{summary, path}, "Saved %s in %s.", summary, path)
}
