// Package availability predicts for how long clients of a slice have to wait in a
// year, and how likely the slice's data is lost, from how often nodes and sites
// fail. It holds the formulas only: it measures nothing, and knows no cluster. The
// formulas count on independent failures that are rare. Every value may be used by
// several goroutines.
package availability

import (
	"math"
	"strings"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// Year is the length of the year that rates are of.
const Year = 365 * 24 * time.Hour

// Limits of what can be predicted.
const (
	MaxLevel = 16
	MaxNodes = 100_000
	// maxShare is the largest share of its time for which a node or a site may be
	// out. Above it failures are not rare.
	maxShare = 0.1
)

// Figures are what an operator knows of the machines, or takes for granted. Nodes
// and slices are spread evenly over the sites.
type Figures struct {
	Nodes int `json:"nodes"`
	Sites int `json:"sites"`
	// PerSite are the nodes of the largest site; 0: all sites have as many as others.
	PerSite int `json:"nodes_of_largest_site,omitempty"`
	// Disks are those of one node. A node that loses one of them loses all its copies.
	Disks int `json:"disks"`

	// NodeFailures are the times a year that a node goes and comes back with its
	// data, after NodeOutage in the mean.
	NodeFailures float64       `json:"node_failures_per_year"`
	NodeOutage   time.Duration `json:"node_outage_ns"`
	// NodeLosses are the times a year that a node goes for good, its disks aside,
	// and DiskLosses those of one disk: its annual failure rate.
	NodeLosses float64 `json:"node_losses_per_year"`
	DiskLosses float64 `json:"disk_losses_per_year"`
	// SiteOutages are the times a year that one site cannot be reached, for
	// SiteOutage in the mean. SiteLosses are the times that it goes for good.
	SiteOutages float64       `json:"site_outages_per_year"`
	SiteOutage  time.Duration `json:"site_outage_ns"`
	SiteLosses  float64       `json:"site_losses_per_year"`

	// Repair is how long it takes to put a machine in the place of a lost one.
	Repair time.Duration `json:"repair_ns"`
	// Operator is how long it takes until a person decides about a slice that
	// cannot go on by itself.
	Operator time.Duration `json:"operator_ns"`

	// Lease is the nodes' lease: so long a slice waits for a standby that went.
	Lease time.Duration `json:"lease_ns"`
	// Takeover is how long a slice waits whose active went.
	Takeover time.Duration `json:"takeover_ns"`
	// Resynchronization is how long a member that is back needs to catch up.
	Resynchronization time.Duration `json:"resynchronization_ns"`
	// FailedAfter is the nodes' failed_after: then other nodes make new copies.
	FailedAfter time.Duration `json:"failed_after_ns"`
	// CopyRate is how many bytes a second one node sends or takes of new copies.
	CopyRate float64 `json:"copy_bytes_per_s"`
	// Scatter is the number of other nodes with which a node shares slices; 0: all.
	Scatter int `json:"scatter"`

	// Slices is their number, and SliceBytes is the size of each.
	Slices     int   `json:"slices"`
	SliceBytes int64 `json:"slice_bytes"`
}

// Defaults returns figures to begin with. The rates are assumptions. A node fails
// as often as BeanFS's harshest rate says (19e-8 a second), and an active's standby
// takes over after 1.2 leases.
func Defaults() Figures {
	return Figures{
		Nodes: 12, Sites: 3, Disks: 1,
		NodeFailures: 6, NodeOutage: 10 * time.Minute, NodeLosses: 0.01, DiskLosses: 0.015,
		SiteOutages: 1, SiteOutage: 2 * time.Hour, SiteLosses: 0.001,
		Repair: 72 * time.Hour, Operator: time.Hour,
		Lease: 3 * time.Second, Takeover: 3700 * time.Millisecond, Resynchronization: 10 * time.Second,
		FailedAfter: 30 * time.Minute, CopyRate: 50e6, Slices: 1000, SliceBytes: 4e9,
	}
}

// Policy is what a slice asks for.
type Policy struct {
	Level int `json:"level"`
	Sites int `json:"sites"` // 1 to Level; 0: as many as there are, up to Level
}

// Spread is the number of sites that hold copies where there are so many sites.
func (p Policy) Spread(sites int) int {
	if p.Sites == 0 {
		return min(p.Level, sites)
	}
	return min(p.Sites, sites)
}

// Validate returns all that is wrong with the figures, or nil. Its errors are
// Invalid and name the figure as the JSON does, without its unit.
func (f Figures) Validate() error {
	const op fault.Op = "availability.Validate"
	var wrong []string
	bad := func(is bool, text string) {
		if is {
			wrong = append(wrong, text)
		}
	}
	bad(f.Nodes < 1 || f.Nodes > MaxNodes, "nodes: 1 to 100000 of them")
	bad(f.Sites < 1 || f.Sites > f.Nodes, "sites: one at least, and no more than there are nodes")
	bad(f.PerSite < 0 || f.PerSite > f.Nodes, "nodes_of_largest_site: 0, or no more than there are nodes")
	bad(f.Disks < 1 || f.Disks > 1000, "disks: 1 to 1000 a node")
	bad(f.Scatter < 0 || f.Scatter >= f.Nodes, "scatter: 0 for all, and less than there are nodes")
	bad(f.Slices < 1, "slices: one at least")
	bad(f.SliceBytes < 0, "slice_bytes: not negative")
	bad(!(f.CopyRate > 0) || math.IsInf(f.CopyRate, 1), "copy_bytes_per_s: above 0")
	for _, r := range []struct {
		name  string
		value float64
	}{
		{"node_failures", f.NodeFailures}, {"node_losses", f.NodeLosses}, {"disk_losses", f.DiskLosses},
		{"site_outages", f.SiteOutages}, {"site_losses", f.SiteLosses},
	} {
		bad(!(r.value >= 0) || r.value > 1e6, r.name+": a number of times a year, not negative")
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"node_outage", f.NodeOutage}, {"site_outage", f.SiteOutage}, {"repair", f.Repair}, {"operator", f.Operator},
		{"lease", f.Lease}, {"takeover", f.Takeover}, {"resynchronization", f.Resynchronization}, {"failed_after", f.FailedAfter},
	} {
		bad(d.value < 0 || d.value > 10*Year, d.name+": not negative, and at most ten years")
	}
	if len(wrong) == 0 {
		return nil
	}
	return fault.E(fault.Invalid, op, "figures", strings.Join(wrong, "; "))
}

