package topology

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"cartwheel.dev/geo-config/fault"
)

// builtin are the topologies that come with the program.
//
//go:embed builtin/*.yaml
var builtin embed.FS

// Builtin returns the topologies that come with the program, by name.
func Builtin() ([]*Topology, error) {
	entries, err := builtin.ReadDir("builtin")
	if err != nil {
		return nil, fault.Wrap(fault.Other, "topology.Builtin", "", err)
	}
	var all []*Topology
	for _, e := range entries {
		t, err := readBuiltin(strings.TrimSuffix(e.Name(), ".yaml"))
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all, nil
}

func readBuiltin(name string) (*Topology, error) {
	text, err := builtin.ReadFile("builtin/" + name + ".yaml")
	if err != nil {
		return nil, fault.E(fault.NotFound, "topology.Find", name, "there is no such topology")
	}
	return Parse(name+".yaml", text)
}

// Draw says how a matrix named by its path becomes a topology.
type Draw struct {
	Hosts int // 0: all
	Seed  uint64
	Nodes int // at each place; 0: 1
}

// citiesPrefix precedes names of cities, joined by commas.
const citiesPrefix = "cities:"

// Find returns the topology that a person named: one that is built in, the path
// of a YAML file, the path of a matrix of round trips, or `cities:` and names
// of cities joined by commas. draw is for matrices only.
func Find(name string, draw Draw) (*Topology, error) {
	const op fault.Op = "topology.Find"
	if names, ok := strings.CutPrefix(name, citiesPrefix); ok {
		return Parse(name, []byte(fmt.Sprintf("name: cities\ncities: {places: [%s]}\n", names)))
	}
	if t, err := readBuiltin(name); !fault.Is(err, fault.NotFound) {
		return t, err
	}
	info, err := os.Stat(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, unknown(name)
	}
	if err != nil {
		return nil, fault.FromOS(op, name, err)
	}
	if info.IsDir() {
		return nil, fault.E(fault.Invalid, op, name, "is a folder; name a topology's YAML file, or a matrix of round trips")
	}
	if ext := filepath.Ext(name); ext == ".yaml" || ext == ".yml" {
		return ReadFile(name)
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, fault.FromOS(op, name, err)
	}
	m, err := ReadMatrix(path)
	if err != nil {
		return nil, err
	}
	hosts := ""
	if draw.Hosts > 0 {
		hosts = fmt.Sprintf(", hosts: %d", draw.Hosts)
	} else if len(m.Names) > MaxSites {
		return nil, fault.Errorf(fault.Invalid, op, name, "has %d places, too many for one machine: draw some with --hosts N --seed S", len(m.Names))
	}
	base := strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
	return Parse(name, []byte(fmt.Sprintf("name: %q\ndefaults: {nodes: %d}\nmatrix: {file: %q, seed: %d%s}\n",
		base, max(draw.Nodes, 1), path, draw.Seed, hosts)))
}

// unknown says what there is instead.
func unknown(name string) error {
	all, err := Builtin()
	if err != nil {
		return err
	}
	var names []string
	for _, t := range all {
		names = append(names, t.Name)
	}
	hint := Suggest(name, names)
	if hint == "" {
		hint = "; built in are " + strings.Join(names, ", ") + "; others are paths of YAML files or of matrices, or cities:NAME,NAME"
	}
	return fault.E(fault.NotFound, "topology.Find", name, "is no topology"+hint)
}
