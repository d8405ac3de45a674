package wan

import (
	"crypto/rand"
	"fmt"
	"math"
	"net/netip"
	"regexp"
	"strings"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// Limits of a network. MaxDelay bounds what the emulator must hold.
const (
	MaxSites  = 128
	MaxHosts  = 256
	MaxDelay  = 10 * time.Second
	MaxRate   = 10 * Gbit
	reorderBy = 10 * time.Millisecond
)

const opConfig fault.Op = "wan.Config"

// WithDefaults returns a copy in which what was left open has its default:
// prefix, run, addresses. It reports the first thing that cannot be.
func (c Config) WithDefaults() (Config, error) {
	c = c.Clone()
	if c.Prefix == "" {
		c.Prefix = "cw"
	}
	if c.Run == "" {
		c.Run = strings.ToLower(rand.Text()[:6])
	}
	if !c.Network.IsValid() {
		c.Network = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 77, 0, 0}), 16)
	}
	next := c.Network.Masked().Addr()
	for i := range c.Sites {
		s := &c.Sites[i]
		if !s.Prefix.IsValid() {
			next = c.freePrefix(next)
			s.Prefix = netip.PrefixFrom(next, 24)
			if !c.Network.Contains(next) {
				return c, fault.Errorf(fault.Invalid, opConfig, s.Name, "%v has no /24 left for this site: use a larger network", c.Network)
			}
		}
		if err := s.fillAddresses(); err != nil {
			return c, err
		}
	}
	return c, c.Check()
}

// freePrefix returns the first /24 from a on that no site has.
func (c *Config) freePrefix(a netip.Addr) netip.Addr {
	for range MaxSites {
		taken := false
		for _, s := range c.Sites {
			taken = taken || s.Prefix.IsValid() && s.Prefix.Overlaps(netip.PrefixFrom(a, 24))
		}
		if !taken {
			return a
		}
		b := a.As4()
		n := (uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2])) + 1
		a = netip.AddrFrom4([4]byte{byte(n >> 16), byte(n >> 8), byte(n), 0})
	}
	return a
}

func (s *Site) fillAddresses() error {
	if !s.Prefix.Addr().Is4() || s.Prefix.Bits() < 8 || s.Prefix.Bits() > 29 {
		return fault.Errorf(fault.Invalid, opConfig, s.Name, "%v is no prefix for a site: IPv4, /8 to /29", s.Prefix)
	}
	taken := map[netip.Addr]bool{s.Gateway(): true}
	for _, h := range s.Hosts {
		taken[h.Addr] = true
	}
	next := s.Prefix.Masked().Addr().Next()
	for i := range s.Hosts {
		h := &s.Hosts[i]
		if h.Addr.IsValid() {
			continue
		}
		for taken[next] {
			next = next.Next()
		}
		if !s.Prefix.Contains(next) || next.Compare(s.Gateway()) > 0 {
			return fault.Errorf(fault.Invalid, opConfig, s.Name, "%d hosts but %v has fewer addresses: use a larger prefix", len(s.Hosts), s.Prefix)
		}
		h.Addr = next
		taken[next] = true
	}
	return nil
}

// Check reports the first thing in a filled configuration that cannot be, by
// the name of the site, host or pair and with the remedy.
func (c *Config) Check() error {
	name := regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)
	short := regexp.MustCompile(`^[a-z0-9]{1,8}$`)
	if !short.MatchString(c.Prefix) || !short.MatchString(c.Run) {
		return fault.Errorf(fault.Invalid, opConfig, c.Prefix+"-"+c.Run, "prefix and run are 1 to 8 of a-z and 0-9")
	}
	if len(c.Sites) == 0 || len(c.Sites) > MaxSites || len(c.Hosts()) > MaxHosts {
		return fault.Errorf(fault.Invalid, opConfig, "", "%d sites with %d hosts: at least 1 site, at most %d with %d hosts", len(c.Sites), len(c.Hosts()), MaxSites, MaxHosts)
	}
	names, addrs := map[string]bool{}, map[netip.Addr]string{}
	for i, s := range c.Sites {
		if !name.MatchString(s.Name) || c.Site(s.Name) != &c.Sites[i] {
			return fault.Errorf(fault.Invalid, opConfig, s.Name, "a site's name is a-z, 0-9 and -, and no other site's")
		}
		if err := s.check(); err != nil {
			return err
		}
		for _, h := range s.Hosts {
			if !name.MatchString(h.Name) || names[h.Name] {
				return fault.Errorf(fault.Invalid, opConfig, h.Name, "a host's name is a-z, 0-9 and -, and no other host's")
			}
			if other := addrs[h.Addr]; other != "" || !s.Prefix.Contains(h.Addr) || h.Addr == s.Gateway() {
				return fault.Errorf(fault.Invalid, opConfig, h.Name, "its address %v must be in %v, not the gateway's %v and no other host's %s", h.Addr, s.Prefix, s.Gateway(), other)
			}
			names[h.Name], addrs[h.Addr] = true, h.Name
		}
		for _, other := range c.Sites[:i] {
			if other.Prefix.Overlaps(s.Prefix) {
				return fault.Errorf(fault.Invalid, opConfig, s.Name, "its prefix %v overlaps that of %s, %v", s.Prefix, other.Name, other.Prefix)
			}
		}
	}
	return c.checkPairs()
}

