package experiments

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/availability"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/topology"
)

// figure is one figure that an operator may give, in a file or as a setting.
type figure struct {
	name, help string
	read       func(r *topology.Reader, n *yaml.Node, f *availability.Figures)
	text       func(f *availability.Figures) string
}

// figures are all of them, in the order of the tables.
func figures() []figure {
	return []figure{
		countFigure("nodes", "storage nodes, spread evenly over the sites", 1, availability.MaxNodes, func(f *availability.Figures) *int { return &f.Nodes }),
		countFigure("sites", "sites with nodes", 1, availability.MaxNodes, func(f *availability.Figures) *int { return &f.Sites }),
		countFigure("disks", "disks of a node; it loses its copies with any of them", 1, 1000, func(f *availability.Figures) *int { return &f.Disks }),
		rateFigure("node_failures", "times a year that a node goes and comes back with its data", func(f *availability.Figures) *float64 { return &f.NodeFailures }),
		timeFigure("node_outage", "how long such a failure lasts (mean)", func(f *availability.Figures) *time.Duration { return &f.NodeOutage }),
		rateFigure("node_losses", "times a year that a node is lost for good, its disks aside", func(f *availability.Figures) *float64 { return &f.NodeLosses }),
		rateFigure("disk_losses", "times a year that a disk is: its annual failure rate", func(f *availability.Figures) *float64 { return &f.DiskLosses }),
		rateFigure("site_outages", "times a year that a site cannot be reached", func(f *availability.Figures) *float64 { return &f.SiteOutages }),
		timeFigure("site_outage", "how long such an outage lasts (mean)", func(f *availability.Figures) *time.Duration { return &f.SiteOutage }),
		rateFigure("site_losses", "times a year that a site is lost with all its data", func(f *availability.Figures) *float64 { return &f.SiteLosses }),
		timeFigure("repair", "until there is a machine in place of a lost one (MTTR)", func(f *availability.Figures) *time.Duration { return &f.Repair }),
		timeFigure("operator", "until a person decides about a slice that cannot go on", func(f *availability.Figures) *time.Duration { return &f.Operator }),
		timeFigure("lease", "the nodes' lease: a pause where a standby goes", func(f *availability.Figures) *time.Duration { return &f.Lease }),
		timeFigure("takeover", "a pause where the active goes", func(f *availability.Figures) *time.Duration { return &f.Takeover }),
		timeFigure("resynchronization", "until a member that is back has caught up", func(f *availability.Figures) *time.Duration { return &f.Resynchronization }),
		timeFigure("failed_after", "the nodes' failed_after: then new copies are made", func(f *availability.Figures) *time.Duration { return &f.FailedAfter }),
		copyRateFigure(),
		countFigure("scatter", "other nodes with which a node shares slices; 0: all", 0, availability.MaxNodes, func(f *availability.Figures) *int { return &f.Scatter }),
		countFigure("slices", "slices of the cluster", 1, 1<<24, func(f *availability.Figures) *int { return &f.Slices }),
		sliceSizeFigure(),
	}
}

func countFigure(name, help string, least, most int, of func(*availability.Figures) *int) figure {
	return figure{name, help,
		func(r *topology.Reader, n *yaml.Node, f *availability.Figures) { r.Count(n, least, most, of(f)) },
		func(f *availability.Figures) string { return strconv.Itoa(*of(f)) }}
}

func rateFigure(name, help string, of func(*availability.Figures) *float64) figure {
	return figure{name, help,
		func(r *topology.Reader, n *yaml.Node, f *availability.Figures) { r.Number(n, 0, 1e6, of(f)) },
		func(f *availability.Figures) string { return strconv.FormatFloat(*of(f), 'g', -1, 64) }}
}

func timeFigure(name, help string, of func(*availability.Figures) *time.Duration) figure {
	return figure{name, help,
		func(r *topology.Reader, n *yaml.Node, f *availability.Figures) {
			r.Time(n, 10*availability.Year, of(f))
		},
		func(f *availability.Figures) string { return shortTime(*of(f)) }}
}

