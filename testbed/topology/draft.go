package topology

import (
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Who has a mount.
const (
	mountAll     = "all"
	mountNodes   = "nodes"
	mountClients = "clients"
	mountNone    = "none"
)

// draft is a topology while it is read: what was said where, so that what only
// shows at the end has a line too.
type draft struct {
	*Reader
	dir  string // relative paths start here
	from string // of the file, for the topology's name

	t        Topology
	lease    *yaml.Node
	geo      *yaml.Node
	network  *yaml.Node
	mounts   string
	mounted  []*yaml.Node // names of hosts
	defaults Site
	sites    []siteDraft
	wan      Path
	pairs    []pairDraft
	matrix   *matrixDraft
	cities   *citiesDraft
}

type siteDraft struct {
	Site
	node *yaml.Node
	read func(*Site) // onto the defaults, once these are known
}

// pairDraft changes the paths between two sites, or one of them.
type pairDraft struct {
	node   *yaml.Node
	names  []*yaml.Node
	oneWay bool
	read   func(*Path)
}

// matrixDraft is the key `matrix` of a topology.
type matrixDraft struct {
	node, at *yaml.Node // at: of the file's name, or the rows
	hosts    *yaml.Node
	file     string
	names    []string
	rows     [][]float64
	rowNodes []*yaml.Node
	count    int
	seed     uint64
	seeded   bool
	sameSite time.Duration
}

// citiesDraft is the key `cities` of a topology.
type citiesDraft struct {
	cities   []City
	nodes    []*yaml.Node
	factor   float64
	lastMile time.Duration
}

// site reads what a site and the defaults have in common. name is nil for the
// defaults.
func (d *draft) site(n *yaml.Node, what string, s *Site, name func(*yaml.Node)) {
	keys := Keys{
		"nodes":   func(n *yaml.Node) { d.Count(n, 0, hostNodes, &s.Nodes) },
		"clients": func(n *yaml.Node) { d.Count(n, 0, hostNodes, &s.Clients) },
		"lan":     func(n *yaml.Node) { d.Map(n, "lan", Keys{"rate": func(n *yaml.Node) { d.Rate(n, &s.LAN) }}) },
		"up":      func(n *yaml.Node) { d.link(n, "up", &s.Up) },
		"down":    func(n *yaml.Node) { d.link(n, "down", &s.Down) },
		"link":    func(n *yaml.Node) { d.link(n, "link", &s.Up); s.Down = s.Up },
	}
	if name != nil {
		keys["name"] = name
		keys["declared"] = func(n *yaml.Node) { d.Text(n, &s.Declared) }
		keys["latitude"] = func(n *yaml.Node) { s.Place = placed(s.Place); d.Number(n, -90, 90, &s.Place.Latitude) }
		keys["longitude"] = func(n *yaml.Node) { s.Place = placed(s.Place); d.Number(n, -180, 180, &s.Place.Longitude) }
	}
	d.Map(n, what, keys)
}

func placed(p *Place) *Place {
	if p == nil {
		return &Place{}
	}
	c := *p
	return &c
}

func (d *draft) checkName(n *yaml.Node, name string) {
	if !validName(name) {
		d.Bad(n, "%q is no site's name: a-z, 0-9 and '-', to %d", name, maxName)
	}
}

func validName(name string) bool {
	return name != "" && len(name) <= maxName && name[0] != '-' &&
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

func (d *draft) link(n *yaml.Node, what string, l *Link) {
	d.Map(n, what, Keys{
		"rate":  func(n *yaml.Node) { d.Rate(n, &l.Rate) },
		"queue": func(n *yaml.Node) { d.Size(n, &l.Queue) },
	})
}

// path reads what lies between sites. rtt and its jitter are halved; delay and
// jitter of one way are not both given.
func (d *draft) path(n *yaml.Node, what string, p *Path, more Keys) {
	var rtt, jitter, delay *yaml.Node
	keys := Keys{
		"rtt": func(n *yaml.Node) {
			rtt = n
			d.Time(n, maxRTT, &p.Delay)
			p.Delay /= 2
		},
		"rtt_jitter": func(n *yaml.Node) { jitter = n; d.Time(n, maxRTT, &p.Jitter); p.Jitter /= 2 },
		"delay":      func(n *yaml.Node) { delay = n; d.Time(n, maxRTT, &p.Delay) },
		"jitter":     func(n *yaml.Node) { jitter = n; d.Time(n, maxRTT, &p.Jitter) },
		"rate":       func(n *yaml.Node) { d.Rate(n, &p.Rate) },
		"queue":      func(n *yaml.Node) { d.Size(n, &p.Queue) },
		"loss":       func(n *yaml.Node) { d.Share(n, &p.Loss) },
		"duplicate":  func(n *yaml.Node) { d.Share(n, &p.Duplicate) },
		"reorder":    func(n *yaml.Node) { d.Share(n, &p.Reorder) },
		"corrupt":    func(n *yaml.Node) { d.Share(n, &p.Corrupt) },
		"burst":      func(n *yaml.Node) { d.Number(n, 1, 1e6, &p.Burst) },
	}
	for k, read := range more {
		keys[k] = read
	}
	d.Map(n, what, keys)
	if rtt != nil && delay != nil {
		d.Bad(delay, "rtt and delay say the same twice: rtt is there and back, delay is one way")
	}
	if jitter != nil && (rtt != nil || delay != nil) && p.Jitter > p.Delay {
		d.Bad(jitter, "jitter is more than the delay itself: packets would arrive before they are sent")
	}
}
