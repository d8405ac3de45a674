package rehearse

import (
	"errors"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/lab"
	"cartwheel.dev/testbed/topology"
)

// Limits of one plan, against slips of the pen.
const (
	maxLength    = 24 * time.Hour
	maxTimes     = 1_000_000
	defaultLimit = 5 * time.Minute
)

// draft is a plan while it is read.
type draft struct {
	*topology.Reader
	dir  string
	plan Plan
	seed uint64

	work   []*yaml.Node // of Plan.Work, for what only shows at the end
	hosts  [][]*yaml.Node
	faults []*yaml.Node
	checks []*yaml.Node
}

// ReadFile reads a plan. seed draws what the topology leaves open.
func ReadFile(path string, seed uint64) (*Plan, error) {
	const op fault.Op = "rehearse.ReadFile"
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fault.E(fault.NotFound, op, path, "there is no such file")
	}
	if err != nil {
		return nil, fault.FromOS(op, path, err)
	}
	return Parse(path, text, seed)
}

// Parse reads a plan; file names it in errors, and paths are relative to its
// folder.
func Parse(file string, text []byte, seed uint64) (*Plan, error) {
	r, top := topology.NewReader(file, text)
	if top == nil {
		return nil, r.Err()
	}
	d := &draft{Reader: r, dir: filepath.Dir(file), seed: seed}
	var where *yaml.Node
	d.Map(top, "a rehearsal", topology.Keys{
		"name":     func(n *yaml.Node) { d.Text(n, &d.plan.Name) },
		"summary":  func(n *yaml.Node) { d.Text(n, &d.plan.Summary) },
		"seed":     func(n *yaml.Node) { d.Seed(n, &d.seed) },
		"topology": func(n *yaml.Node) { where = n },
		"length":   func(n *yaml.Node) { d.Time(n, maxLength, &d.plan.Length) },
		"work":     func(n *yaml.Node) { d.List(n, "work", d.readWork) },
		"faults":   func(n *yaml.Node) { d.List(n, "faults", d.readFault) },
		"checks":   func(n *yaml.Node) { d.List(n, "checks", d.readCheck) },
	})
	switch {
	case where == nil:
		d.Bad(top, "there is no topology: name one that is built in or its file, or write it here")
	case d.Err() == nil:
		d.readTopology(where, file)
	}
	if len(d.plan.Work) == 0 {
		d.Bad(top, "there is no work: a list of commands with their hosts")
	}
	if d.plan.Topology != nil {
		d.finish()
	}
	if err := d.Err(); err != nil {
		return nil, err
	}
	return &d.plan, nil
}

// readTopology reads a name, a path or a topology that is written out.
func (d *draft) readTopology(n *yaml.Node, file string) {
	if n.Kind == yaml.MappingNode {
		t, err := topology.ParseNode(d.Reader, n, file)
		if err == nil { // else it is in the reader
			d.plan.Topology = t
		}
	} else {
		name := n.Value
		if ext := filepath.Ext(name); (ext == ".yaml" || ext == ".yml") && !filepath.IsAbs(name) {
			name = filepath.Join(d.dir, name)
		}
		t, err := topology.Find(name, topology.Draw{Seed: d.seed})
		if err != nil {
			d.Bad(n, "%s", fault.Explain(err))
			return
		}
		d.plan.Topology = t
	}
	if t := d.plan.Topology; t != nil && t.Seed == 0 {
		t.Seed = d.seed
	}
}