// check refuses a policy that these nodes cannot satisfy.
func (f Figures) check(p Policy) error {
	const op fault.Op = "availability.check"
	switch {
	case p.Level < 1 || p.Level > MaxLevel:
		return fault.Errorf(fault.Invalid, op, "level", "%d copies: 1 to %d of them", p.Level, MaxLevel)
	case p.Level > f.Nodes:
		return fault.Errorf(fault.Invalid, op, "level", "%d copies on %d nodes: each needs a node of its own; add nodes, or lower the level", p.Level, f.Nodes)
	case p.Sites < 0 || p.Sites > p.Level:
		return fault.Errorf(fault.Invalid, op, "sites", "%d copies at %d sites: at most one site a copy", p.Level, p.Sites)
	case p.Sites > f.Sites:
		return fault.Errorf(fault.Invalid, op, "sites", "copies at %d sites of %d: add a site, or ask for fewer", p.Sites, f.Sites)
	}
	if at := p.Spread(f.Sites); p.Level > f.room(at) {
		return fault.Errorf(fault.Invalid, op, "level", "%d copies at %d sites, which have %d nodes: ask for more sites, or fewer copies", p.Level, at, f.room(at))
	}
	return nil
}

// room is the number of nodes at some sites, the largest first.
func (f Figures) room(sites int) int {
	if f.PerSite == 0 {
		return f.Nodes / f.Sites * sites
	}
	return min(f.PerSite*sites, f.Nodes-(f.Sites-sites))
}
