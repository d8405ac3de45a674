// Package topology describes a wide area: sites with their hosts, the network
// inside each site, and what lies between every two of them. Topologies are
// read from YAML, where every error names the file and the line, sampled from
// matrices of round-trip times, or generated from the coordinates of cities;
// the ones built in are the published set-ups. The package only describes: it
// starts nothing, and a Topology that was returned is never changed, so that
// goroutines may share it.
package topology

import (
	"net/netip"
	"time"
)

// Topology is a wide area. Every name is unique, every ordered pair of sites
// has a path, and every host has an address of its own.
type Topology struct {
	Name    string
	Summary string
	// Seed drew the sample or whatever chance the experiment needs.
	Seed uint64
	// Network holds a /24 for each site, in order, and in it an address for
	// each host, from .1.
	Network netip.Prefix
	// Lease is what cartwheeld gets as --lease.
	Lease time.Duration
	// TCP is the congestion control of the hosts, such as reno; "": the
	// machine's.
	TCP string
	// GeoConfig is the host that runs the geo-config server too.
	GeoConfig string
	Sites     []Site
	Hosts     []Host // of the first site first

	paths map[[2]string]Path
}

// Site is a place with a network of its own and one way to the wide area.
type Site struct {
	Name    string
	Nodes   int // hosts that run cartwheeld
	Clients int // hosts that only mount
	// LAN is the rate of each host's link to the site's switch; 0: no limit.
	LAN Rate
	// Up and Down are the site's link to the wide area, shared by its hosts.
	Up, Down Link
	// Declared is the site that the processes here say they stand at, where
	// they are set up wrong; empty: this one.
	Declared string
	// Place is where the site stands, if that is known.
	Place *Place
}

// Place is a point on the earth, in degrees; south and west are negative.
type Place struct {
	Latitude, Longitude float64
}

// Link is a site's way to or from the wide area. Zero means: no limit, and a
// queue that the emulator chooses.
type Link struct {
	Rate  Rate
	Queue int64 // bytes
}

// Path is what lies between two sites, in one direction, besides their links.
type Path struct {
	Delay  time.Duration // one way
	Jitter time.Duration // up to so much more or less than Delay
	Rate   Rate          // 0: only the sites' links limit
	Queue  int64         // bytes; 0: the emulator chooses
	// Shares of the packets, from 0 to 1.
	Loss, Duplicate, Reorder, Corrupt float64
	// Burst is how many packets are lost in a row, on average; 0: one by one.
	Burst float64
}

// Host is a machine.
type Host struct {
	Name    string
	Site    string
	Address netip.Addr
	Node    bool // runs cartwheeld
	Mount   bool // has a mount
}

// Path returns what lies from one site to another. A pair that there is not,
// and a site with itself, has the zero path.
func (t *Topology) Path(from, to string) Path { return t.paths[[2]string{from, to}] }

// RTT is the round trip that the paths between two sites add up to, without
// the sites' own links.
func (t *Topology) RTT(a, b string) time.Duration {
	return t.Path(a, b).Delay + t.Path(b, a).Delay
}

// Site returns a site by its name.
func (t *Topology) Site(name string) (Site, bool) {
	for _, s := range t.Sites {
		if s.Name == name {
			return s, true
		}
	}
	return Site{}, false
}

// Declared is the site that the processes of a site say they stand at.
func (t *Topology) Declared(site string) string {
	if s, ok := t.Site(site); ok && s.Declared != "" {
		return s.Declared
	}
	return site
}

// Host returns a host by its name. A site's name is its host's where it has
// just one.
func (t *Topology) Host(name string) (Host, bool) {
	var at []Host
	for _, h := range t.Hosts {
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
	return Host{}, false
}

// At lists the hosts of a site.
func (t *Topology) At(site string) []Host {
	var out []Host
	for _, h := range t.Hosts {
		if h.Site == site {
			out = append(out, h)
		}
	}
	return out
}

// Nodes counts the hosts that run cartwheeld.
func (t *Topology) Nodes() int {
	n := 0
	for _, h := range t.Hosts {
		if h.Node {
			n++
		}
	}
	return n
}

// Limits of one topology. They bound what one machine is asked for.
const (
	MaxSites = 128
	MaxHosts = 256
	// perSite is how many addresses a site's /24 has for hosts.
	perSite   = 250 // the last address is the gateway's
	siteBits  = 24
	maxRTT    = 10 * time.Second
	maxName   = 36 // and -c100 behind it
	maxLease  = time.Minute
	minLease  = 100 * time.Millisecond
	hostNodes = 100 // more of one kind at one site is a slip of the pen
)

func defaultNetwork() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 98, 0, 0}), 16)
}

const defaultLease = 3 * time.Second

// named lists the names of sites.
func (t *Topology) named() []string {
	var names []string
	for _, s := range t.Sites {
		names = append(names, s.Name)
	}
	return names
}

// connect gives every ordered pair of sites its path.
func (t *Topology) connect(path func(from, to int) Path) {
	t.paths = make(map[[2]string]Path, len(t.Sites)*len(t.Sites))
	for i, a := range t.Sites {
		for j, b := range t.Sites {
			if i != j {
				t.paths[[2]string{a.Name, b.Name}] = path(i, j)
			}
		}
	}
}

// unreachable tells whether nothing ever comes out of a site, or into it.
func (t *Topology) unreachable(site string) bool {
	in, out := false, false
	for _, other := range t.Sites {
		if other.Name != site {
			in = in || t.Path(other.Name, site).Loss < 1
			out = out || t.Path(site, other.Name).Loss < 1
		}
	}
	return !in || !out
}
