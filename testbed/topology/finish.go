package topology

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"

	"cartwheel.dev/geo-config/fault"
	"go.yaml.in/yaml/v3"
)

// finish puts together what was read, and checks what only shows then.
func (d *draft) finish(top *yaml.Node) {
	if d.t.Name == "" {
		d.t.Name = strings.TrimSuffix(filepath.Base(d.from), filepath.Ext(d.from))
	}
	sources := 0
	for _, there := range []bool{d.matrix != nil, d.cities != nil} {
		if there {
			sources++
		}
	}
	if sources > 1 {
		d.Bad(top, "matrix and cities both say where the sites are: one of them")
		return
	}
	var base *Topology
	switch {
	case d.matrix != nil:
		base = d.fromMatrix()
	case d.cities != nil:
		base = d.fromCities()
	case len(d.sites) == 0:
		d.Bad(top, "there are no sites: name them under sites, or give a matrix or cities")
	default:
		base = d.plainSites()
	}
	if base == nil || len(d.errs) > 0 {
		return
	}
	d.t.Sites, d.t.paths = base.Sites, base.paths
	if d.matrix != nil || d.cities != nil {
		d.overrideSites()
	}
	d.applyPairs()
	d.checkSites(top)
	if len(d.errs) == 0 {
		d.checkHosts(top)
	}
}

// plainSites makes the sites that were listed, all pairs as wan says.
func (d *draft) plainSites() *Topology {
	var out Topology
	seen := map[string]int{}
	for _, s := range d.sites {
		if line, again := seen[s.Name]; again {
			d.Bad(s.node, "the site %q is there already, at line %d", s.Name, line)
			continue
		}
		seen[s.Name] = s.node.Line
		site := d.defaults
		site.Name = s.Name
		s.read(&site)
		out.Sites = append(out.Sites, site)
	}
	out.connect(func(_, _ int) Path { return d.wan })
	return &out
}

// overrideSites lets the list of sites change what a matrix or cities made.
func (d *draft) overrideSites() {
	for _, s := range d.sites {
		found := false
		for i := range d.t.Sites {
			if d.t.Sites[i].Name == s.Name {
				s.read(&d.t.Sites[i])
				found = true
			}
		}
		if !found {
			d.Bad(s.node, "unknown site %q%s", s.Name, d.oneOf(s.Name))
		}
	}
}

// oneOf helps with a name that is no site.
func (d *draft) oneOf(name string) string {
	names := d.t.named()
	if hint := Suggest(name, names); hint != "" {
		return hint
	}
	if len(names) > maxErrors {
		names = append(names[:maxErrors:maxErrors], "...")
	}
	return "; there are " + strings.Join(names, ", ")
}

func (d *draft) applyPairs() {
	for _, p := range d.pairs {
		var names [2]string
		ok := true
		for i, n := range p.names {
			d.Text(n, &names[i])
			if _, there := d.t.Site(names[i]); !there {
				d.Bad(n, "unknown site %q%s", names[i], d.oneOf(names[i]))
				ok = false
			}
		}
		if !ok {
			continue
		}
		if names[0] == names[1] {
			d.Bad(p.node, "a pair is of two sites, not %q with itself: lan says what is inside a site", names[0])
			continue
		}
		for i := range 2 {
			key := [2]string{names[i], names[1-i]}
			path := d.t.paths[key]
			p.read(&path)
			if path.Jitter > path.Delay {
				d.Bad(p.node, "from %s to %s the jitter %v is more than the delay %v itself", key[0], key[1], path.Jitter, path.Delay)
				break
			}
			d.t.paths[key] = path
			if p.oneWay {
				break
			}
		}
	}
}

