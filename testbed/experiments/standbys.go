package experiments

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/load"
	"cartwheel.dev/testbed/topology"
)

func standbys() experiment.Experiment {
	return experiment.Experiment{
		Name:    "standbys",
		Summary: "what each standby more costs: durable creates in slices of one to five members, in one place and over a wide area",
		Settings: []experiment.Setting{
			{Name: "rtts", Default: "0,20", Help: "round trips between the members' sites, ms, each in a lab of its own; 0: all in one place (the first in the short form)"},
			{Name: "levels", Default: "1,2,3,4,5", Help: "members of the slice, one after the other, up to five (the first and the last in the short form)"},
			{Name: "workers", Default: "16", Help: "workers of the client, which is beside the active (4 in the short form)"},
			{Name: "seconds", Default: "10", Help: "how long they create, each time (1 in the short form)"},
			{Name: "rounds", Default: "3", Help: "times that each number of members has its turn (1 in the short form)"},
		},
		Run: runStandbys,
	}
}

// standbysMost is how many nodes there are, and so members.
const standbysMost = 5

// standbysPlan is what is done, and over what.
type standbysPlan struct {
	rtts            []float64
	levels          []int
	workers, rounds int
	length          time.Duration
}

func planStandbys(env *experiment.Env) (standbysPlan, error) {
	const op fault.Op = "experiments.planStandbys"
	var p standbysPlan
	var err error
	if p.rtts, err = numbers(env.Text("rtts"), 0, 1000); err != nil {
		return p, err
	}
	levels, err := numbers(env.Text("levels"), 1, standbysMost)
	if err != nil {
		return p, err
	}
	for _, l := range levels {
		if l != float64(int(l)) {
			return p, fault.Errorf(fault.Usage, op, "levels", "%g is no whole number", l)
		}
		p.levels = append(p.levels, int(l))
	}
	v := map[string]float64{}
	for _, name := range []string{"workers", "seconds", "rounds"} {
		if v[name], err = env.Number(name); err != nil {
			return p, err
		}
		if !(v[name] >= 1 && v[name] <= 3600) {
			return p, fault.Errorf(fault.Usage, op, name, "%s=%s is not from 1 to 3600", name, env.Text(name))
		}
	}
	slices.Sort(p.levels)
	p.levels = slices.Compact(p.levels)
	if env.Short {
		p.rtts, p.levels = p.rtts[:1], slices.Compact([]int{p.levels[0], p.levels[len(p.levels)-1]})
		v["workers"], v["seconds"], v["rounds"] = min(v["workers"], 4), 1, 1
	}
	p.workers, p.rounds, p.length = int(v["workers"]), int(v["rounds"]), time.Duration(v["seconds"]*float64(time.Second))
	return p, nil
}

// standbysSite is where the active and the client are.
const standbysSite = "s1"

// topology has five nodes: in one place, or each at a site of its own.
func (p standbysPlan) topology(rtt float64) (*topology.Topology, error) {
	if rtt == 0 {
		return described("standbys", fmt.Sprintf("name: standbys\nmounts: none\nsites:\n  - {name: %s, nodes: %d}\n", standbysSite, standbysMost))
	}
	var y strings.Builder
	y.WriteString("name: standbys\nmounts: none\nsites:\n")
	for i := range standbysMost {
		fmt.Fprintf(&y, "  - name: s%d\n", i+1)
	}
	fmt.Fprintf(&y, "wan: {rtt: %g ms}\n", rtt)
	return described("standbys", y.String())
}

// standbysRow is all turns of one number of members.
type standbysRow struct {
	RTT    float64          `json:"rtt_ms"`
	Level  int              `json:"members"`
	Rounds []load.BoxResult `json:"rounds"`
}

// rate is the middle one of the turns' creates a second.
func (r standbysRow) rate() float64 {
	var all []float64
	for _, e := range r.Rounds {
		all = append(all, float64(len(e.Create))*1e6/float64(e.Ended-e.Began))
	}
	return median(all)
}

