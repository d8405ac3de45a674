package lab

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"time"

	"golang.org/x/sys/unix"

	"cartwheel.dev/geo-config/fault"
)

// stateFolder is where labs of this machine are found by their names: a folder
// for each with its lock, its control socket and lab.json.
const stateFolder = "/run/cartwheel-testbed"

// Record is lab.json: what other processes need to know of a lab. It is in the
// lab's folder too, and stays there.
type Record struct {
	Name     string       `json:"name"`
	PID      int          `json:"pid"`
	Dir      string       `json:"dir"`
	Topology string       `json:"topology"` // its name; the whole is topology.yaml in Dir
	Seed     uint64       `json:"seed"`
	Version  string       `json:"version,omitempty"` // of the programs
	Contact  string       `json:"contact"`
	Started  time.Time    `json:"started"`
	Ready    bool         `json:"ready"`
	KeepData bool         `json:"keep_data"`
	Hosts    []HostRecord `json:"hosts"`
}

// HostRecord is one host in it.
type HostRecord struct {
	Name      string     `json:"name"`
	Site      string     `json:"site"`
	Address   netip.Addr `json:"address"`
	Namespace string     `json:"namespace"`
	NodeID    string     `json:"node_id,omitempty"`
	Mount     string     `json:"mount,omitempty"`
	Environ   []string   `json:"environ"` // for programs inside
}

// Host returns a host by its name, or its site's name where it is alone there.
func (r Record) Host(name string) (HostRecord, bool) {
	var at []HostRecord
	for _, h := range r.Hosts {
		if h.Name == name {
			return h, true
		}
		if h.Site == name {
			at = append(at, h)
		}
	}
	if len(at) == 1 {
		return at[0], true
	}
	return HostRecord{}, false
}

// state is the folder of a lab by its name, held by whoever brought it up.
type state struct {
	dir   string
	lock  *os.File
	admin string // identity of the key that may change geo-config
}

func stateDir(name string) string { return filepath.Join(stateFolder, name) }

func socketPath(name string) string { return filepath.Join(stateDir(name), "control.sock") }

// CheckName refuses what cannot be a lab's name.
func CheckName(name string) error {
	if !regexp.MustCompile(`^[a-z0-9]{1,8}$`).MatchString(name) {
		return fault.E(fault.Usage, "lab.CheckName", name, "is no name of a lab: 1 to 8 of a-z and 0-9")
	}
	return nil
}

// holdTries bounds the tries to take a name, which somebody may be looking at.
const (
	holdTries = 20
	holdPoll  = 25 * time.Millisecond
)

// hold takes the name. A lab that runs has it already; one that crashed has let
// go of it.
func hold(ctx context.Context, name string) (*state, error) {
	const op fault.Op = "lab.hold"
	if err := CheckName(name); err != nil {
		return nil, err
	}
	if os.Geteuid() != 0 {
		return nil, fault.E(fault.Permission, op, name, "network namespaces and mounts need root: run it with sudo")
	}
	tick := time.NewTicker(holdPoll)
	defer tick.Stop()
	for range holdTries {
		if err := os.MkdirAll(stateDir(name), 0o755); err != nil {
			return nil, fault.FromOS(op, stateDir(name), err)
		}
		f, err := lock(name)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		if f != nil && still(f) {
			return &state{dir: stateDir(name), lock: f}, nil
		}
		if f != nil {
			f.Close() // of a lab that went down this moment
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fault.Wrap(fault.Canceled, op, name, ctx.Err())
		}
	}
	return nil, fault.Errorf(fault.Busy, op, name, "a lab of this name is up already: `cartwheel-testbed down --name %s` ends it, or give this one another --name", name)
}

// still tells whether an open file has its name yet.
func still(f *os.File) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(f.Name())
	return err == nil && os.SameFile(open, named)
}

// lock returns nil where another process holds the lock.
func lock(name string) (*os.File, error) {
	path := filepath.Join(stateDir(name), "lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fault.FromOS("lab.lock", path, err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, fault.FromOS("lab.lock", path, err)
}

// release gives the name back and removes what was kept under it.
func (s *state) release() error {
	err := os.RemoveAll(s.dir)
	s.lock.Close()
	_ = os.Remove(stateFolder) // of the last one
	return fault.FromOS("lab.release", s.dir, err)
}

func (s *state) save(r Record) error {
	const op fault.Op = "lab.save"
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fault.Wrap(fault.Invalid, op, r.Name, err)
	}
	for _, dir := range []string{s.dir, r.Dir} {
		path := filepath.Join(dir, "lab.json")
		if err := os.WriteFile(path+".new", append(data, '\n'), 0o644); err != nil {
			return fault.FromOS(op, path, err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			return fault.FromOS(op, path, err)
		}
	}
	return nil
}

// Load reads what is known of a lab, and whether it runs: one that does not has
// crashed.
func Load(name string) (r Record, runs bool, err error) {
	const op fault.Op = "lab.Load"
	if err := CheckName(name); err != nil {
		return r, false, err
	}
	data, err := os.ReadFile(filepath.Join(stateDir(name), "lab.json"))
	if errors.Is(err, os.ErrNotExist) {
		return r, false, fault.Errorf(fault.NotFound, op, name, "no lab of this name is up%s", others(name))
	}
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		return r, false, fault.Wrap(fault.IO, op, name, err)
	}
	f, err := lock(name)
	if err != nil {
		return r, false, err
	}
	if f == nil {
		return r, true, nil
	}
	f.Close()
	return r, false, nil
}

// Names lists the labs that have a state folder, up or crashed.
func Names() ([]string, error) {
	entries, err := os.ReadDir(stateFolder)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.FromOS("lab.Names", stateFolder, err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	sort.Strings(out)
	return out, nil
}

// others says which labs there are instead.
func others(name string) string {
	all, err := Names()
	if err != nil || len(all) == 0 {
		return ": bring one up with `cartwheel-testbed up TOPOLOGY`"
	}
	text := "; there are"
	for _, n := range all {
		if n != name {
			text += " " + n
		}
	}
	return text + ": name one with --name"
}
