package calibration

import (
	"context"
	"fmt"
	"time"

	"cartwheel.dev/testbed/wan"
)

// A sender's LAN is a little faster than the path that it is to fill, so that
// the kernel paces it and no timer of a program that has to wait for its turn.
const faster = 1.5

// rates are those of the paths that are measured.
func rates() []wan.Rate {
	return []wan.Rate{6 * wan.Mbit, 20 * wan.Mbit, 100 * wan.Mbit, 200 * wan.Mbit}
}

// sender names the site whose LAN suits a rate.
func sender(r wan.Rate) string { return fmt.Sprintf("src%d", r/wan.Mbit) }

// far is the site that all measure against, and near one like it.
const (
	far  = "far"
	near = "near"
)

// pairs is the network of the checks of single paths.
func pairs() wan.Config {
	var c wan.Config
	for _, r := range rates() {
		c.Sites = append(c.Sites, site(sender(r), wan.Rate(float64(r)*faster), 2))
	}
	c.Sites = append(c.Sites, site(far, wan.Unlimited, 4), site(near, wan.Unlimited, 4))
	mesh(&c, plain(time.Millisecond))
	return c
}

// crowd is the network of the check under load: 16 hosts at 6 sites.
func crowd() wan.Config {
	var c wan.Config
	for i := range 5 {
		c.Sites = append(c.Sites, site(fmt.Sprintf("s%d", i), 100*wan.Mbit, 3))
	}
	c.Sites = append(c.Sites, site("s5", 100*wan.Mbit, 1))
	p := plain(50 * time.Millisecond)
	p.Rate = 6 * wan.Mbit
	mesh(&c, p)
	return c
}

func site(name string, lan wan.Rate, hosts int) wan.Site {
	s := wan.Site{Name: name, LAN: lan, Up: wan.Unlimited, Down: wan.Unlimited}
	for i := range hosts {
		s.Hosts = append(s.Hosts, wan.Host{Name: fmt.Sprintf("%s-%d", name, i)})
	}
	return s
}

func mesh(c *wan.Config, p wan.Path) {
	for i, a := range c.Sites {
		for _, b := range c.Sites[:i] {
			c.Both(a.Name, b.Name, p)
		}
	}
}

func plain(delay time.Duration) wan.Path { return wan.Path{Delay: delay, Rate: wan.Unlimited} }

// path sets the path from a site to far, and a plain one of the same delay
// back.
func (b *bench) path(ctx context.Context, from string, p wan.Path) error {
	return b.net.Change(ctx, func(c *wan.Config) error {
		c.Pairs[wan.Pair{From: from, To: far}] = p
		c.Pairs[wan.Pair{From: far, To: from}] = plain(p.Delay)
		return nil
	})
}
