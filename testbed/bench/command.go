package bench

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/trial"
	"github.com/alecthomas/kong"
)

type flags struct {
	Dirs    []string `arg:"" optional:"" name:"dir" help:"Directories to measure, in turns; ratios are to the first."`
	Demo    bool     `help:"Start a demo, and measure its first mount too; beside a local directory, where none is named."`
	In      string   `help:"Where --demo makes its directory." type:"existingdir"`
	Bin     string   `help:"Directory of the cartwheel command (default: this command's)." type:"path"`
	Rounds  int      `help:"Rounds." default:"2"`
	Size    int64    `help:"Bytes of the large file." default:"1073741824"`
	Random  int      `help:"Random 4 KiB operations." default:"20000"`
	Files   int      `help:"Small files." default:"8000"`
	Mail    int      `help:"Operations of the mail mix." default:"9000"`
	Quick   bool     `help:"Small sizes, one round: to see that it works."`
	Only    string   `help:"Suites to run, joined by colons: stream, random, small, mail, postmark, andrew, pgbench."`
	JSON    string   `help:"Write every figure to this file." type:"path"`
	Threads int      `help:"Threads." default:"8"`
}

// Main is the command: it parses args, runs, and prints the table to out.
func Main(ctx context.Context, args []string, out, progress io.Writer) error {
	const op fault.Op = "bench.Main"
	var f flags
	k, err := kong.New(&f, kong.Name("bench"), kong.Description("Does the same work in each directory and prints how fast each was."))
	if err != nil {
		return err
	}
	if _, err := k.Parse(args); err != nil {
		return fault.Wrap(fault.Usage, op, "", err)
	}
	if len(f.Dirs) == 0 && !f.Demo {
		return fault.E(fault.Usage, op, "DIR", "name directories to measure, or --demo")
	}
	opt := Defaults()
	opt.Rounds, opt.FileBytes, opt.RandomOps, opt.SmallFiles = f.Rounds, f.Size, f.Random, f.Files
	opt.MailOps, opt.Only, opt.Threads = f.Mail, f.Only, f.Threads
	if f.Quick {
		opt.Rounds, opt.FileBytes, opt.RandomOps, opt.SmallFiles, opt.MailOps = 1, 32<<20, 500, 400, 300
		opt.PostmarkFiles, opt.PostmarkTransactions, opt.AndrewClients = 500, 300, []int{1}
		opt.PgbenchScale, opt.PgbenchSeconds = 1, 2
	}
	if f.Demo {
		return trial.Run(ctx, trial.Options{Bin: f.Bin, In: f.In, Progress: progress}, func(d *trial.Demo) error {
			if err := os.Chmod(d.Folder, 0o755); err != nil { // PostgreSQL runs as a user of its own
				return err
			}
			dirs := f.Dirs
			if len(dirs) == 0 {
				local := filepath.Join(d.Folder, "local")
				if err := os.Mkdir(local, 0o755); err != nil {
					return err
				}
				dirs = []string{local}
			}
			return measure(ctx, opt, append(dirs, d.Sites[0].Mount), f.JSON, out, progress)
		})
	}
	return measure(ctx, opt, f.Dirs, f.JSON, out, progress)
}

// measure runs, prints the table, and writes the figures where that was asked.
func measure(ctx context.Context, opt Options, dirs []string, jsonFile string, out, progress io.Writer) error {
	figures, err := Runner{Options: opt, Progress: progress}.Run(ctx, dirs)
	if len(figures) > 0 {
		Table(out, dirs, figures)
	}
	if err == nil && jsonFile != "" {
		var data []byte
		if data, err = json.MarshalIndent(figures, "", "  "); err == nil {
			err = os.WriteFile(jsonFile, data, 0o644)
		}
	}
	return err
}