func (d *draft) readWork(n *yaml.Node) {
	w := Work{Times: 1, Limit: defaultLimit}
	var hosts []*yaml.Node
	times := false
	d.Map(n, "work", topology.Keys{
		"name":  func(n *yaml.Node) { d.Text(n, &w.Name) },
		"hosts": func(n *yaml.Node) { hosts = items(n) },
		"run":   func(n *yaml.Node) { d.Text(n, &w.Script) },
		"at":    func(n *yaml.Node) { d.Time(n, maxLength, &w.At) },
		"times": func(n *yaml.Node) { times = true; d.Count(n, 1, maxTimes, &w.Times) },
		"for":   func(n *yaml.Node) { d.Time(n, maxLength, &w.For) },
		"every": func(n *yaml.Node) { d.Time(n, maxLength, &w.Every) },
		"limit": func(n *yaml.Node) { d.Time(n, maxLength, &w.Limit) },
	})
	if w.Script == "" {
		d.Bad(n, "work says what to run")
	}
	if strings.Trim(w.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || w.Name == "" {
		d.Bad(n, "work has a name: a-z, 0-9 and '-'")
	}
	for i, other := range d.plan.Work {
		if other.Name == w.Name && w.Name != "" {
			d.Bad(n, "work %q is there already, at line %d", w.Name, d.work[i].Line)
		}
	}
	if w.For > 0 && !times {
		w.Times = 0
	}
	d.plan.Work = append(d.plan.Work, w)
	d.work, d.hosts = append(d.work, n), append(d.hosts, hosts)
}

// items are those of a list, or the one that stands alone.
func items(n *yaml.Node) []*yaml.Node {
	if n.Kind == yaml.SequenceNode {
		return n.Content
	}
	return []*yaml.Node{n}
}

// readFault reads `at`, one verb with its sites or host, and what it needs.
func (d *draft) readFault(n *yaml.Node) {
	var s Step
	change := map[string]string{}
	verbs := 0
	keys := topology.Keys{
		"at": func(n *yaml.Node) { d.Time(n, maxLength, &s.At) },
		"one_way": func(n *yaml.Node) {
			if s.Fault.OneWay = n.Value == "true"; !s.Fault.OneWay && n.Value != "false" {
				d.Bad(n, "%q is neither true nor false", n.Value)
			}
		},
		"down":  func(n *yaml.Node) { d.Time(n, maxLength, &s.Fault.Down) },
		"every": func(n *yaml.Node) { d.Time(n, maxLength, &s.Fault.Every) },
		"what": func(n *yaml.Node) {
			for _, w := range items(n) {
				s.Fault.Which = append(s.Fault.Which, lab.Process(w.Value))
			}
		},
	}
	for _, v := range lab.Verbs() {
		keys[string(v)] = func(n *yaml.Node) {
			verbs++
			s.Fault.Do = v
			d.readPlaces(n, &s.Fault)
		}
	}
	for _, name := range lab.ChangeFields() {
		keys[name] = func(n *yaml.Node) { change[name] = n.Value }
	}
	d.Map(n, "a fault", keys)
	if verbs != 1 {
		d.Bad(n, "a fault is one of %v", lab.Verbs())
	}
	var err error
	if s.Fault.Change, err = lab.ParseChange(change); err != nil {
		d.Bad(n, "%s", fault.Explain(err))
	} else if len(change) > 0 && s.Fault.Do != lab.Set {
		d.Bad(n, "only set changes a path")
	}
	d.plan.Faults, d.faults = append(d.plan.Faults, s), append(d.faults, n)
}

// readPlaces reads the sites or the host of a fault; `heal: all` has none.
func (d *draft) readPlaces(n *yaml.Node, f *lab.Fault) {
	places := items(n)
	if f.Do == lab.Heal && len(places) == 1 && places[0].Value == "all" {
		return
	}
	if len(places) > 2 {
		d.Bad(n, "a fault is of one place, or between two")
		return
	}
	for i, into := range []*string{&f.A, &f.B} {
		if i < len(places) {
			d.Text(places[i], into)
		}
	}
}

func (d *draft) readCheck(n *yaml.Node) {
	c := Check{Limit: defaultLimit}
	d.Map(n, "a check", topology.Keys{
		"host":  func(n *yaml.Node) { d.Text(n, &c.Host) },
		"run":   func(n *yaml.Node) { d.Text(n, &c.Script) },
		"limit": func(n *yaml.Node) { d.Time(n, maxLength, &c.Limit) },
	})
	if c.Host == "" || c.Script == "" {
		d.Bad(n, "a check has a host and what to run there")
	}
	d.plan.Checks, d.checks = append(d.plan.Checks, c), append(d.checks, n)
}

// finish checks what needs the topology.
func (d *draft) finish() {
	t := d.plan.Topology
	if d.plan.Name == "" {
		d.plan.Name = t.Name
	}
	for i := range d.plan.Work {
		w := &d.plan.Work[i]
		for _, n := range d.hosts[i] {
			d.readHost(n, t, w)
		}
		if len(w.Hosts) == 0 && d.Err() == nil {
			d.Bad(d.work[i], "work names its hosts: a list, mounts, nodes or all")
		}
		if w.Times == 0 && w.For == 0 && d.plan.Length == 0 {
			d.Bad(d.work[i], "work without an end: give it times or for, or the whole a length")
		}
	}
	for i, s := range d.plan.Faults {
		if err := s.Fault.Check(t); err != nil {
			d.Bad(d.faults[i], "%s", fault.Explain(err))
		}
		for _, p := range s.Fault.Which {
			if p != lab.NodeProcess && p != lab.MountProcess && p != lab.GeoConfigProcess {
				d.Bad(d.faults[i], "%q is no process of a host: node, mount or geo-config", p)
			}
		}
	}
	for i := range d.plan.Checks {
		c := &d.plan.Checks[i]
		h, ok := t.Host(c.Host)
		if !ok {
			d.Bad(d.checks[i], "unknown host %q%s", c.Host, suggestHost(t, c.Host))
		}
		c.Host = h.Name
	}
	sort.SliceStable(d.plan.Faults, func(i, j int) bool { return d.plan.Faults[i].At < d.plan.Faults[j].At })
}

// readHost reads a host's name, or a word for many.
func (d *draft) readHost(n *yaml.Node, t *topology.Topology, w *Work) {
	many := map[string]func(topology.Host) bool{
		"all":    func(topology.Host) bool { return true },
		"mounts": func(h topology.Host) bool { return h.Mount },
		"nodes":  func(h topology.Host) bool { return h.Node },
	}
	if is, ok := many[n.Value]; ok {
		for _, h := range t.Hosts {
			if is(h) {
				w.Hosts = append(w.Hosts, h.Name)
			}
		}
		return
	}
	h, ok := t.Host(n.Value)
	if !ok {
		d.Bad(n, "unknown host %q%s", n.Value, suggestHost(t, n.Value))
		return
	}
	w.Hosts = append(w.Hosts, h.Name)
}

func suggestHost(t *topology.Topology, name string) string {
	var names []string
	for _, h := range t.Hosts {
		names = append(names, h.Name)
	}
	return topology.SuggestOf(name, names)
}
