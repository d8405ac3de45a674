package topology

import (
	"fmt"
	"strings"
)

// YAML writes the topology whole, so that reading it again gives the same one:
// nothing is left to a file elsewhere or to a seed.
func (t *Topology) YAML() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "name: %q\n", t.Name)
	if t.Summary != "" {
		fmt.Fprintf(&b, "summary: %q\n", t.Summary)
	}
	fmt.Fprintf(&b, "seed: %d\nnetwork: %v\nlease: %v\ngeo_config: %s\n", t.Seed, t.Network, t.Lease, t.GeoConfig)
	if t.TCP != "" {
		fmt.Fprintf(&b, "tcp: %s\n", t.TCP)
	}
	var mounts []string
	for _, h := range t.Hosts {
		if h.Mount {
			mounts = append(mounts, h.Name)
		}
	}
	fmt.Fprintf(&b, "mounts: [%s]\nsites:\n", strings.Join(mounts, ", "))
	for _, s := range t.Sites {
		fmt.Fprintf(&b, "  - {name: %s, nodes: %d, clients: %d", s.Name, s.Nodes, s.Clients)
		if s.Declared != "" {
			fmt.Fprintf(&b, ", declared: %s", s.Declared)
		}
		if s.Place != nil {
			fmt.Fprintf(&b, ", latitude: %g, longitude: %g", s.Place.Latitude, s.Place.Longitude)
		}
		if s.LAN > 0 {
			fmt.Fprintf(&b, ", lan: {rate: %v}", s.LAN)
		}
		for _, l := range []struct {
			name string
			link Link
		}{{"up", s.Up}, {"down", s.Down}} {
			if text := l.link.yaml(); text != "" {
				fmt.Fprintf(&b, ", %s: {%s}", l.name, text)
			}
		}
		b.WriteString("}\n")
	}
	if len(t.Sites) > 1 {
		b.WriteString("pairs:\n")
	}
	for _, from := range t.Sites {
		for _, to := range t.Sites {
			if from.Name != to.Name {
				fmt.Fprintf(&b, "  - {from: %s, to: %s, %s}\n", from.Name, to.Name, t.Path(from.Name, to.Name).yaml())
			}
		}
	}
	return []byte(b.String())
}

func (l Link) yaml() string {
	var parts []string
	if l.Rate > 0 {
		parts = append(parts, fmt.Sprintf("rate: %v", l.Rate))
	}
	if l.Queue > 0 {
		parts = append(parts, "queue: "+sizeText(l.Queue))
	}
	return strings.Join(parts, ", ")
}

func (p Path) yaml() string {
	parts := []string{"delay: " + timeText(p.Delay)}
	if p.Jitter > 0 {
		parts = append(parts, "jitter: "+timeText(p.Jitter))
	}
	if p.Rate > 0 {
		parts = append(parts, fmt.Sprintf("rate: %v", p.Rate))
	}
	if p.Queue > 0 {
		parts = append(parts, "queue: "+sizeText(p.Queue))
	}
	for _, s := range []struct {
		name  string
		value float64
	}{{"loss", p.Loss}, {"duplicate", p.Duplicate}, {"reorder", p.Reorder}, {"corrupt", p.Corrupt}, {"burst", p.Burst}} {
		if s.value > 0 {
			parts = append(parts, fmt.Sprintf("%s: %g", s.name, s.value))
		}
	}
	return strings.Join(parts, ", ")
}
