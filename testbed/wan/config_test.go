package wan_test

import (
	"encoding/json"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/wan"
)

func TestConfig_NamesEveryBadInput(t *testing.T) {
	pair := wan.Pair{From: "paris", To: "quito"}
	path := func(fn func(*wan.Path)) func(*wan.Config) {
		return func(c *wan.Config) { p := c.Pairs[pair]; fn(&p); c.Pairs[pair] = p }
	}
	for _, c := range []struct {
		name  string
		spoil func(*wan.Config)
		says  string
	}{
		{"rate 0", path(func(p *wan.Path) { p.Rate = 0 }), "paris>quito: rate: is 0"},
		{"negative rate", path(func(p *wan.Path) { p.Rate = -5 }), "out of range"},
		{"negative delay", path(func(p *wan.Path) { p.Delay = -time.Millisecond }), "paris>quito: delay: -1ms"},
		{"endless delay", path(func(p *wan.Path) { p.Delay = time.Hour }), "out of range"},
		{"jitter above delay", path(func(p *wan.Path) { p.Jitter = time.Second }), "more than the delay"},
		{"loss NaN", path(func(p *wan.Path) { p.Loss = math.NaN() }), "NaN is no share"},
		{"loss above all", path(func(p *wan.Path) { p.Loss = 1.1 }), "no share"},
		{"burst below one", path(func(p *wan.Path) { p.Burst = 0.5 }), "at least 1"},
		{"negative queue", path(func(p *wan.Path) { p.Queue = -1 }), "positive number"},
		{"no path", func(c *wan.Config) { delete(c.Pairs, pair) }, "paris>quito: no path is given"},
		{"path to nowhere", func(c *wan.Config) { c.Pairs[wan.Pair{From: "paris", To: "rome"}] = c.Pairs[pair] }, "paris>rome"},
		{"LAN rate 0", func(c *wan.Config) { c.Sites[0].LAN = 0 }, "paris: LAN rate: is 0"},
		{"uplink rate 0", func(c *wan.Config) { c.Sites[1].Up = 0 }, "quito: uplink rate: is 0"},
		{"more hosts than addresses", func(c *wan.Config) {
			c.Sites[0].Prefix = netip.MustParsePrefix("10.1.0.0/29")
			for _, h := range []string{"c", "d", "e", "f"} {
				c.Sites[0].Hosts = append(c.Sites[0].Hosts, wan.Host{Name: h})
			}
		}, "paris: 6 hosts but 10.1.0.0/29 has fewer addresses"},
		{"more sites than addresses", func(c *wan.Config) { c.Network = netip.MustParsePrefix("10.1.0.0/24") }, "no /24 left"},
		{"address of another site", func(c *wan.Config) { c.Sites[0].Hosts[0].Addr = netip.MustParseAddr("10.9.9.9") }, "paris1: its address 10.9.9.9"},
		{"address twice", func(c *wan.Config) {
			c.Sites[0].Hosts[0].Addr = netip.MustParseAddr("10.77.0.9")
			c.Sites[0].Hosts[1].Addr = netip.MustParseAddr("10.77.0.9")
		}, "no other host's paris1"},
		{"prefixes that overlap", func(c *wan.Config) {
			c.Sites[0].Prefix, c.Sites[1].Prefix = netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("10.1.2.0/24")
		}, "quito: its prefix 10.1.2.0/24 overlaps"},
		{"IPv6", func(c *wan.Config) { c.Sites[0].Prefix = netip.MustParsePrefix("fd00::/64") }, "IPv4"},
		{"host twice", func(c *wan.Config) { c.Sites[1].Hosts[0].Name = "paris1" }, "paris1: a host's name"},
		{"site twice", func(c *wan.Config) { c.Sites[1].Name = "paris" }, "paris: a site's name"},
		{"a name that leads elsewhere", func(c *wan.Config) { c.Sites[1].Hosts[0].Name = "../x" }, "a host's name"},
		{"no sites", func(c *wan.Config) { c.Sites, c.Pairs = nil, nil }, "at least 1 site"},
		{"no hosts", func(c *wan.Config) { c.Sites[0].Hosts = nil }, "at least one host"},
		{"run that is no ID", func(c *wan.Config) { c.Run = "a-b" }, "prefix and run"},
		{"blackout longer than its period", func(c *wan.Config) {
			c.Sites[0].Blackouts = []wan.Blackout{{Every: time.Second, For: time.Minute}}
		}, "blackout"},
	} {
		config := twoSites(wan.Path{Delay: time.Millisecond, Rate: wan.Unlimited})
		c.spoil(&config)
		_, err := config.WithDefaults()
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.says)
		}
	}
}

