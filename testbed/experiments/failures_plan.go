package experiments

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/load"
	"cartwheel.dev/testbed/topology"
)

// failuresKind is what happens to the members.
type failuresKind string

// The failures. In each the node comes back. Of two, the second member fails before the
// first is back: a slice of three then stops until it is, one of five goes on.
const (
	failuresKill    failuresKind = "kill"
	failuresPause   failuresKind = "pause"
	failuresUnplug  failuresKind = "unplug"
	failuresRestart failuresKind = "restart"
	failuresTwo     failuresKind = "two"
	failuresOfFive  failuresKind = "two-of-five"
)

// failuresAll names all of them.
const failuresAll = "kill,pause,unplug,restart,two,two-of-five"

func failuresKinds() []failuresKind {
	return []failuresKind{failuresKill, failuresPause, failuresUnplug, failuresRestart, failuresTwo, failuresOfFive}
}

// level is how many members the slice has.
func (k failuresKind) level() int {
	if k == failuresOfFive {
		return failuresSites
	}
	return 3
}

// hitsTwo reports whether a second member fails.
func (k failuresKind) hitsTwo() bool { return k == failuresTwo || k == failuresOfFive }

// failuresPlan is what fails, and when.
type failuresPlan struct {
	leases            []time.Duration
	kinds             []failuresKind
	rtt               float64
	calm, away, after time.Duration
	workers, bytes    int
	limit             time.Duration // of the wait for all members to be normal
}

// failuresSites is how many sites there are, and failuresHome where the actives are.
const (
	failuresSites = 5
	failuresHome  = "s1"
)

func planFailures(env *experiment.Env) (failuresPlan, error) {
	const op fault.Op = "experiments.planFailures"
	p := failuresPlan{limit: 2 * time.Minute}
	leases, err := numbers(env.Text("leases"), 0.5, 30)
	if err != nil {
		return p, err
	}
	v := map[string]float64{}
	for _, name := range []string{"rtt", "calm", "away", "after", "workers", "bytes"} {
		if v[name], err = env.Number(name); err != nil {
			return p, err
		}
		if !(v[name] > 0 && v[name] <= 1e6) {
			return p, fault.Errorf(fault.Usage, op, name, "%s=%s is not above 0 and up to a million", name, env.Text(name))
		}
	}
	for _, name := range strings.Split(env.Text("faults"), ",") {
		if !slices.Contains(failuresKinds(), failuresKind(name)) {
			return p, fault.Errorf(fault.Usage, op, "faults", "%q is no failure: there are %v", name, failuresKinds())
		}
		p.kinds = append(p.kinds, failuresKind(name))
	}
	if env.Short {
		leases = leases[len(leases)-1:]
		if env.Text("faults") == failuresAll {
			p.kinds = p.kinds[len(p.kinds)-1:]
		}
		for name, most := range map[string]float64{"rtt": 5, "calm": 1, "away": 3, "after": 1, "workers": 2} {
			v[name] = min(v[name], most)
		}
	}
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	p.rtt, p.calm, p.away, p.after, p.workers, p.bytes = v["rtt"], seconds(v["calm"]), seconds(v["away"]), seconds(v["after"]), int(v["workers"]), int(v["bytes"])
	for _, l := range leases {
		if p.leases = append(p.leases, seconds(l)); p.away < 3*seconds(l) {
			return p, fault.Errorf(fault.Usage, op, "away", "a node is away for three leases of %v at least, so that another takes over", seconds(l))
		}
	}
	if p.workers < 1 || p.bytes < 1 {
		return p, fault.E(fault.Usage, op, "workers", "there is a writer at least, and a byte")
	}
	return p, nil
}

// length is for how long the writers of one failure work.
func (p failuresPlan) length(k failuresKind) time.Duration {
	switch {
	case k == failuresRestart:
		return p.calm + p.after + p.away/3
	case k.hitsTwo():
		return p.calm + p.away + p.away/2 + p.after
	}
	return p.calm + p.away + p.after
}

// topology has a node at each of five sites. The geo-config server is at the last, where
// nothing is unplugged.
func (p failuresPlan) topology(lease time.Duration) (*topology.Topology, error) {
	var y strings.Builder
	fmt.Fprintf(&y, "name: failures\nlease: %d ms\ngeo_config: s%d-1\nsites:\n", lease.Milliseconds(), failuresSites)
	for i := range failuresSites {
		fmt.Fprintf(&y, "  - name: s%d\n", i+1)
	}
	fmt.Fprintf(&y, "wan: {rtt: %g ms}\n", p.rtt)
	return described("failures", y.String())
}

// failuresRow is one failure under load.
type failuresRow struct {
	Lease   time.Duration `json:"lease_ns"`
	Kind    failuresKind  `json:"failure"`
	Victims []string      `json:"victims"` // sites, in the order in which they failed
	Writers []string      `json:"writers"` // sites
	Began   time.Time     `json:"began"`   // the writers
	Failed  time.Time     `json:"failed"`  // the first
	Back    time.Time     `json:"back"`    // the last
	Ended   time.Time     `json:"ended"`   // the writers
	// Whole is when all members were normal and the slice was served, and stayed so; nil:
	// not within the limit.
	Whole   *time.Time   `json:"whole,omitempty"`
	Verdict load.Verdict `json:"verdict"`
	changes []load.Event // what the writers did but for reads, which caches answer
}