func (d *draft) checkSites(top *yaml.Node) {
	if n := len(d.t.Sites); n > MaxSites {
		d.Bad(top, "has %d sites; at most %d on one machine: a matrix is sampled with hosts: N", n, MaxSites)
		return
	}
	at := d.network
	if at == nil {
		at = top
	}
	if room := 1 << (siteBits - d.t.Network.Bits()); len(d.t.Sites) > room {
		d.Bad(at, "more hosts than addresses: %v has a /24 for %d sites, there are %d", d.t.Network, room, len(d.t.Sites))
	}
	for _, s := range d.t.Sites {
		where := top
		for _, w := range d.sites {
			if w.Name == s.Name {
				where = w.node
			}
		}
		if _, ok := d.t.Site(s.Declared); !ok && s.Declared != "" {
			var names []string
			for _, o := range d.t.Sites {
				names = append(names, o.Name)
			}
			d.Bad(where, "site %q is declared to be %q, which is no site%s", s.Name, s.Declared, Suggest(s.Declared, names))
		}
		if n := s.Nodes + s.Clients; n > perSite {
			d.Bad(where, "more hosts than addresses: site %q has %d hosts, its /24 room for %d", s.Name, n, perSite)
		} else if n == 0 {
			d.Bad(where, "site %q has no host: give it nodes or clients", s.Name)
		}
		if len(d.t.Sites) > 1 && d.t.unreachable(s.Name) {
			d.Bad(where, "site %q is unreachable: every path to or from it loses every packet; to cut it off for a while, use a fault", s.Name)
		}
	}
	if d.lease != nil && d.t.Lease < minLease {
		d.Bad(d.lease, "a lease is %v or more", minLease)
	}
}

func (d *draft) checkHosts(top *yaml.Node) {
	names := map[string]bool{}
	for _, n := range d.mounted {
		names[plain(n).Value] = true
	}
	geo := d.t.GeoConfig
	if err := d.t.place(d.mounts, names); err != nil {
		d.BadIf(top, err)
		return
	}
	var hosts []string
	for _, h := range d.t.Hosts {
		hosts = append(hosts, h.Name)
	}
	for _, n := range d.mounted {
		if h, ok := d.t.Host(n.Value); !ok || h.Name != n.Value {
			d.Bad(n, "unknown host %q%s", n.Value, Suggest(n.Value, hosts))
		}
	}
	if geo != "" {
		h, ok := d.t.Host(geo)
		if !ok {
			d.Bad(d.geo, "unknown host %q%s", geo, Suggest(geo, hosts))
		}
		d.t.GeoConfig = h.Name
	}
	if d.t.Nodes() == 0 {
		d.Bad(top, "no host runs a node: give a site nodes")
	}
	for _, h := range hosts {
		if _, both := d.t.Site(h); both {
			d.Bad(top, "a host and a site would both be named %q: rename the site", h)
		}
	}

}

// place gives every host its name and address. mounts says who has a mount.
func (t *Topology) place(mounts string, names map[string]bool) error {
	const op fault.Op = "topology.place"
	t.Hosts = nil
	for i, s := range t.Sites {
		subnet := t.Network.Addr().As4()
		n := uint32(subnet[1])<<16 | uint32(subnet[2])<<8 | uint32(subnet[3])
		n += uint32(i) << (32 - siteBits)
		for k := range s.Nodes + s.Clients {
			h := Host{Name: fmt.Sprintf("%s-%d", s.Name, k+1), Site: s.Name, Node: k < s.Nodes}
			if !h.Node {
				h.Name = fmt.Sprintf("%s-c%d", s.Name, k-s.Nodes+1)
			}
			at := n + uint32(k) + 1
			h.Address = netip.AddrFrom4([4]byte{subnet[0], byte(at >> 16), byte(at >> 8), byte(at)})
			h.Mount = mounts == mountAll || mounts == mountNodes && h.Node || mounts == mountClients && !h.Node || names[h.Name]
			t.Hosts = append(t.Hosts, h)
		}
	}
	if t.GeoConfig == "" {
		for _, h := range t.Hosts {
			if h.Node {
				t.GeoConfig = h.Name
				break
			}
		}
	}
	if len(t.Hosts) > MaxHosts {
		return fault.Errorf(fault.Invalid, op, t.Name, "has %d hosts; at most %d", len(t.Hosts), MaxHosts)
	}
	return nil
}
