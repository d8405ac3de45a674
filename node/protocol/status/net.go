package status

import (
	"fmt"
	"time"

	"cartwheel.dev/geo-config/ids"
)

// FindingKind says what the site audit found.
type FindingKind string

// The kinds of findings.
const (
	// SitesTogether: nodes of different sites are so near that they are one
	// failure domain.
	SitesTogether FindingKind = "sites_together"
	// SiteApart: nodes of one site are so far apart that it is not one place.
	SiteApart FindingKind = "site_apart"
)

// Finding is something that a node measured against what is declared, with the
// evidence.
type Finding struct {
	Kind      FindingKind `json:"kind"`
	Node      ids.Node    `json:"node"`
	Site      ids.Site    `json:"site"`
	Other     ids.Node    `json:"other"`
	OtherSite ids.Site    `json:"other_site"`
	// LeastNS is the least of so many samples; AgeNS is the newest one's.
	LeastNS time.Duration `json:"least_rtt_ns"`
	Samples int           `json:"samples"`
	AgeNS   time.Duration `json:"age_ns"`
}

// String says the finding in one sentence without an end.
func (f Finding) String() string {
	evidence := fmt.Sprintf("%s at %s and %s at %s are %v apart at the least, of %d samples, the last %v ago",
		f.Node.Short(), f.Site, f.Other.Short(), f.OtherSite, f.LeastNS.Round(time.Microsecond), f.Samples, f.AgeNS.Round(time.Second))
	if f.Kind == SiteApart {
		return "one site is not one place: " + evidence
	}
	return "two sites are one failure domain: " + evidence
}

// Coordinate is a position in milliseconds.
type Coordinate struct {
	Vector []float64 `json:"vector_ms"`
	Height float64   `json:"height_ms"`
	Error  float64   `json:"error"`
}

// Net is what one node knows of its distances (Net).
type Net struct {
	ID         ids.Node   `json:"id"`
	Site       ids.Site   `json:"site"`
	Coordinate Coordinate `json:"coordinate"`
	// Published is what the node's row says, and AgeNS since when; 0: not yet
	// since the node started.
	Published   Coordinate    `json:"published"`
	PublishedNS time.Duration `json:"published_age_ns"`
	Links       []Link        `json:"links"`
}

// Link is the way from the answering node to another one.
type Link struct {
	To   ids.Node `json:"to"`
	Site ids.Site `json:"site"`
	// Path is "direct", "local" (a Unix socket), "via ID", or empty: there is
	// no connection. PathNS is the round trip on it.
	Path   string        `json:"path"`
	PathNS time.Duration `json:"path_rtt_ns"`
	// MeasuredNS is smoothed and LeastNS the least of the last minutes; both
	// are of the direct way, as are Samples and AgeNS. Samples 0: never.
	MeasuredNS time.Duration `json:"measured_ns"`
	LeastNS    time.Duration `json:"least_ns"`
	Samples    uint64        `json:"samples"`
	AgeNS      time.Duration `json:"age_ns"`
	// PredictedNS is by coordinates; 0: the other's is not known.
	PredictedNS time.Duration `json:"predicted_ns"`
	// Probe is what a measurement made for this answer found, in order; Error
	// says why there is none.
	ProbeNS []time.Duration `json:"probe_ns,omitempty"`
	Error   string          `json:"error,omitempty"`
}
