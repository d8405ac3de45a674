// Package drill says what a drill is: a Plan, which nodes carry out for a bounded
// time, and the Record of one that is over. The records are a short list in
// geo-config, which Read and Add keep. The package fails nothing itself: package
// outage does so at each node. Its types are plain values; all of it may be called
// from anywhere.
package drill

import (
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// Kind says what a drill does to the cluster.
type Kind string

// The kinds of drills.
const (
	// KillActive has Plan.Node behave as if its process had died.
	KillActive Kind = "kill-active"
	// Cut has the nodes and clients of Plan.Site reach no other site.
	Cut Kind = "cut"
	// GeoConfig has all nodes behave as if geo-config were away.
	GeoConfig Kind = "geo-config"
)

// Limits of a drill.
const (
	// Longest is for how long a drill may last.
	Longest = 5 * time.Minute
	// Default is how long it lasts unless the order says otherwise.
	Default = 15 * time.Second
)

// Plan is what the nodes of a cluster are to do together. All nodes get the same.
type Plan struct {
	// ID names the drill: when it began, and some random letters.
	ID   string
	Kind Kind
	Node ids.Node // of KillActive
	Site ids.Site // of Cut
	// For is how long each node goes on, by its own clock, if nothing ends it before.
	For time.Duration
}

// Check refuses a plan that makes no sense. The error is Invalid.
func (p *Plan) Check() error {
	const op fault.Op = "drill.Check"
	wrong := func(text string) error { return fault.E(fault.Invalid, op, p.ID, text) }
	switch {
	case p.ID == "" || len(p.ID) > 64:
		return wrong("a drill needs an ID of 64 bytes at most")
	case p.For <= 0 || p.For > Longest:
		return fault.Errorf(fault.Invalid, op, p.ID, "a drill lasts %v at most, and longer than nothing; this one would last %v", Longest, p.For)
	}
	switch p.Kind {
	case KillActive:
		if p.Node == "" || p.Site != "" {
			return wrong("a drill that kills the active needs a node, and no site")
		}
	case Cut:
		if p.Site == "" || p.Node != "" {
			return wrong("a drill that cuts a site off needs a site, and no node")
		}
	case GeoConfig:
		if p.Site != "" || p.Node != "" {
			return wrong("a drill without geo-config needs neither a node nor a site")
		}
	default:
		return fault.Errorf(fault.NotSupported, op, p.ID, "this node knows no drill of the kind %q: update its program", p.Kind)
	}
	return nil
}

// Stop says why a drill ended.
type Stop string

// The reasons. All but Time are stop conditions that came true.
const (
	// Time: it lasted as long as it was to.
	Time Stop = "time"
	// Interrupted: its commander ended it.
	Interrupted Stop = "interrupted"
	// Pause: the probe waited longer than it was to.
	Pause Stop = "pause"
	// Wrong: the probe met an error that is no pause, or read wrong data.
	Wrong Stop = "wrong"
	// Members: a slice had no normal member left.
	Members Stop = "members"
	// Failing: a node failed that was not to, or lost its order.
	Failing Stop = "node"
)

// Record tells of a drill that is over. Times are in milliseconds, but for AtNS.
type Record struct {
	ID   string `json:"id"`
	Kind Kind   `json:"kind"`
	// Path and Slice are those of KillActive.
	Path  string    `json:"path,omitempty"`
	Slice ids.Slice `json:"slice,omitempty"`
	Node  ids.Node  `json:"node,omitempty"`
	Site  ids.Site  `json:"site,omitempty"`
	// By is the administrator who ordered it, as the node knows it that keeps the
	// record.
	By string `json:"by"`
	// AtNS is when it began, in nanoseconds since 1970, by the commander's clock.
	AtNS     int64 `json:"at_ns"`
	ForMS    int64 `json:"for_ms"`    // as it was ordered
	LastedMS int64 `json:"lasted_ms"` // as it came out
	// Stopped says why it ended, and Why the same for people.
	Stopped Stop   `json:"stopped"`
	Why     string `json:"why"`
	// WritePauseMS and ReadPauseMS are the longest pauses of all streams: the
	// recovery time (RTO).
	WritePauseMS int64 `json:"write_pause_ms"`
	ReadPauseMS  int64 `json:"read_pause_ms"`
	// Acknowledged counts the writes that were acknowledged, and Lost those of them
	// that were missing or wrong afterwards: the recovery point (RPO).
	Acknowledged int `json:"acknowledged"`
	Lost         int `json:"lost"`
	// WholeMS is how long after the end every slice had its copies again; -1: it had
	// not when the commander stopped looking.
	WholeMS int64    `json:"whole_ms"`
	Streams []Stream `json:"streams"`
}

// Stream is what the probe's client at one site saw.
type Stream struct {
	Site         ids.Site `json:"site"`
	WritePauseMS int64    `json:"write_pause_ms"`
	ReadPauseMS  int64    `json:"read_pause_ms"`
	// UsualMS is the longest pause of writes before the drill.
	UsualMS      int64 `json:"usual_ms"`
	Acknowledged int   `json:"acknowledged"`
	Reads        int   `json:"reads"`
	Lost         int   `json:"lost"`
}
