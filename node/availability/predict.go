package availability

import "time"

// Estimate is what is to be expected of one policy in a year. Expected numbers are
// of one slice where nothing else is said.
type Estimate struct {
	Policy Policy `json:"policy"`
	// Pauses is the time that a slice waits for takeovers and for standbys that are
	// taken out, and Waits the time that it waits until members are back.
	Pauses time.Duration `json:"pauses_ns"`
	Waits  time.Duration `json:"waits_ns"`
	// Takeovers is how often one is needed.
	Takeovers float64 `json:"takeovers_per_year"`
	// Lost is how likely no copy is left of a slice. Outdated is how likely only an
	// older copy is left: what was written since that one went is lost.
	Lost     float64 `json:"lost_per_year"`
	Outdated float64 `json:"outdated_per_year"`
	// LostBytes is how many bytes of all slices are lost, in the mean.
	LostBytes float64 `json:"lost_bytes_per_year"`
	// Available is the share of time for which a slice serves.
	Available float64 `json:"available"`
}

// Downtime is all the time that a slice does not serve.
func (e Estimate) Downtime() time.Duration { return e.Pauses + e.Waits }

// Predict says what is to be expected of slices with a policy. Errors: Invalid,
// where the figures are wrong, where they do not fit the policy, or where failures
// are not rare.
func Predict(f Figures, p Policy) (Estimate, error) {
	g, err := f.Group(p)
	if err != nil {
		return Estimate{}, err
	}
	e := Estimate{Policy: p, Takeovers: g.takeovers() * seconds, Lost: min(1, g.Lost()*seconds), Outdated: min(1, g.Outdated()*seconds)}
	if p.Level > 1 {
		e.Pauses = duration(g.takeovers()*seconds*f.Takeover.Seconds() + g.removals()*seconds*f.Lease.Seconds())
	}
	e.Waits = duration(g.Waiting() * seconds)
	e.LostBytes = e.Lost * float64(f.Slices) * float64(f.SliceBytes)
	e.Available = 1 - float64(e.Downtime())/float64(Year)
	return e, nil
}

func duration(s float64) time.Duration {
	return min(Year, time.Duration(s*float64(time.Second)))
}

// Waiting is the share of time for which too few current copies can be reached.
func (g Group) Waiting() float64 {
	needed, share := Needs(g.Level()), 0.0
	for _, e := range g.entries(needed) {
		share += e.rate * g.waits(e, needed)
	}
	return share
}

// Lost is how often a second the last copy goes for good.
func (g Group) Lost() float64 {
	g.Node.Rate, g.Site.Rate = 0, 0 // what comes back is not lost
	rate := 0.0
	for _, e := range g.entries(1) {
		rate += e.rate
	}
	return rate
}

// Outdated is how often a second the last current copy goes for good while an
// older one is still to come back.
func (g Group) Outdated() float64 {
	needed, rate := Needs(g.Level()), 0.0
	for _, e := range g.entries(needed) {
		switch {
		case !e.last.isLoss() || !e.to.returns():
		case e.to.up == 0:
			rate += e.rate
		default: // one current copy is left, and could go before another is back
			rate += e.rate * (g.NodeLoss.Rate + g.SiteLoss.Rate) * (g.waits(e, needed) + g.Node.Behind)
		}
	}
	return rate
}

// takeovers is how often a second the active goes.
func (g Group) takeovers() float64 {
	if g.Level() == 1 {
		return 0
	}
	return g.Node.Rate + g.NodeLoss.Rate + g.Site.Rate + g.SiteLoss.Rate
}

// removals is how often a second a standby goes, or a site with standbys alone.
func (g Group) removals() float64 {
	return float64(g.Level()-1)*(g.Node.Rate+g.NodeLoss.Rate) + float64(len(g.Layout)-1)*(g.Site.Rate+g.SiteLoss.Rate)
}
