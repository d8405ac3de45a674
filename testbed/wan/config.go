package wan

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// Rate is in bits per second of IP packets, headers included. Zero is not a
// rate: say Unlimited where there is no limit.
type Rate int64

// Rates.
const (
	Unlimited Rate = -1
	Kbit      Rate = 1000
	Mbit      Rate = 1000 * Kbit
	Gbit      Rate = 1000 * Mbit
)

func (r Rate) String() string {
	switch {
	case r == Unlimited:
		return "unlimited"
	case r >= Mbit:
		return fmt.Sprintf("%g Mbit/s", float64(r)/float64(Mbit))
	}
	return fmt.Sprintf("%g kbit/s", float64(r)/float64(Kbit))
}

// Config is a wide area. Everything but the names of sites and hosts, their
// addresses, their LAN rates, their congestion control and the seed may change
// while it runs.
type Config struct {
	Prefix  string        `json:"prefix"`  // of the namespaces' names; "cw" if empty
	Run     string        `json:"run"`     // tells runs apart; 1 to 8 of a-z0-9, drawn if empty
	Seed    uint64        `json:"seed"`    // fixes which packets are lost, doubled, held back, and the jitter
	Network netip.Prefix  `json:"network"` // where sites without a prefix get theirs from; 10.77.0.0/16 if unset
	TCP     string        `json:"tcp"`     // congestion control of the hosts, such as reno; the machine's if empty
	Sites   []Site        `json:"sites"`
	Pairs   map[Pair]Path `json:"pairs"` // every ordered pair of different sites
}

// Site is hosts on one LAN behind one gateway.
type Site struct {
	Name      string       `json:"name"`
	Prefix    netip.Prefix `json:"prefix"` // a /24 of Config.Network if unset; its last address is the gateway's
	Hosts     []Host       `json:"hosts"`
	LAN       Rate         `json:"lan_bps"`    // of each host's link, each way
	Up        Rate         `json:"up_bps"`     // of the site into the WAN, shared by all its paths
	Down      Rate         `json:"down_bps"`   // of the WAN into the site
	UpQueue   int          `json:"up_queue"`   // bytes; 0 means enough for the longest path
	DownQueue int          `json:"down_queue"` // bytes; 0 means enough for the longest path
	Off       bool         `json:"off"`        // cut off from all other sites, both ways
	Blackouts []Blackout   `json:"blackouts"`  // times at which it is off by itself
}

// Host is one namespace.
type Host struct {
	Name string     `json:"name"` // unique in the whole network
	Addr netip.Addr `json:"addr"` // the site's next free one if unset
}

// Blackout turns a site off for For of every Every, beginning at From: with
// 30 s of every minute, {Every: time.Minute, For: 30 * time.Second}.
type Blackout struct {
	Every time.Duration `json:"every_ns"`
	For   time.Duration `json:"for_ns"`
	From  time.Time     `json:"from"` // when the schedule was set, if zero
}

// Pair is a direction between two sites.
type Pair struct{ From, To string }

// MarshalText writes it as FROM>TO.
func (p Pair) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads FROM>TO.
func (p *Pair) UnmarshalText(text []byte) error {
	from, to, ok := strings.Cut(string(text), ">")
	if !ok {
		return fault.Errorf(fault.Invalid, "wan.Pair", string(text), "a pair of sites is FROM>TO")
	}
	p.From, p.To = from, to
	return nil
}

func (p Pair) String() string { return p.From + ">" + p.To }

// Path is what happens to packets from one site to another. The shares are
// between 0 and 1. A packet first waits in the sender's uplink, then in the
// path's own queue, is then lost or under way, and then waits in the receiver's
// downlink.
type Path struct {
	Delay     time.Duration `json:"delay_ns"`   // one way
	Jitter    time.Duration `json:"jitter_ns"`  // the delay wanders within Delay +- Jitter, and reorders nothing
	Rate      Rate          `json:"rate_bps"`   // of this pair alone
	Queue     int           `json:"queue"`      // bytes waiting for Rate; 0 means three times the path's rate times its RTT
	Loss      float64       `json:"loss"`       // share of packets
	Burst     float64       `json:"burst"`      // packets lost in a row, on average; 0 or 1 is independent loss
	Duplicate float64       `json:"duplicate"`  // share that arrives twice
	Reorder   float64       `json:"reorder"`    // share that is held back by ReorderBy, so that others overtake it
	ReorderBy time.Duration `json:"reorder_ns"` // 10 ms if zero
	Corrupt   float64       `json:"corrupt"`    // share with one bit flipped; checksums tell
	Garble    float64       `json:"garble"`     // share with one bit of its payload flipped and its checksum made right
	Cut       bool          `json:"cut"`        // nothing passes, this way
}

// Both sets the same path in both directions.
func (c *Config) Both(a, b string, p Path) {
	if c.Pairs == nil {
		c.Pairs = map[Pair]Path{}
	}
	c.Pairs[Pair{a, b}], c.Pairs[Pair{b, a}] = p, p
}

// Clone returns a copy that shares nothing with c.
func (c Config) Clone() Config {
	c.Pairs = maps.Clone(c.Pairs)
	c.Sites = slices.Clone(c.Sites)
	for i := range c.Sites {
		c.Sites[i].Hosts = slices.Clone(c.Sites[i].Hosts)
		c.Sites[i].Blackouts = slices.Clone(c.Sites[i].Blackouts)
	}
	return c
}

// Site returns the site of that name, for changing it in place, or nil.
func (c *Config) Site(name string) *Site {
	for i := range c.Sites {
		if c.Sites[i].Name == name {
			return &c.Sites[i]
		}
	}
	return nil
}

// SiteOf returns the site that a host is in, or nil.
func (c *Config) SiteOf(host string) *Site {
	for i := range c.Sites {
		for _, h := range c.Sites[i].Hosts {
			if h.Name == host {
				return &c.Sites[i]
			}
		}
	}
	return nil
}

// Hosts returns all hosts in the order of the configuration.
func (c *Config) Hosts() []Host {
	var out []Host
	for _, s := range c.Sites {
		out = append(out, s.Hosts...)
	}
	return out
}

// Gateway returns the address of the site's gateway: the last of its prefix.
func (s Site) Gateway() netip.Addr {
	a := s.Prefix.Masked().Addr().As4()
	size := uint32(1) << (32 - s.Prefix.Bits())
	n := uint32(a[0])<<24 | uint32(a[1])<<16 | uint32(a[2])<<8 | uint32(a[3])
	n += size - 2
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}