func (c *Config) checkPairs() error {
	for _, a := range c.Sites {
		for _, b := range c.Sites {
			if _, ok := c.Pairs[Pair{a.Name, b.Name}]; !ok && a.Name != b.Name {
				return fault.Errorf(fault.Invalid, opConfig, Pair{a.Name, b.Name}.String(), "no path is given: give every ordered pair of sites one, or use Both")
			}
		}
	}
	for pair, p := range c.Pairs {
		if c.Site(pair.From) == nil || c.Site(pair.To) == nil || pair.From == pair.To {
			return fault.Errorf(fault.Invalid, opConfig, pair.String(), "a path is between two different sites of the network")
		}
		if err := p.check(); err != nil {
			return fault.Wrap(fault.Invalid, opConfig, pair.String(), err)
		}
	}
	return nil
}

func (s Site) check() error {
	if len(s.Hosts) == 0 {
		return fault.Errorf(fault.Invalid, opConfig, s.Name, "a site has at least one host")
	}
	for what, r := range map[string]Rate{"LAN rate": s.LAN, "uplink rate": s.Up, "downlink rate": s.Down} {
		if err := r.check(what); err != nil {
			return fault.Wrap(fault.Invalid, opConfig, s.Name, err)
		}
	}
	if s.UpQueue < 0 || s.DownQueue < 0 {
		return fault.Errorf(fault.Invalid, opConfig, s.Name, "a queue is a number of bytes, or 0 for one that is long enough")
	}
	for _, b := range s.Blackouts {
		if b.Every < time.Millisecond || b.For <= 0 || b.For > b.Every {
			return fault.Errorf(fault.Invalid, opConfig, s.Name, "blackout of %v every %v: it must be longer than none and at most the whole", b.For, b.Every)
		}
	}
	return nil
}

func (r Rate) check(what string) error {
	if r == 0 {
		return fault.Errorf(fault.Invalid, "", what, "is 0: give one, or Unlimited, or cut the path to stop its traffic")
	}
	if r != Unlimited && (r < Kbit || r > MaxRate) {
		return fault.Errorf(fault.Invalid, "", what, "%d bit/s is out of range: 1 kbit/s to %v, or Unlimited", int64(r), MaxRate)
	}
	return nil
}

func (p Path) check() error {
	for what, d := range map[string]time.Duration{"delay": p.Delay, "jitter": p.Jitter, "reorder by": p.ReorderBy} {
		if d < 0 || d > MaxDelay {
			return fault.Errorf(fault.Invalid, "", what, "%v is out of range: 0 to %v", d, MaxDelay)
		}
	}
	if p.Jitter > p.Delay {
		return fault.Errorf(fault.Invalid, "", "jitter", "%v is more than the delay of %v: packets cannot arrive before they are sent", p.Jitter, p.Delay)
	}
	shares := map[string]float64{"loss": p.Loss, "duplicate": p.Duplicate, "reorder": p.Reorder, "corrupt": p.Corrupt, "garble": p.Garble}
	for what, share := range shares {
		if math.IsNaN(share) || share < 0 || share > 1 {
			return fault.Errorf(fault.Invalid, "", what, "%v is no share: 0 to 1", share)
		}
	}
	if math.IsNaN(p.Burst) || p.Burst != 0 && (p.Burst < 1 || p.Burst > 1e6) {
		return fault.Errorf(fault.Invalid, "", "burst", "%v packets in a row: at least 1, or 0 for independent loss", p.Burst)
	}
	if p.Queue < 0 {
		return fault.Errorf(fault.Invalid, "", "queue", "%d bytes: give a positive number, or 0 for one that is long enough", p.Queue)
	}
	return p.Rate.check("rate")
}

// Milliseconds turns a number of milliseconds, as matrices of RTTs hold them,
// into a duration; NaN, infinite and negative ones are refused.
func Milliseconds(ms float64) (time.Duration, error) {
	if math.IsNaN(ms) || math.IsInf(ms, 0) || ms < 0 || ms > float64(MaxDelay.Milliseconds()) {
		return 0, fault.Errorf(fault.Invalid, opConfig, fmt.Sprint(ms), "is no delay in milliseconds: 0 to %d", MaxDelay.Milliseconds())
	}
	return time.Duration(ms * float64(time.Millisecond)), nil
}