// shortTime writes a time without the zeros at its end.
func shortTime(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func copyRateFigure() figure {
	return figure{
		"copy_mb_per_s", "what one node sends or takes of new copies, MB/s",
		func(r *topology.Reader, n *yaml.Node, f *availability.Figures) {
			mb := f.CopyRate / 1e6
			r.Number(n, 0.001, 1e6, &mb)
			f.CopyRate = mb * 1e6
		},
		func(f *availability.Figures) string { return strconv.FormatFloat(f.CopyRate/1e6, 'g', 4, 64) },
	}
}

func sliceSizeFigure() figure {
	return figure{"slice_gb", "size of a slice, GB",
		func(r *topology.Reader, n *yaml.Node, f *availability.Figures) {
			gb := float64(f.SliceBytes) / 1e9
			r.Number(n, 0, 1e6, &gb)
			f.SliceBytes = int64(gb * 1e9)
		},
		func(f *availability.Figures) string {
			return strconv.FormatFloat(float64(f.SliceBytes)/1e9, 'g', 4, 64)
		}}
}

// operator is what an operator gave: figures, where each is from, and policies.
type operator struct {
	availability.Figures
	from     map[string]string // by name; others are defaults
	policies []availability.Policy
}

// readOperator reads the figures: the defaults, then the file, then what was
// measured, then the settings. Errors: NotFound, Usage and Invalid name the file
// with its line, or the setting.
func readOperator(env *experiment.Env) (operator, error) {
	o := operator{Figures: availability.Defaults(), from: map[string]string{}}
	if path := env.Text("file"); path != "" {
		if err := o.readFile(path); err != nil {
			return o, err
		}
	}
	if path := env.Text("measured"); path != "" {
		if err := o.readMeasured(path); err != nil {
			return o, err
		}
	}
	for _, x := range figures() {
		if err := o.set(x, env.Text(x.name)); err != nil {
			return o, err
		}
	}
	if text := env.Text("policies"); text != "" {
		if err := o.readPolicies(text); err != nil {
			return o, err
		}
	}
	if err := o.Validate(); err != nil {
		return o, err
	}
	if len(o.policies) == 0 {
		o.policies = o.usualPolicies()
	}
	return o, nil
}

// set reads one setting, if there is one.
func (o *operator) set(x figure, text string) error {
	if text == "" {
		return nil
	}
	r, n := topology.NewReader(x.name, []byte(strconv.Quote(text)))
	x.read(r, n, &o.Figures)
	o.from[x.name] = "--set"
	var e *fault.Error
	if errors.As(r.Err(), &e) {
		return fault.E(fault.Usage, "experiments.set", x.name, e.Public)
	}
	return nil
}

// readFile reads a YAML file of figures and policies.
func (o *operator) readFile(path string) error {
	const op fault.Op = "experiments.readFile"
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return fault.E(fault.NotFound, op, path, "there is no such file")
	}
	if err != nil {
		return fault.FromOS(op, path, err)
	}
	r, top := topology.NewReader(path, text)
	if top == nil {
		return r.Err()
	}
	keys := topology.Keys{"policies": func(n *yaml.Node) {
		r.List(n, "policies", func(n *yaml.Node) {
			var p availability.Policy
			r.Map(n, "a policy", topology.Keys{
				"level": func(n *yaml.Node) { r.Count(n, 1, availability.MaxLevel, &p.Level) },
				"sites": func(n *yaml.Node) { r.Count(n, 1, availability.MaxLevel, &p.Sites) },
			})
			o.policies = append(o.policies, p)
		})
	}}
	for _, x := range figures() {
		keys[x.name] = func(n *yaml.Node) {
			x.read(r, n, &o.Figures)
			o.from[x.name] = path
		}
	}
	r.Map(top, "figures of availability", keys)
	return r.Err()
}

// measured are recovery times that were measured, as JSON has them. What is absent
// stays as it is.
type measured struct {
	Lease             *float64 `json:"lease_ms"`
	Takeover          *float64 `json:"takeover_ms"`
	Resynchronization *float64 `json:"resynchronization_ms"`
	CopyRate          *float64 `json:"copy_bytes_per_s"`
}

// readMeasured reads a JSON file of recovery times.
func (o *operator) readMeasured(path string) error {
	const op fault.Op = "experiments.readMeasured"
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return fault.E(fault.NotFound, op, path, "there is no such file")
	}
	if err != nil {
		return fault.FromOS(op, path, err)
	}
	defer file.Close()
	var m measured
	d := json.NewDecoder(file)
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return fault.Errorf(fault.Invalid, op, path, "is no JSON of recovery times (lease_ms, takeover_ms, resynchronization_ms, copy_bytes_per_s): %v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fault.E(fault.Invalid, op, path, "has more behind its JSON object")
	}
	for _, x := range []struct {
		name  string
		value *float64
		into  *time.Duration
	}{{"lease", m.Lease, &o.Lease}, {"takeover", m.Takeover, &o.Takeover}, {"resynchronization", m.Resynchronization, &o.Resynchronization}} {
		if x.value == nil {
			continue
		}
		if *x.value < 0 || *x.value > 1e12 {
			return fault.Errorf(fault.Invalid, op, path, "%s_ms is %g: 0 to 1e12", x.name, *x.value)
		}
		*x.into, o.from[x.name] = time.Duration(*x.value*float64(time.Millisecond)), path
	}
	if m.CopyRate != nil {
		if !(*m.CopyRate > 0) {
			return fault.Errorf(fault.Invalid, op, path, "copy_bytes_per_s is %g: it is above 0", *m.CopyRate)
		}
		o.CopyRate, o.from["copy_mb_per_s"] = *m.CopyRate, path
	}
	return nil
}

// readPolicies reads policies as LEVEL or LEVEL/SITES, joined by commas.
func (o *operator) readPolicies(text string) error {
	o.policies = nil
	for _, word := range strings.Split(text, ",") {
		level, sites, isSpread := strings.Cut(strings.TrimSpace(word), "/")
		var p availability.Policy
		var err, other error
		if p.Level, err = strconv.Atoi(level); isSpread {
			p.Sites, other = strconv.Atoi(sites)
		}
		if err != nil || other != nil || isSpread && p.Sites < 1 {
			return fault.Errorf(fault.Usage, "experiments.readPolicies", "policies", "%q is no policy: write LEVEL or LEVEL/SITES, such as 3/2", word)
		}
		o.policies = append(o.policies, p)
	}
	return nil
}

// usualPolicies are up to four copies, at every number of sites that has room.
func (o *operator) usualPolicies() []availability.Policy {
	var out []availability.Policy
	for level := 1; level <= min(4, o.Nodes); level++ {
		for sites := 1; sites <= min(level, o.Sites); sites++ {
			if level <= o.Nodes/o.Sites*sites {
				out = append(out, availability.Policy{Level: level, Sites: sites})
			}
		}
	}
	return out
}
