package lab

import (
	"cartwheel.dev/testbed/topology"
	"cartwheel.dev/testbed/wan"
)

// Config is the network of a topology. Run is the lab's name.
func Config(t *topology.Topology, run string) wan.Config {
	c := wan.Config{Prefix: Prefix, Run: run, Seed: t.Seed, TCP: t.TCP, Network: t.Network, Pairs: map[wan.Pair]wan.Path{}}
	for _, s := range t.Sites {
		site := wan.Site{
			Name: s.Name, LAN: rate(s.LAN), Up: rate(s.Up.Rate), Down: rate(s.Down.Rate),
			UpQueue: int(s.Up.Queue), DownQueue: int(s.Down.Queue),
		}
		for _, h := range t.At(s.Name) {
			site.Hosts = append(site.Hosts, wan.Host{Name: h.Name, Addr: h.Address})
			site.Prefix, _ = h.Address.Prefix(subnetBits) // of an IPv4 address it cannot fail
		}
		c.Sites = append(c.Sites, site)
		for _, other := range t.Sites {
			if other.Name != s.Name {
				c.Pairs[wan.Pair{From: s.Name, To: other.Name}] = path(t.Path(s.Name, other.Name))
			}
		}
	}
	return c
}

const subnetBits = 24

// rate turns no limit into the network's word for it.
func rate(r topology.Rate) wan.Rate {
	if r == 0 {
		return wan.Unlimited
	}
	return wan.Rate(r)
}

func path(p topology.Path) wan.Path {
	return wan.Path{
		Delay: p.Delay, Jitter: p.Jitter, Rate: rate(p.Rate), Queue: int(p.Queue), Loss: p.Loss, Burst: p.Burst,
		Duplicate: p.Duplicate, Reorder: p.Reorder, Corrupt: p.Corrupt,
	}
}
