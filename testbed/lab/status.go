package lab

import (
	"context"
	"time"

	"cartwheel.dev/testbed/wan"
)

// Status is how a lab is.
type Status struct {
	Name     string        `json:"name"`
	Topology string        `json:"topology"`
	Dir      string        `json:"dir"`
	Contact  string        `json:"contact"`
	PID      int           `json:"pid"`
	UpFor    time.Duration `json:"up_for_ns"`
	Hosts    []HostStatus  `json:"hosts"`
	// Changed are the paths that are not as the topology has them, Sites the
	// ones that are off or have blackouts.
	Changed []PathStatus  `json:"changed"`
	Sites   []SiteStatus  `json:"sites"`
	Network NetworkStatus `json:"network"`
	Events  []Event       `json:"events"`
}

// HostStatus is how one host is: its processes by name, `runs`, `paused`,
// `stopped`, `killed` or `died`.
type HostStatus struct {
	Name      string             `json:"name"`
	Site      string             `json:"site"`
	Address   string             `json:"address"`
	NodeID    string             `json:"node_id,omitempty"`
	Mount     string             `json:"mount,omitempty"`
	Processes map[Process]string `json:"processes"`
	PIDs      map[Process]int    `json:"pids"`
}

// PathStatus is a path that a fault changed.
type PathStatus struct {
	From string   `json:"from"`
	To   string   `json:"to"`
	Path wan.Path `json:"path"`
}

// SiteStatus is a site that is off, or is so from time to time.
type SiteStatus struct {
	Name      string         `json:"name"`
	Off       bool           `json:"off"`
	Blackouts []wan.Blackout `json:"blackouts"`
}

// NetworkStatus is what the emulator counted since the lab came up.
type NetworkStatus struct {
	Packets  uint64        `json:"packets"`
	Bytes    uint64        `json:"bytes"`
	LateP99  time.Duration `json:"late_p99_ns"`
	Load     float64       `json:"load"` // share of one core
	Priority int           `json:"priority"`
	Void     string        `json:"void,omitempty"`
	Error    string        `json:"error,omitempty"` // why nothing is known
}

// Status asks the emulator and looks at the processes.
func (l *Lab) Status(ctx context.Context) (Status, error) {
	r := l.record(true)
	s := Status{
		Name: r.Name, Topology: r.Topology, Dir: r.Dir, Contact: r.Contact, PID: r.PID, UpFor: time.Since(l.started),
		Events: l.Events(), Changed: []PathStatus{}, Sites: []SiteStatus{},
	}
	for _, h := range l.hosts {
		one := HostStatus{
			Name: h.Name, Site: h.Site, Address: h.Address.String(), NodeID: string(h.id), Mount: h.point,
			Processes: map[Process]string{}, PIDs: map[Process]int{},
		}
		for _, p := range processes() {
			if l.has(h, p) {
				one.Processes[p], one.PIDs[p] = h.condition(p), h.pid(p)
			}
		}
		s.Hosts = append(s.Hosts, one)
	}
	now, err := l.network.Config(ctx)
	if err == nil {
		l.changes(&s, now)
	}
	stats, serr := l.network.Stats(ctx)
	if err == nil {
		err = serr
	}
	if err != nil {
		s.Network.Error = err.Error() // the rest is known, and of use
		return s, nil
	}
	for _, c := range stats.Pairs {
		s.Network.Packets += c.Packets
		s.Network.Bytes += c.Bytes
	}
	s.Network.LateP99, s.Network.Load, s.Network.Priority, s.Network.Void = stats.Late.Quantile(0.99), stats.Load(), stats.Priority, stats.Void()
	return s, nil
}

func (l *Lab) changes(s *Status, now wan.Config) {
	was := Config(l.opt.Topology, l.opt.Name)
	for _, a := range was.Sites {
		for _, b := range was.Sites {
			pair := wan.Pair{From: a.Name, To: b.Name}
			if p := now.Pairs[pair]; p != was.Pairs[pair] {
				s.Changed = append(s.Changed, PathStatus{a.Name, b.Name, p})
			}
		}
		if site := now.Site(a.Name); site != nil && (site.Off || len(site.Blackouts) > 0) {
			s.Sites = append(s.Sites, SiteStatus{a.Name, site.Off, site.Blackouts})
		}
	}
}
