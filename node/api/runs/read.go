package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"syscall"
	"time"

	"go.yaml.in/yaml/v3"
)

// The files of a run, as package report of the testbed names them.
const (
	runFile      = "run.json"
	reportFile   = "report.json"
	topologyFile = "topology.yaml"
)

// Bounds of what is read of one run. Longer files make the run damaged, and what
// is more than a bound of number is left out, and told of.
const (
	maxRunBytes      = 256 << 10
	maxReportBytes   = 32 << 20
	maxTopologyBytes = 4 << 20
	maxFigureBytes   = 4 << 20
	maxTables        = 64
	maxRows          = 2000
	maxFigures       = 64
	maxFiles         = 1000 // of a run's folder that are looked at
)

// errLong is the failure of a file that is longer than its bound.
var errLong = errors.New("is longer than what is read of it")

// openFile opens an ordinary file below root. A symbolic link on the way, a
// directory and a pipe are none.
func openFile(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	for dir := name; dir != "."; dir = path.Dir(dir) {
		info, err := root.Lstat(dir)
		if err != nil {
			return nil, nil, err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return nil, nil, fmt.Errorf("%s is a symbolic link, which is not followed", path.Base(dir))
		}
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe does not hold it up
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no ordinary file", path.Base(name))
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// readFile reads an ordinary file of at most so many bytes.
func readFile(root *os.Root, name string, limit int64) ([]byte, error) {
	f, _, err := openFile(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = errLong
	}
	return data, err
}

// run is what run.json holds.
type run struct {
	Experiment string    `json:"experiment"`
	Arguments  []string  `json:"arguments"`
	Seed       uint64    `json:"seed"`
	Short      bool      `json:"short"`
	Started    time.Time `json:"started"`
	Seconds    float64   `json:"seconds"`
	Void       string    `json:"void"`
	Earlier    []string  `json:"void_before"`
	Versions   struct {
		Cartwheel string `json:"cartwheel"`
		Go        string `json:"go"`
		Kernel    string `json:"kernel"`
		Machine   string `json:"machine"`
		CPUs      int    `json:"cpus"`
	} `json:"versions"`
	LoadBefore float64 `json:"load_before"`
	LoadAfter  float64 `json:"load_after"`
}

// readRun reads run.json. Its errors are for people.
func readRun(root *os.Root, name string) (run, error) {
	var r run
	data, err := readFile(root, path.Join(name, runFile), maxRunBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return r, errors.New("it has no " + runFile + ": it is no folder of a run")
	}
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err == nil && (r.Experiment == "" || r.Started.IsZero()) {
		err = errors.New("names no experiment, or no start")
	}
	return r, told(runFile, err)
}

// told names the file that an error for people is about, and leaves out the path.
func told(file string, err error) error {
	if err == nil {
		return nil
	}
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return fmt.Errorf("%s: %w", file, err)
}

// summary is the run as the list has it, but for its result.
func (r run) summary(name string) RunSummary {
	return RunSummary{Name: name, State: Unfinished, Experiment: r.Experiment, StartedAt: new(r.Started.UTC()), Seed: strconv.FormatUint(r.Seed, 10),
		Short: r.Short, Version: r.Versions.Cartwheel, Arguments: notNil(r.Arguments), Sites: []string{}, KeyResults: []Key{}}
}

func (r run) machine() Machine {
	v := r.Versions
	m := Machine{Go: v.Go, Kernel: v.Kernel, Machine: v.Machine, CPUs: v.CPUs}
	if r.LoadBefore >= 0 {
		m.LoadBefore = &r.LoadBefore
	}
	if r.Seconds > 0 && r.LoadAfter >= 0 {
		m.LoadAfter = &r.LoadAfter
	}
	return m
}

// readTopology returns the name and the sites of a run's topology, where it has one.
func readTopology(root *os.Root, name string) (string, []string, error) {
	data, err := readFile(root, path.Join(name, topologyFile), maxTopologyBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return "", []string{}, nil
	}
	var t struct {
		Name  string `yaml:"name"`
		Sites []struct {
			Name string `yaml:"name"`
		} `yaml:"sites"`
	}
	if err == nil {
		err = yaml.Unmarshal(data, &t)
	}
	sites := []string{}
	for _, s := range t.Sites {
		sites = append(sites, s.Name)
	}
	return t.Name, sites, told(topologyFile, err)
}

func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
