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
			{Name: "rtts", Default: "0,20", Help: "round trips between the members' sites, ms, each in a lab of its own; 0: all in one place (the last in the short form)"},
			{Name: "levels", Default: "1,2,3,4,5", Help: "members of the slice, one after the other, up to five (the first and the last in the short form)"},
			{Name: "actives", Default: "1,2,3", Help: "slices of three members, each at home at a site of its own with a client there, at work at once, up to five; not in one place (the first and the last in the short form)"},
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
	levels, actives []int
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
	for name, into := range map[string]*[]int{"levels": &p.levels, "actives": &p.actives} {
		list, err := numbers(env.Text(name), 1, standbysMost)
		if err != nil {
			return p, err
		}
		for _, l := range list {
			if l != float64(int(l)) {
				return p, fault.Errorf(fault.Usage, op, name, "%g is no whole number", l)
			}
			*into = append(*into, int(l))
		}
		slices.Sort(*into)
		*into = slices.Compact(*into)
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
	if env.Short {
		ends := func(l []int) []int { return slices.Compact([]int{l[0], l[len(l)-1]}) }
		p.rtts, p.levels, p.actives = p.rtts[len(p.rtts)-1:], ends(p.levels), ends(p.actives)
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
	var actives []activesRow
	var o outcome
	for _, rtt := range p.rtts {
		t, err := p.topology(rtt)
		if err != nil {
			return err
		}
		var got []standbysRow
		var more []activesRow
		out, err := withLab(ctx, env, f, t, func(ctx context.Context, b *bed) (err error) {
			if got, err = p.in(ctx, b, rtt); err == nil && rtt > 0 {
				more, err = p.moreActives(ctx, b, rtt)
			}
			b.final = lostOf(got, more) != ""
			return err
		})
		if err != nil {
			return err
		}
		rows, actives = append(rows, got...), append(actives, more...)
		o.add(fmt.Sprintf("%g ms", rtt), out)
	}
	r := standbysReport(p, rows, actives)
	o.mark(&r)
	if err := f.Finish(r, env.Out); err != nil {
		return err
	}
	if lost := lostOf(rows, actives); lost != "" {
		return fault.E(fault.Corrupt, "experiments.runStandbys", lost, "was acknowledged and does not show")
	}
	return nil
}

// lostOf names one create that was acknowledged and does not show, if there is any.
func lostOf(rows []standbysRow, actives []activesRow) string {
	for _, r := range rows {
		if _, lost := r.failed(); len(lost) > 0 {
			return fmt.Sprintf("%d members: %s", r.Level, lost[0])
		}
	}
	for _, r := range actives {
		for _, turn := range r.Rounds {
			if len(turn.Lost) > 0 {
				return fmt.Sprintf("%d actives: %s", r.Clients, turn.Lost[0])
			}
		}
	}
	return ""
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
		if err := at.work(ctx, nil, append(p.words("make", at, levelFolder(level), b.env.Seed), "--cues", cues)...); err != nil {
			return nil, err
		}
		rows = append(rows, standbysRow{RTT: rtt, Level: level})
	}
	for round := range p.rounds {
		for i := range rows {
			r := &rows[i]
			b.say("standbys: %g ms, %d members, round %d", rtt, r.Level, round+1)
			var got load.BoxResult
			words := append(p.words("work", at, levelFolder(r.Level), b.env.Seed), "--worker", fmt.Sprintf("round-%d", round+1), "--workers", strconv.Itoa(p.workers), "--for", p.length.String())
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

// levelFolder is the folder of the slice with so many members.
func levelFolder(level int) string { return fmt.Sprintf("level-%d", level) }

// words are those of the work: creates alone, of 4 kB, in ordinary directories.
func (p standbysPlan) words(way string, at place, folder string, seed uint64) []string {
	return []string{
		"volumes", way, "--contact", at.contact, "--site", at.site, "--folder", folder, "--plain", "--sizes", string(load.SmallSizesBox),
		"--boxes", strconv.Itoa(p.workers), "--planted", "1", "--create", "1", "--read", "0", "--delete", "0", "--seed", strconv.FormatUint(seed, 10),
	}
}
