package topology

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"cartwheel.dev/geo-config/fault"
)

// ReadFile reads a topology's YAML file.
func ReadFile(path string) (*Topology, error) {
	const op fault.Op = "topology.ReadFile"
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fault.E(fault.NotFound, op, path, "there is no such file")
	}
	if err != nil {
		return nil, fault.FromOS(op, path, err)
	}
	return Parse(path, text)
}

// Parse reads a topology. file names it in errors, and paths in it are relative
// to its folder.
func Parse(file string, text []byte) (*Topology, error) {
	r, top := NewReader(file, text)
	if top == nil {
		return nil, r.Err()
	}
	return ParseNode(r, top, file)
}

// ParseNode reads a topology that is part of a larger document; the errors of
// both come from Err of the reader, and are returned at once.
func ParseNode(r *Reader, top *yaml.Node, file string) (*Topology, error) {
	d := &draft{Reader: r, dir: filepath.Dir(file), from: file, mounts: mountAll}
	d.t.Network, d.t.Lease = defaultNetwork(), defaultLease
	d.defaults.Nodes = 1
	d.Map(top, "a topology", Keys{
		"name":       func(n *yaml.Node) { d.Text(n, &d.t.Name) },
		"summary":    func(n *yaml.Node) { d.Text(n, &d.t.Summary) },
		"seed":       func(n *yaml.Node) { d.Seed(n, &d.t.Seed) },
		"network":    func(n *yaml.Node) { d.network = n; d.prefix(n) },
		"lease":      func(n *yaml.Node) { d.lease = n; d.Time(n, maxLease, &d.t.Lease) },
		"tcp":        d.readTCP,
		"geo_config": func(n *yaml.Node) { d.geo = n; d.Text(n, &d.t.GeoConfig) },
		"mounts":     d.readMounts,
		"defaults":   func(n *yaml.Node) { d.site(n, "defaults", &d.defaults, nil) },
		"sites":      func(n *yaml.Node) { d.List(n, "sites", d.readSite) },
		"wan":        func(n *yaml.Node) { d.path(n, "wan", &d.wan, nil) },
		"pairs":      func(n *yaml.Node) { d.List(n, "pairs", d.readPair) },
		"matrix":     d.readMatrix,
		"cities":     d.readCities,
	})
	if err := d.Err(); err != nil {
		return nil, err
	}
	d.finish(top)
	if err := d.Err(); err != nil {
		return nil, err
	}
	return &d.t, nil
}

func (d *draft) prefix(n *yaml.Node) {
	parsed(d.Reader, n, func(text string) (netip.Prefix, error) {
		p, err := netip.ParsePrefix(text)
		if err != nil || !p.Addr().Is4() || p.Masked() != p || p.Bits() < 8 || p.Bits() > siteBits {
			return p, fault.E(fault.Usage, "", text, "is no IPv4 network such as 10.98.0.0/16: between /8 and /24, with nothing behind its bits")
		}
		return p, nil
	}, &d.t.Network)
}

// readTCP reads the name of a congestion control. Whether the machine has it
// shows when the network is made.
func (d *draft) readTCP(n *yaml.Node) {
	if d.Text(n, &d.t.TCP); !controlName.MatchString(d.t.TCP) {
		d.Bad(n, "%q is no congestion control: such as reno, cubic or bbr", d.t.TCP)
	}
}

// controlName is what names of congestion controls look like: the kernel takes
// 15 characters.
var controlName = regexp.MustCompile(`^[a-z0-9_-]{1,15}$`)

// readMounts reads one word, or a list of hosts.
func (d *draft) readMounts(n *yaml.Node) {
	if n = plain(n); n.Kind == yaml.SequenceNode {
		d.mounts, d.mounted = mountNone, n.Content
		return
	}
	words := []string{mountAll, mountNodes, mountClients, mountNone}
	for _, w := range words {
		if n.Value == w {
			d.mounts = w
			return
		}
	}
	d.Bad(n, "%q is none of %s, and no list of hosts%s", n.Value, strings.Join(words, ", "), Suggest(n.Value, words))
}

func (d *draft) readSite(n *yaml.Node) {
	var first Site
	s := siteDraft{node: n}
	d.site(n, "a site", &first, func(n *yaml.Node) { s.node = n; d.Text(n, &s.Name); d.checkName(n, s.Name) })
	if s.Name == "" {
		d.Bad(n, "a site has a name")
		return
	}
	// Read again onto the defaults, which may stand further down.
	s.read = func(into *Site) { d.site(n, "a site", into, func(*yaml.Node) {}) }
	d.sites = append(d.sites, s)
}

func (d *draft) readPair(n *yaml.Node) {
	p := pairDraft{node: n}
	var from, to *yaml.Node
	names := Keys{
		"sites": func(n *yaml.Node) { d.List(n, "sites", func(n *yaml.Node) { p.names = append(p.names, n) }) },
		"from":  func(n *yaml.Node) { from = n },
		"to":    func(n *yaml.Node) { to = n },
	}
	var first Path
	d.path(n, "a pair", &first, names)
	if from != nil || to != nil {
		p.oneWay = true
		if from == nil || to == nil || p.names != nil {
			d.Bad(n, "a pair has either sites: [A, B], or from: A and to: B")
			return
		}
		p.names = []*yaml.Node{from, to}
	}
	if len(p.names) != 2 {
		d.Bad(n, "a pair names two sites: sites: [A, B], or from: A and to: B for one direction")
		return
	}
	nothing := func(*yaml.Node) {}
	p.read = func(into *Path) { d.path(n, "a pair", into, Keys{"sites": nothing, "from": nothing, "to": nothing}) }
	d.pairs = append(d.pairs, p)
}
