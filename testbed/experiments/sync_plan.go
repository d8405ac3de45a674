package experiments

import (
	"slices"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
)

// syncPlan is what is missed, and how large the slices are.
type syncPlan struct {
	missed, objects []int
	workers         int
	failures        failuresPlan // of the kill of an active under writers
}

func (p syncPlan) lease() time.Duration { return p.failures.leases[0] }

func planSync(env *experiment.Env) (syncPlan, error) {
	const op fault.Op = "experiments.planSync"
	var p syncPlan
	v := map[string]float64{}
	for name, most := range map[string]float64{"lease": 30, "rtt": 1000, "workers": 256} {
		var err error
		if v[name], err = env.Number(name); err != nil {
			return p, err
		}
		if !(v[name] > 0 && v[name] <= most) {
			return p, fault.Errorf(fault.Usage, op, name, "%s=%s is not above 0 and up to %g", name, env.Text(name), most)
		}
	}
	for name, into := range map[string]*[]int{"missed": &p.missed, "objects": &p.objects} {
		list, err := numbers(env.Text(name), 1, 1e6)
		if err != nil {
			return p, err
		}
		for _, n := range list {
			*into = append(*into, int(n))
		}
		slices.Sort(*into)
	}
	if env.Short {
		p.missed, p.objects, v["lease"], v["workers"] = []int{min(p.missed[0], 20)}, []int{min(p.objects[0], 50)}, min(v["lease"], 1), min(v["workers"], 2)
	}
	if v["workers"] < 1 || v["lease"] < 0.5 {
		return p, fault.E(fault.Usage, op, "workers", "there is a worker at least, and a lease of half a second")
	}
	lease := time.Duration(v["lease"] * float64(time.Second))
	p.workers = int(v["workers"])
	p.failures = failuresPlan{
		leases: []time.Duration{lease}, kinds: []failuresKind{failuresKill}, rtt: v["rtt"],
		calm: lease, away: 3 * lease, after: lease, workers: min(4, p.workers), bytes: 2048, limit: 2 * time.Minute,
	}
	return p, nil
}

// syncMissed is one return of a standby.
type syncMissed struct {
	Files   int     `json:"files"`   // created meanwhile
	Entries uint64  `json:"entries"` // of the slice's log, that it missed
	MB      float64 `json:"mb"`      // content of the files
	Standby string  `json:"standby"` // its site
	// Times from the order to start its process, in seconds: until it was ready, until
	// it followed as a junior, until it was a standby (both by its log), and until the
	// slice was seen with all members normal. Nil: not seen.
	Ready  float64  `json:"ready_s"`
	Junior *float64 `json:"junior_s,omitempty"`
	Normal *float64 `json:"normal_s,omitempty"`
	Whole  *float64 `json:"whole_s,omitempty"`
}

// syncSize is one takeover of a slice of a size.
type syncSize struct {
	Planted int         `json:"planted"`
	Objects uint64      `json:"objects"` // as the nodes counted them
	Failure failuresRow `json:"failure"`
}
