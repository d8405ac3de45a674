package lab

import (
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/topology"
	"cartwheel.dev/testbed/wan"
)

func parse(t *testing.T, text string) *topology.Topology {
	t.Helper()
	top, err := topology.Parse("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return top
}

func TestFault_NamesWhatCannotBe(t *testing.T) {
	top := parse(t, "sites: [{name: tokyo, nodes: 2}, {name: boston}]\nwan: {rtt: 10 ms}\n")
	ms := time.Millisecond
	for _, c := range []struct {
		f    Fault
		kind fault.Kind
		say  string
	}{
		{Fault{Do: Cut, A: "tokyo", B: "boston"}, fault.None, ""},
		{Fault{Do: Heal}, fault.None, ""},
		{Fault{Do: Heal, A: "tokyo"}, fault.None, ""},
		{Fault{Do: Kill, A: "boston"}, fault.None, ""}, // its one host
		{Fault{Do: Blackout, A: "tokyo", Down: time.Second, Every: time.Second}, fault.None, ""},
		{Fault{Do: "cutt", A: "tokyo", B: "boston"}, fault.Usage, `did you mean "cut"?`},
		{Fault{Do: Cut, A: "tokyo"}, fault.Usage, "names 2 sites"},
		{Fault{Do: Cut, A: "tokyo", B: "tokyo"}, fault.Usage, "is one site"},
		{Fault{Do: Cut, A: "tokio", B: "boston"}, fault.NotFound, `did you mean "tokyo"?`},
		{Fault{Do: Cut, A: "tokyo-1", B: "boston"}, fault.NotFound, "its site is tokyo"},
		{Fault{Do: Off, A: "paris"}, fault.NotFound, "there are tokyo, boston"},
		{Fault{Do: Kill, A: "tokyo"}, fault.NotFound, "tokyo-1"},
		{Fault{Do: Stop, A: "boston"}, fault.None, ""},
		{Fault{Do: Stop, A: "tokyo"}, fault.NotFound, "tokyo-1"},
		{Fault{Do: Blackout, A: "tokyo", Down: 2 * time.Second, Every: time.Second}, fault.Usage, "at most the whole"},
		{Fault{Do: Set, A: "tokyo", B: "boston"}, fault.Usage, "nothing is changed"},
		{Fault{Do: Set, A: "tokyo", B: "boston", Change: Change{Delay: &ms}}, fault.None, ""},
	} {
		err := c.f.Check(top)
		if fault.KindOf(err) != c.kind || err != nil && !strings.Contains(err.Error(), c.say) {
			t.Errorf("%v: got %v, want kind %v and %q", c.f, err, c.kind, c.say)
		}
	}
}

func TestChange_TouchesOnlyWhatItNames(t *testing.T) {
	c, err := ParseChange(map[string]string{"delay": "50 ms", "loss": "0.1 %", "rate": "none"})
	if err != nil {
		t.Fatal(err)
	}
	p := wan.Path{Delay: time.Second, Jitter: time.Millisecond, Rate: wan.Mbit, Queue: 77, Duplicate: 0.5}
	c.apply(&p)
	if want := (wan.Path{Delay: 50 * time.Millisecond, Jitter: time.Millisecond, Rate: wan.Unlimited, Queue: 77, Loss: 0.001, Duplicate: 0.5}); p != want {
		t.Errorf("got %+v, want %+v", p, want)
	}
	for texts, say := range map[[2]string]string{
		{"dealy", "5 ms"}: `did you mean "delay"?`, {"loss", "120%"}: "from 0 to 1", {"rate", "0 Mbps"}: "above 0", {"delay", "NaN ms"}: "is no time",
		{"burst", "NaN"}: "is no number of packets", {"delay", "1 h"}: "is more than", {"queue", "-1 B"}: "is no size",
	} {
		if _, err := ParseChange(map[string]string{texts[0]: texts[1]}); !fault.Is(err, fault.Usage) || !strings.Contains(err.Error(), say) {
			t.Errorf("%v: got %v, want %q", texts, err, say)
		}
	}
}

func TestConfig_IsOfItsTopology(t *testing.T) {
	top := parse(t, `
seed: 5
tcp: reno
sites: [{name: a, nodes: 2, lan: {rate: 100 Mbps}, up: {rate: 6 Mbps, queue: 64 KiB}}, {name: b, clients: 1}]
pairs: [{from: a, to: b, delay: 7 ms, jitter: 1 ms, loss: 0.5}, {from: b, to: a, delay: 9 ms, rate: 2 Mbps}]`)
	c, err := Config(top, "x").WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if c.Seed != 5 || c.TCP != "reno" || c.Prefix != Prefix || c.Run != "x" {
		t.Errorf("got seed %d, prefix %s, run %s", c.Seed, c.Prefix, c.Run)
	}
	if a := c.Site("a"); a.LAN != 100*wan.Mbit || a.Up != 6*wan.Mbit || a.Down != wan.Unlimited || a.UpQueue != 64<<10 || len(a.Hosts) != 2 {
		t.Errorf("got %+v", a)
	}
	for _, h := range top.Hosts {
		found := false
		for _, n := range c.Hosts() {
			found = found || n.Name == h.Name && n.Addr == h.Address
		}
		if !found {
			t.Errorf("the network lacks %s at %v: %+v", h.Name, h.Address, c.Hosts())
		}
	}
	if got, want := c.Pairs[wan.Pair{From: "a", To: "b"}], (wan.Path{Delay: 7 * time.Millisecond, Jitter: time.Millisecond, Loss: 0.5, Rate: wan.Unlimited}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := c.Pairs[wan.Pair{From: "b", To: "a"}], (wan.Path{Delay: 9 * time.Millisecond, Rate: 2 * wan.Mbit}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestConfig_FillsEveryBuiltInTopology(t *testing.T) {
	all, err := topology.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for _, top := range all {
		if _, err := Config(top, "x").WithDefaults(); err != nil {
			t.Errorf("%s: %v", top.Name, err)
		}
	}
}

func TestCheckName_FitsTheNamespaces(t *testing.T) {
	for name, ok := range map[string]bool{"lab": true, "a1234567": true, "": false, "a12345678": false, "A": false, "a-b": false} {
		if err := CheckName(name); (err == nil) != ok {
			t.Errorf("%q: got %v", name, err)
		}
	}
}