// creates are the times of all turns' creates, in milliseconds.
func (r standbysRow) creates() (out []float64) {
	for _, e := range r.Rounds {
		out = append(out, e.Create...)
	}
	return out
}

// failed counts the creates that ended with an error, and lists what was lost.
func (r standbysRow) failed() (n int, lost []string) {
	for _, e := range r.Rounds {
		n, lost = n+e.Failed, append(lost, e.Lost...)
	}
	return n, lost
}

func runStandbys(ctx context.Context, env *experiment.Env) error {
	p, err := planStandbys(env)
	if err != nil {
		return err
	}
	t, err := p.topology(p.rtts[0])
	if err != nil {
		return err
	}
	f, err := env.Folder("standbys", t)
	if err != nil {
		return err
	}
	var rows []standbysRow
	var o outcome
	for _, rtt := range p.rtts {
		t, err := p.topology(rtt)
		if err != nil {
			return err
		}
		var got []standbysRow
		out, err := withLab(ctx, env, f, t, func(ctx context.Context, b *bed) (err error) {
			got, err = p.in(ctx, b, rtt)
			b.final = slices.ContainsFunc(got, func(r standbysRow) bool { _, lost := r.failed(); return len(lost) > 0 })
			return err
		})
		if err != nil {
			return err
		}
		rows = append(rows, got...)
		o.add(fmt.Sprintf("%g ms", rtt), out)
	}
	r := standbysReport(p, rows)
	o.mark(&r)
	if err := f.Finish(r, env.Out); err != nil {
		return err
	}
	for _, row := range rows {
		if _, lost := row.failed(); len(lost) > 0 {
			return fault.Errorf(fault.Corrupt, "experiments.runStandbys", fmt.Sprint(row.Level), "%d acknowledged creates do not show: %s", len(lost), lost[0])
		}
	}
	return nil
}

// in has every number of members take its turn in one lab, round by round, so that what
// changes meanwhile on the machine meets all of them.
func (p standbysPlan) in(ctx context.Context, b *bed, rtt float64) ([]standbysRow, error) {
	at, err := b.host(b.Topology().Hosts[0])
	if err != nil {
		return nil, err
	}
	var rows []standbysRow
	for _, level := range p.levels {
		cues := fmt.Sprintf("/.Site=%s/.RepLevel=%d/.KeepTogether", standbysSite, level)
		if err := at.work(ctx, nil, append(p.words("make", at, level, b.env.Seed), "--cues", cues)...); err != nil {
			return nil, err
		}
		rows = append(rows, standbysRow{RTT: rtt, Level: level})
	}
	for round := range p.rounds {
		for i := range rows {
			r := &rows[i]
			b.say("standbys: %g ms, %d members, round %d", rtt, r.Level, round+1)
			var got load.BoxResult
			words := append(p.words("work", at, r.Level, b.env.Seed), "--worker", fmt.Sprintf("round-%d", round+1), "--workers", strconv.Itoa(p.workers), "--for", p.length.String())
			if err := at.work(ctx, &got, words...); err != nil {
				return nil, err
			}
			if got.Failed > 0 {
				b.say("standbys: %d creates failed, the first with: %s", got.Failed, got.First)
			}
			r.Rounds = append(r.Rounds, got)
		}
	}
	return rows, nil
}

// words are those of the work: creates alone, of 4 kB, in ordinary directories.
func (p standbysPlan) words(way string, at place, level int, seed uint64) []string {
	return []string{
		"volumes", way, "--contact", at.contact, "--site", at.site, "--folder", fmt.Sprintf("level-%d", level), "--plain", "--sizes", string(load.SmallSizesBox),
		"--boxes", strconv.Itoa(p.workers), "--planted", "1", "--create", "1", "--read", "0", "--delete", "0", "--seed", strconv.FormatUint(seed, 10),
	}
}
