package experiments

import (
	"context"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/reliability"
)

// BeanFS's set-up of section 6, and what its text has elsewhere: a transient failure
// counts as permanent after 30 minutes, and 27,287 volumes were copied in 10.
const (
	beanServers   = 200
	beanVolumes   = 9_000_000
	beanPermanent = 1.5e-8
	beanHarshest  = 19e-8
	beanDead      = 0.0002 / 100 // at the harshest rates, in two years
	beanYears     = 2
	beanCopied    = (30 + 10) * 60.0 // seconds
)

// CFS's set-up of section 5.1.
const (
	cfsFails, cfsRepairs = 0.001, 0.9
	cfsFactor            = 135_601 // of one server's time, with two standbys
)

// deadRow is BeanFS's set-up at one pair of rates.
type deadRow struct {
	reliability.Volume
	// Paper and Overlap are shares of the volumes that die, by the formulas.
	Paper   float64              `json:"paper"`
	Overlap float64              `json:"overlap"`
	Played  reliability.Interval `json:"played"`
}

// recoveryRow is the harshest pair with one set of recoveries.
type recoveryRow struct {
	Name string `json:"name"`
	deadRow
	Paths    [4]float64              `json:"paths"`
	Overlaps [4]float64              `json:"overlaps"`
	Plays    [4]reliability.Interval `json:"plays"`
}

// scatterRow is what one scatter width makes of the harshest pair of rates.
type scatterRow struct {
	Scatter   int                  `json:"scatter"`
	Permanent float64              `json:"permanent_recovery_s"`
	PerGroup  float64              `json:"volumes_of_a_group"`
	Hit       reliability.Interval `json:"share_of_runs_with_dead_volumes"`
	Overlap   float64              `json:"dead_volumes_by_the_overlap"`
	Dead      reliability.Interval `json:"dead_volumes"`
}

// chainRow is CFS's group with some standbys.
type chainRow struct {
	Standbys int     `json:"standbys"`
	Factor   float64 `json:"times_one_server"`
	Gone     float64 `json:"share_of_time_without_a_server"`
}

// ruleRow is one layout, played by the rules of a replica group.
type ruleRow struct {
	Layout  []int                `json:"layout"`
	What    string               `json:"what"`
	Formula float64              `json:"formula"`
	Played  reliability.Interval `json:"played"`
}

// paperRows is all that is played beside the papers.
type paperRows struct {
	Inferred   float64       `json:"inferred_transient_recovery_s"`
	Dead       []deadRow     `json:"dead"`
	Recoveries []recoveryRow `json:"recoveries"`
	Scatters   []scatterRow  `json:"scatters"`
	Chains     []chainRow    `json:"chains"`
	Rules      []ruleRow     `json:"rules"`
}

// beanVolume is a volume at BeanFS's rates.
func beanVolume(transient, permanent, back, copied float64) reliability.Volume {
	return reliability.Volume{Transient: reliability.Failures{Rate: transient, Recovery: back}, Permanent: reliability.Failures{Rate: permanent, Recovery: copied}}
}

func beanFleet(v reliability.Volume, scatter int) reliability.Fleet {
	return reliability.Fleet{Servers: beanServers, Volumes: beanVolumes, Replicas: 3, Length: beanYears * reliability.Year, Volume: v, Scatter: scatter}
}

func playPapers(ctx context.Context, p availabilityPlan) (*paperRows, error) {
	var rows paperRows
	var ok bool
	rows.Inferred, ok = beanVolume(beanHarshest, beanPermanent, 0, beanCopied).TransientFor(beanDead, beanYears*reliability.Year)
	if !ok {
		return nil, fault.E(fault.Other, "experiments.playPapers", "BeanFS", "no recovery from transient failures gives its figure")
	}
	for _, play := range []func(context.Context, availabilityPlan) error{rows.playDead, rows.playRecoveries, rows.playScatters, rows.playRules} {
		if err := play(ctx, p); err != nil {
			return nil, err
		}
	}
	one := reliability.Group(1, cfsFails, cfsRepairs).TimeToZero()
	for standbys := range 5 {
		c := reliability.Group(1+standbys, cfsFails, cfsRepairs)
		rows.Chains = append(rows.Chains, chainRow{standbys, c.TimeToZero() / one, c.Shares()[0]})
	}
	return &rows, nil
}

// playDead goes through the rates of the paper's figure.
func (r *paperRows) playDead(ctx context.Context, p availabilityPlan) error {
	for _, permanent := range []float64{1e-8, beanPermanent} {
		for transient := 1; transient <= 19; transient += 3 {
			row, _, err := playVolume(ctx, p, beanVolume(float64(transient)*1e-8, permanent, r.Inferred, beanCopied))
			if err != nil {
				return err
			}
			r.Dead = append(r.Dead, row)
		}
	}
	return nil
}