func TestMilliseconds_RefusesNonsense(t *testing.T) {
	for _, v := range []float64{-1, math.NaN(), math.Inf(1), 1e9} {
		if _, err := wan.Milliseconds(v); !fault.Is(err, fault.Invalid) {
			t.Errorf("%v: got %v", v, err)
		}
	}
	if d, err := wan.Milliseconds(12.5); err != nil || d != 12500*time.Microsecond {
		t.Errorf("got %v %v", d, err)
	}
}

func TestConfig_ReadsBackFromJSON(t *testing.T) {
	c := twoSites(wan.Path{Delay: 3 * time.Millisecond, Rate: 5 * wan.Mbit, Loss: 0.25})
	c, err := c.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if a := c.Sites[1].Hosts[1].Addr.String(); a != "10.77.1.2" || c.Sites[1].Gateway().String() != "10.77.1.254" {
		t.Errorf("addresses %s, %v", a, c.Sites[1].Gateway())
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var back wan.Config
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(c, back) {
		t.Errorf("%v\n%+v\n%+v", err, c, back)
	}
	clone := c.Clone()
	clone.Sites[0].Hosts[0].Name = "other"
	clone.Pairs[wan.Pair{From: "paris", To: "quito"}] = wan.Path{}
	if c.Sites[0].Hosts[0].Name == "other" || c.Pairs[wan.Pair{From: "paris", To: "quito"}].Loss == 0 {
		t.Error("a clone shares with its original")
	}
}

func TestHistogram_QuantilesAreAnEighthTooHighAtMost(t *testing.T) {
	var h wan.Histogram
	if h.Quantile(0.99) != 0 {
		t.Error("nothing is late")
	}
	for i := 1; i <= 1000; i++ {
		h.Add(time.Duration(i) * time.Microsecond)
	}
	h.Add(-time.Second)
	for share, want := range map[float64]time.Duration{0.5: 500 * time.Microsecond, 0.99: 990 * time.Microsecond, 1: time.Millisecond} {
		if got := h.Quantile(share); got < want || got > want*9/8 {
			t.Errorf("quantile %v is %v, want %v", share, got, want)
		}
	}
	if h.Longest != time.Millisecond || h.Total() != 1001 {
		t.Errorf("longest %v of %d", h.Longest, h.Total())
	}
	h.Add(time.Hour) // beyond the last
}

func TestStats_LateEmulatorMakesARunVoid(t *testing.T) {
	quick, late := &wan.Stats{}, &wan.Stats{}
	for range 1000 {
		quick.Late.Add(200 * time.Microsecond)
		late.Late.Add(200 * time.Microsecond)
	}
	for range 20 {
		late.Late.Add(3 * time.Millisecond)
	}
	if v := quick.Void(); v != "" {
		t.Error(v)
	}
	if v := late.Void(); !strings.Contains(v, "too slow") {
		t.Errorf("got %q", v)
	}
	if v := late.Since(late).Void(); v != "" {
		t.Errorf("nothing happened since: %s", v)
	}
	if v := (&wan.Stats{Sites: map[string]wan.Lost{"paris": {Unread: 3}}}).Void(); !strings.Contains(v, "paris") {
		t.Errorf("got %q", v)
	}
}
