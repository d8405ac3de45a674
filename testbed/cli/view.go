package cli

import (
	"net/netip"

	"cartwheel.dev/testbed/topology"
)

// hostView is one host of a topology, for scripts.
type hostView struct {
	Name    string     `json:"name"`
	Site    string     `json:"site"`
	Address netip.Addr `json:"address"`
	Node    bool       `json:"node"`
	Mount   bool       `json:"mount"`
}

// pathView is what lies between two sites in one direction.
type pathView struct {
	From     string  `json:"from"`
	To       string  `json:"to"`
	DelayMS  float64 `json:"delay_ms"`
	JitterMS float64 `json:"jitter_ms"`
	RateBPS  int64   `json:"rate_bps,omitempty"`
	Loss     float64 `json:"loss,omitempty"`
}

type dryRun struct {
	Name  string     `json:"name"`
	Seed  uint64     `json:"seed"`
	Hosts []hostView `json:"hosts"`
	Paths []pathView `json:"paths"`
	YAML  string     `json:"yaml"`
}

func dryView(t *topology.Topology) dryRun {
	v := dryRun{Name: t.Name, Seed: t.Seed, YAML: string(t.YAML())}
	for _, h := range t.Hosts {
		v.Hosts = append(v.Hosts, hostView(h))
	}
	for _, a := range t.Sites {
		for _, b := range t.Sites {
			if p := t.Path(a.Name, b.Name); a.Name != b.Name {
				v.Paths = append(v.Paths, pathView{a.Name, b.Name, p.Delay.Seconds() * 1e3, p.Jitter.Seconds() * 1e3, int64(p.Rate), p.Loss})
			}
		}
	}
	return v
}
