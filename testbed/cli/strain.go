package cli

import (
	"context"
	"io"
	"time"

	"cartwheel.dev/testbed/strain"
)

// strainCmd puts real processes under load and prints figures.
type strainCmd struct {
	Overload strainOverloadCmd `cmd:"" help:"Many clients ask for more than a node can do."`
	Idle     strainIdleCmd     `cmd:"" help:"A mount that has looked at very many files is left alone."`
	Copy     strainCopyCmd     `cmd:"" help:"A large slice is copied to a node that lacks it, beside small writes."`

	GeoConfig strainGeoConfigCmd `cmd:"" name:"geo-config" help:"A geo-config store has very many rows and followers."`
}

// strainWords are what every strain takes.
type strainWords struct {
	Bin string `help:"Directory of the commands (default: this command's)." type:"path"`
	In  string `help:"Where the run makes its directory (default: that of temporary files)." type:"existingdir"`
}

func (w strainWords) options(e *env) strain.Options {
	return strain.Options{Bin: w.Bin, In: w.In, Progress: e.stdio.Err}
}

func (e *env) strain(run func(context.Context) ([]strain.Figure, error)) error {
	figures, err := run(e.ctx)
	if err != nil {
		return err
	}
	return e.print(figures, func(w io.Writer) { strain.Table(w, figures) })
}

type strainOverloadCmd struct {
	strainWords
	Clients int           `help:"Clients." default:"100"`
	Ramp    time.Duration `help:"Length of each step that looks for the best throughput." default:"10s"`
	For     time.Duration `help:"Length of the overload." default:"10m"`
	Factor  float64       `help:"What is asked for, as a multiple of the best." default:"2"`
	Bytes   int           `help:"Bytes of each file." default:"2048"`
}

// Help shows how it is called.
func (strainOverloadCmd) Help() string { return help("cartwheel-testbed strain overload --for 1m") }

// Run runs it.
func (c strainOverloadCmd) Run(e *env) error {
	return e.strain(strain.Overload{Options: c.options(e), Clients: c.Clients, Ramp: c.Ramp, For: c.For, Factor: c.Factor, Bytes: c.Bytes}.Run)
}

type strainIdleCmd struct {
	strainWords
	Files  int           `help:"Files." default:"1000000"`
	Memory int64         `help:"--memory of the mount." default:"314572800"`
	Settle time.Duration `help:"Time from the last look to the first measurement." default:"30s"`
	For    time.Duration `help:"How long the mount is watched." default:"30s"`
}

// Help shows how it is called.
func (strainIdleCmd) Help() string { return help("cartwheel-testbed strain idle --files 100000") }

// Run runs it.
func (c strainIdleCmd) Run(e *env) error {
	return e.strain(strain.Idle{Options: c.options(e), Files: c.Files, Memory: c.Memory, Settle: c.Settle, For: c.For}.Run)
}

type strainCopyCmd struct {
	strainWords
	Size   int64   `help:"Bytes that the slice holds." default:"8589934592"`
	Files  int     `help:"Small files that it holds besides." default:"20000"`
	Rate   string  `help:"Rate of the line to the node that lacks it." default:"200 Mbps"`
	Beside float64 `help:"Small files of 16 KiB that are written a second meanwhile." default:"500"`
}

// Help shows how it is called.
func (strainCopyCmd) Help() string { return help("cartwheel-testbed strain copy --size 68719476736") }

// Run runs it.
func (c strainCopyCmd) Run(e *env) error {
	return e.strain(strain.Copy{Options: c.options(e), Size: c.Size, Files: c.Files, Rate: c.Rate, Beside: c.Beside}.Run)
}

type strainGeoConfigCmd struct {
	In        string `help:"Where the embedded store makes its directory (default: that of temporary files)." type:"existingdir"`
	Database  string `help:"URL of a CockroachDB or PostgreSQL: the run makes a schema of its own there, and drops it." env:"CARTWHEEL_STRAIN_DATABASE" placeholder:"URL"`
	Slices    int    `help:"Slices." default:"1000000"`
	Nodes     int    `help:"Nodes." default:"10000"`
	Followers int    `help:"Followers of changes, in this process." default:"10000"`
	Changes   int    `help:"Changes that are timed." default:"20"`
}

// Help shows how it is called.
func (strainGeoConfigCmd) Help() string {
	return help("cartwheel-testbed strain geo-config --slices 100000")
}

// Run runs it.
func (c strainGeoConfigCmd) Run(e *env) error {
	return e.strain(strain.Configuration{Options: strain.Options{In: c.In, Progress: e.stdio.Err}, Database: c.Database, Slices: c.Slices,
		Nodes: c.Nodes, Followers: c.Followers, Changes: c.Changes}.Run)
}