// playVolume plays BeanFS's servers with one set of rates.
func playVolume(ctx context.Context, p availabilityPlan, v reliability.Volume) (deadRow, []reliability.Deaths, error) {
	f := beanFleet(v, 0)
	row := deadRow{Volume: v, Paper: reliability.Dead(v.Paper().Sum(), f.Length), Overlap: reliability.Dead(v.Overlap().Sum(), f.Length)}
	runs, err := played(ctx, p, f.Run)
	// What has a chance is which groups are hit; each has as many volumes.
	row.Played = counted(runs, func(d reliability.Deaths) int { return d.Hits() }).Times(f.PerGroup() / beanVolumes)
	return row, runs, err
}

// playRecoveries compares BeanFS's recoveries with the operator's, at the harshest
// rates.
func (r *paperRows) playRecoveries(ctx context.Context, p availabilityPlan) error {
	g, err := p.Group(p.policies[len(p.policies)-1])
	if err != nil {
		return err
	}
	ours := p.NodeOutage.Seconds() + p.Resynchronization.Seconds()
	for _, x := range []recoveryRow{
		{Name: "BeanFS's", deadRow: deadRow{Volume: beanVolume(beanHarshest, beanPermanent, r.Inferred, beanCopied)}},
		{Name: "as given here", deadRow: deadRow{Volume: beanVolume(beanHarshest, beanPermanent, ours, g.NodeLoss.Replaced)}},
		{Name: "as given here, an outage as long as BeanFS's", deadRow: deadRow{Volume: beanVolume(beanHarshest, beanPermanent, r.Inferred, g.NodeLoss.Replaced)}},
	} {
		row, runs, err := playVolume(ctx, p, x.Volume)
		if err != nil {
			return err
		}
		x.deadRow = row
		paths, overlaps := x.Volume.Paper(), x.Volume.Overlap()
		for k := range x.Plays {
			x.Paths[k], x.Overlaps[k] = reliability.Dead(paths[k], beanYears*reliability.Year), reliability.Dead(overlaps[k], beanYears*reliability.Year)
			x.Plays[k] = counted(runs, func(d reliability.Deaths) int { return d.Groups[k] }).Times(beanFleet(x.Volume, 0).PerGroup() / beanVolumes)
		}
		r.Recoveries = append(r.Recoveries, x)
	}
	return nil
}

// playScatters bounds the servers with which one shares volumes. Then fewer can
// copy what a lost one held: the 10 minutes of the copies are of 199 that share.
func (r *paperRows) playScatters(ctx context.Context, p availabilityPlan) error {
	for _, scatter := range []int{0, 64, 16, 4, 2} {
		copied := beanCopied
		if scatter > 0 {
			copied = beanCopied - 600 + 600*float64(beanServers-1)/float64(scatter)
		}
		f := beanFleet(beanVolume(beanHarshest, beanPermanent, r.Inferred, copied), scatter)
		row := scatterRow{Scatter: scatter, Permanent: copied, PerGroup: f.PerGroup(), Overlap: reliability.Dead(f.Overlap().Sum(), f.Length) * beanVolumes}
		runs, err := played(ctx, p, f.Run)
		if err != nil {
			return err
		}
		row.Hit = counted(runs, func(d reliability.Deaths) int { return min(1, d.Dead()) })
		row.Dead = counted(runs, func(d reliability.Deaths) int { return d.Hits() }).Times(row.PerGroup)
		r.Scatters = append(r.Scatters, row)
	}
	return nil
}

// playRules plays the rules of a replica group beside the formulas of the policies.
func (r *paperRows) playRules(ctx context.Context, p availabilityPlan) error {
	const length = 20 * reliability.Year
	for _, layout := range [][]int{{1}, {2}, {1, 1}, {3}, {2, 1}, {1, 1, 1}} {
		g := reliability.Frail(layout...)
		runs, err := played(ctx, p, func(ctx context.Context, seed uint64) (reliability.Slice, error) {
			return reliability.Play(ctx, g, length, seed)
		})
		if err != nil {
			return err
		}
		years := length / reliability.Year
		r.Rules = append(r.Rules,
			ruleRow{layout, "minutes that it waits", g.Waiting() * reliability.Year / 60, reliability.Mean(figuresOf(runs, func(s reliability.Slice) float64 { return s.Waiting / 60 / years }), availabilityConfidence)},
			ruleRow{layout, "losses", g.Lost() * reliability.Year, counted(runs, func(s reliability.Slice) int { return s.Lost }).Times(1 / years)},
			ruleRow{layout, "only an older copy left", g.Outdated() * reliability.Year, counted(runs, func(s reliability.Slice) int { return s.Outdated }).Times(1 / years)})
	}
	return nil
}
