// Package report keeps what a run of an experiment found, in a folder that is
// enough to repeat it: topology, seed and command line, versions, logs, the
// tables as text and Markdown, every figure as JSON, and the plots as SVG and
// PNG. It measures nothing and judges nothing; a run that does not count says
// why, and is written all the same. A Folder may be written to by several
// goroutines, each with files of its own.
package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// Names of the files in a run's folder.
const (
	RunFile      = "run.json"
	TopologyFile = "topology.yaml"
	TextFile     = "table.txt"
	MarkdownFile = "table.md"
	FiguresFile  = "report.json"
	LogFolder    = "logs"
)

// Options say what a run is.
type Options struct {
	Parent     string // folder of all runs; made where it is not there
	Experiment string
	Arguments  []string // the command line that repeats the run
	Seed       uint64
	Short      bool
	Topology   []byte // YAML, as it was given; empty: none was used
	// Version is that of the programs under test (git describe); empty: it is
	// asked of git in the current folder.
	Version string
	Wall    func() time.Time // nil: the system's
}

// Folder is the folder of one run.
type Folder struct {
	dir     string
	run     Run
	now     func() time.Time
	started time.Time
}

// Run is what run.json holds.
type Run struct {
	Experiment string    `json:"experiment"`
	Arguments  []string  `json:"arguments"`
	Seed       uint64    `json:"seed"`
	Short      bool      `json:"short"`
	Started    time.Time `json:"started"`
	Seconds    float64   `json:"seconds"`
	// Void says why the figures do not count; empty: they do.
	Void string `json:"void,omitempty"`
	// Earlier says why the attempts before the one that is told were void.
	Earlier  []string `json:"void_before,omitempty"`
	Versions Versions `json:"versions"`
	// LoadBefore and LoadAfter are the machine's load averages of one minute:
	// figures taken beside other work are to be read with care.
	LoadBefore float64 `json:"load_before"`
	LoadAfter  float64 `json:"load_after"`
}

// New makes the folder of a run, PARENT/EXPERIMENT-TIME, and writes what is
// known at its start, so that a run that is cut off can be told, too.
func New(o Options) (*Folder, error) {
	const op fault.Op = "report.New"
	if o.Experiment == "" || strings.ContainsAny(o.Experiment, "/ ") {
		return nil, fault.E(fault.Invalid, op, o.Experiment, "is no name of an experiment")
	}
	if o.Wall == nil {
		o.Wall = time.Now
	}
	f := &Folder{now: o.Wall, started: o.Wall()}
	if err := f.create(o); err != nil {
		return nil, fault.FromOS(op, o.Parent, err)
	}
	f.run = Run{
		Experiment: o.Experiment, Arguments: o.Arguments, Seed: o.Seed, Short: o.Short, Started: f.started.UTC(),
		Versions: versions(o.Version), LoadBefore: load(),
	}
	if len(o.Topology) > 0 {
		if err := os.WriteFile(f.Path(TopologyFile), o.Topology, 0o644); err != nil {
			return nil, fault.FromOS(op, f.Path(TopologyFile), err)
		}
	}
	return f, f.writeJSON(RunFile, f.run)
}

// create finds a name that is free.
func (f *Folder) create(o Options) error {
	parent, err := filepath.Abs(o.Parent)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	base := filepath.Join(parent, o.Experiment+"-"+f.started.Format("20060102-150405"))
	for i := 1; ; i++ {
		f.dir = base
		if i > 1 {
			f.dir = fmt.Sprintf("%s-%d", base, i)
		}
		if err := os.Mkdir(f.dir, 0o755); !errors.Is(err, os.ErrExist) {
			if err != nil {
				return err
			}
			return os.Mkdir(f.Path(LogFolder), 0o755)
		}
	}
}

// Dir is the folder's path, absolute.
func (f *Folder) Dir() string { return f.dir }

// Path is where a file of the folder lies.
func (f *Folder) Path(name string) string { return filepath.Join(f.dir, name) }

// Log opens a log of that name for a process of the run; the caller closes it.
func (f *Folder) Log(name string) (*os.File, error) {
	path := f.Path(filepath.Join(LogFolder, filepath.Base(name)+".log"))
	w, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	return w, fault.FromOS("report.Log", path, err)
}

// Run returns what is known of the run; complete after Finish.
func (f *Folder) Run() Run { return f.run }

// Finish writes the result, in all its forms, and prints the tables and the
// folder to out. Whatever can be written is written before an error returns.
func (f *Folder) Finish(r Result, out io.Writer) error {
	f.run.Seconds = f.now().Sub(f.started).Seconds()
	f.run.Void, f.run.Earlier, f.run.LoadAfter = r.Void, r.Earlier, load()
	text, markdown := f.text(r), f.markdown(r)
	err := errors.Join(
		f.writeJSON(RunFile, f.run),
		f.writeJSON(FiguresFile, figures{Run: f.run, Result: r}),
		f.write(TextFile, text),
		f.write(MarkdownFile, markdown),
		f.plots(r.Plots),
	)
	if _, werr := io.WriteString(out, text+"\nrun: "+f.dir+"\n"); werr != nil {
		err = errors.Join(err, werr)
	}
	return fault.Wrap(fault.IO, "report.Finish", f.dir, err)
}

type figures struct {
	Run Run `json:"run"`
	Result
}

func (f *Folder) write(name, text string) error {
	return os.WriteFile(f.Path(name), []byte(text), 0o644)
}

func (f *Folder) writeJSON(name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fault.Wrap(fault.Invalid, "report.writeJSON", name, err)
	}
	return f.write(name, string(data)+"\n")
}
