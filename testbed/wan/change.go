package wan

import (
	"context"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// changeTries bounds how often Change meets other changes before it gives up.
const changeTries = 10

// Config returns the configuration as it is now.
func (n *Network) Config(ctx context.Context) (Config, error) {
	reply, err := n.call(ctx, Request{Do: AskConfig})
	if err != nil {
		return Config{}, err
	}
	return *reply.Config, nil
}

// Change has fn alter a copy of the configuration and puts it in force as a
// whole, or not at all: paths, queues, up- and downlinks, cuts and schedules;
// not names, addresses, LAN rates or the seed. It is in force when Change
// returns. fn is called again when another change came between.
func (n *Network) Change(ctx context.Context, fn func(*Config) error) error {
	const op fault.Op = "wan.Change"
	for range changeTries {
		reply, err := n.call(ctx, Request{Do: AskConfig})
		if err != nil {
			return fault.Wrap(fault.Unreachable, op, n.run.String(), err)
		}
		c := *reply.Config
		if err := fn(&c); err != nil {
			return err
		}
		_, err = n.call(ctx, Request{Do: AskChange, Config: &c, Version: reply.Version})
		if !fault.Is(err, fault.Conflict) {
			return fault.Wrap(fault.Unreachable, op, n.run.String(), err)
		}
	}
	return fault.E(fault.Busy, op, n.run.String(), "others change this network without a pause: try again")
}

// ChangePath alters the path between two sites: one way if oneWay, else both.
func (n *Network) ChangePath(ctx context.Context, from, to string, oneWay bool, fn func(*Path)) error {
	return n.Change(ctx, func(c *Config) error {
		pairs := []Pair{{from, to}, {to, from}}
		if oneWay {
			pairs = pairs[:1]
		}
		for _, pair := range pairs {
			p, ok := c.Pairs[pair]
			if !ok {
				return fault.E(fault.NotFound, "wan.ChangePath", pair.String(), "the network has no such pair of sites")
			}
			fn(&p)
			c.Pairs[pair] = p
		}
		return nil
	})
}

// Cut stops or heals the path from one site to another: one way if oneWay.
func (n *Network) Cut(ctx context.Context, from, to string, oneWay, cut bool) error {
	return n.ChangePath(ctx, from, to, oneWay, func(p *Path) { p.Cut = cut })
}

// Off turns a site off or on: whether it reaches any other site.
func (n *Network) Off(ctx context.Context, site string, off bool) error {
	return n.ChangeSite(ctx, site, func(s *Site) { s.Off = off })
}

// Blackout turns a site off for length of every period from now on; a length
// of 0 ends the site's schedules.
func (n *Network) Blackout(ctx context.Context, site string, every, length time.Duration) error {
	return n.ChangeSite(ctx, site, func(s *Site) {
		s.Blackouts = nil
		if length > 0 {
			s.Blackouts = []Blackout{{Every: every, For: length}}
		}
	})
}

// ChangeSite alters a site's links to the WAN, or its schedules.
func (n *Network) ChangeSite(ctx context.Context, site string, fn func(*Site)) error {
	return n.Change(ctx, func(c *Config) error {
		s := c.Site(site)
		if s == nil {
			return fault.E(fault.NotFound, "wan.ChangeSite", site, "the network has no such site")
		}
		fn(s)
		return nil
	})
}

// Stats returns what the emulator counted since it was started.
func (n *Network) Stats(ctx context.Context) (*Stats, error) {
	reply, err := n.call(ctx, Request{Do: AskStats})
	if err != nil {
		return nil, fault.Wrap(fault.Unreachable, "wan.Stats", n.run.String(), err)
	}
	return reply.Stats, nil
}
