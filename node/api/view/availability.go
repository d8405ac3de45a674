package view

import (
	"math"
	"time"

	"cartwheel.dev/node/availability"
)

// AvailabilityRequest asks what to expect of a slice with a policy.
type AvailabilityRequest struct {
	Level int `json:"level" minimum:"1" maximum:"16"`
	Sites int `json:"sites,omitempty" minimum:"0" maximum:"16" doc:"At how many sites; 0: as many as there are, up to the level."`
	// StoredBytes is the size of the slice that is asked about.
	StoredBytes int64               `json:"stored_bytes,omitempty" minimum:"0" doc:"Size of the slice; absent: as large as the others."`
	Assumptions AvailabilityFigures `json:"assumptions,omitempty" doc:"What to assume; what is absent is as the nodes have it, or a default."`
}

// AvailabilityFigures are assumptions. An answer has all of them.
type AvailabilityFigures struct {
	NodeFailuresPerYear *float64 `json:"node_failures_per_year,omitempty" minimum:"0" maximum:"1000000" doc:"How often a node goes and comes back with its data."`
	NodeOutageMS        *int64   `json:"node_outage_ms,omitempty" minimum:"0" maximum:"315360000000"`
	NodeLossesPerYear   *float64 `json:"node_losses_per_year,omitempty" minimum:"0" maximum:"1000000" doc:"How often a node is lost with its data, its disks included."`
	SiteOutagesPerYear  *float64 `json:"site_outages_per_year,omitempty" minimum:"0" maximum:"1000000"`
	SiteOutageMS        *int64   `json:"site_outage_ms,omitempty" minimum:"0" maximum:"315360000000"`
	SiteLossesPerYear   *float64 `json:"site_losses_per_year,omitempty" minimum:"0" maximum:"1000000" doc:"How often a site is lost with all its data."`
	RepairMS            *int64   `json:"repair_ms,omitempty" minimum:"0" maximum:"315360000000" doc:"Until there is a machine in place of a lost one."`
	OperatorMS          *int64   `json:"operator_ms,omitempty" minimum:"0" maximum:"315360000000" doc:"Until a person decides about a slice that cannot go on by itself."`
	LeaseMS             *int64   `json:"lease_ms,omitempty" minimum:"0" maximum:"315360000000"`
	TakeoverMS          *int64   `json:"takeover_ms,omitempty" minimum:"0" maximum:"315360000000" doc:"Until another member is the active."`
	ResynchronizationMS *int64   `json:"resynchronization_ms,omitempty" minimum:"0" maximum:"315360000000" doc:"Until a member that is back has caught up."`
	FailedAfterMS       *int64   `json:"failed_after_ms,omitempty" minimum:"0" maximum:"315360000000"`
	CopyBytesPerS       *float64 `json:"copy_bytes_per_s,omitempty" minimum:"0" doc:"What one node sends or takes of new copies."`
}

// Availability is what to expect of one slice in a year.
type Availability struct {
	Level      int     `json:"level"`
	Sites      int     `json:"sites" doc:"At how many sites the copies are."`
	DowntimeMS float64 `json:"downtime_ms" doc:"For how long it does not serve: pauses and waits."`
	PausesMS   float64 `json:"pauses_ms" doc:"Takeovers, and standbys that are taken out."`
	WaitsMS    float64 `json:"waits_ms" doc:"Until members are back."`
	Takeovers  float64 `json:"takeovers"`
	Lost       float64 `json:"lost" doc:"How likely no copy is left."`
	Outdated   float64 `json:"outdated" doc:"How likely only an older copy is left."`
	LostBytes  float64 `json:"lost_bytes" doc:"How many of the slice's bytes are lost, in the mean."`
	CopiedMS   int64   `json:"copied_ms" doc:"How long after a node's loss its slices have their copies again."`
	// Nodes and the sites and slices there are are the cluster's.
	Nodes       int                 `json:"nodes"`
	SitesThere  int                 `json:"sites_there"`
	Slices      int                 `json:"slices"`
	Assumptions AvailabilityFigures `json:"assumptions"`
}

// On puts the figures in the place of others.
func (a AvailabilityFigures) On(f *availability.Figures) {
	for _, x := range []struct {
		given *float64
		into  *float64
	}{
		{a.NodeFailuresPerYear, &f.NodeFailures}, {a.NodeLossesPerYear, &f.NodeLosses}, {a.SiteOutagesPerYear, &f.SiteOutages},
		{a.SiteLossesPerYear, &f.SiteLosses}, {a.CopyBytesPerS, &f.CopyRate},
	} {
		if x.given != nil {
			*x.into = *x.given
		}
	}
	if a.NodeLossesPerYear != nil {
		f.DiskLosses = 0 // the given figure has them
	}
	for _, x := range []struct {
		given *int64
		into  *time.Duration
	}{
		{a.NodeOutageMS, &f.NodeOutage}, {a.SiteOutageMS, &f.SiteOutage}, {a.RepairMS, &f.Repair}, {a.OperatorMS, &f.Operator},
		{a.LeaseMS, &f.Lease}, {a.TakeoverMS, &f.Takeover}, {a.ResynchronizationMS, &f.Resynchronization}, {a.FailedAfterMS, &f.FailedAfter},
	} {
		if x.given != nil {
			*x.into = time.Duration(*x.given) * time.Millisecond
		}
	}
}

// figuresOf shows what a prediction rests on.
func figuresOf(f *availability.Figures) AvailabilityFigures {
	ms := func(d time.Duration) *int64 { return new(d.Milliseconds()) }
	return AvailabilityFigures{
		NodeFailuresPerYear: new(f.NodeFailures), NodeOutageMS: ms(f.NodeOutage), NodeLossesPerYear: new(f.NodeLosses + float64(f.Disks)*f.DiskLosses),
		SiteOutagesPerYear: new(f.SiteOutages), SiteOutageMS: ms(f.SiteOutage), SiteLossesPerYear: new(f.SiteLosses),
		RepairMS: ms(f.Repair), OperatorMS: ms(f.Operator), LeaseMS: ms(f.Lease), TakeoverMS: ms(f.Takeover),
		ResynchronizationMS: ms(f.Resynchronization), FailedAfterMS: ms(f.FailedAfter), CopyBytesPerS: new(f.CopyRate),
	}
}

// OfEstimate shows an estimate of a slice of so many bytes.
func OfEstimate(e *availability.Estimate, f *availability.Figures, stored int64, copied time.Duration) Availability {
	ms := func(d time.Duration) float64 { return math.Round(float64(d)/1e3) / 1e3 }
	return Availability{
		Level: e.Policy.Level, Sites: e.Policy.Spread(f.Sites), DowntimeMS: ms(e.Downtime()), PausesMS: ms(e.Pauses), WaitsMS: ms(e.Waits),
		Takeovers: e.Takeovers, Lost: e.Lost, Outdated: e.Outdated, LostBytes: e.Lost * float64(stored), CopiedMS: copied.Milliseconds(),
		Nodes: f.Nodes, SitesThere: f.Sites, Slices: f.Slices, Assumptions: figuresOf(f),
	}
}
