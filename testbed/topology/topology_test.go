package topology

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
)

func TestBuiltin_AreThePublishedSetUps(t *testing.T) {
	all, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, one := range all {
		names = append(names, one.Name)
	}
	if want := []string{"emulab-5x3", "emulab-5x3-mail", "three-dc", "two-cities"}; !slices.Equal(names, want) {
		t.Fatalf("got %q, want %q", names, want)
	}
	for i, want := range []struct {
		sites, hosts int
		lan, link    Rate
		rtt, jitter  time.Duration
	}{
		{6, 16, 100e6, 6e6, 100 * time.Millisecond, 0},
		{6, 16, 100e6, 1e6, 100 * time.Millisecond, 0},
		{3, 3, 0, 0, 100 * time.Millisecond, 10 * time.Millisecond},
		{2, 2, 0, 0, 22 * time.Millisecond, 0},
	} {
		one := all[i]
		if len(one.Sites) != want.sites || len(one.Hosts) != want.hosts || one.Nodes() != want.hosts {
			t.Errorf("%s: got %d sites, %d hosts, %d nodes; want %d and %d", one.Name, len(one.Sites), len(one.Hosts), one.Nodes(), want.sites, want.hosts)
		}
		for _, a := range one.Sites {
			if a.LAN != want.lan || a.Up.Rate != want.link || a.Down.Rate != want.link {
				t.Errorf("%s: site %s has LAN %v, up %v, down %v; want %v and %v", one.Name, a.Name, a.LAN, a.Up.Rate, a.Down.Rate, want.lan, want.link)
			}
			for _, b := range one.Sites {
				if got := one.RTT(a.Name, b.Name); a.Name != b.Name && (got != want.rtt || one.Path(a.Name, b.Name).Jitter != want.jitter) {
					t.Errorf("%s: RTT from %s to %s is %v +- %v one way", one.Name, a.Name, b.Name, got, one.Path(a.Name, b.Name).Jitter)
				}
			}
		}
	}
}

func TestParse_HostsHaveNamesAddressesAndMounts(t *testing.T) {
	top, err := Parse("x.yaml", []byte(`
network: 10.5.0.0/16
geo_config: b
sites:
  - {name: a, nodes: 2, clients: 1}
  - {name: b}
mounts: [a-2, a-c1]
wan: {rtt: 10 ms}
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range top.Hosts {
		text := h.Name + " " + h.Address.String()
		if h.Node {
			text += " node"
		}
		if h.Mount {
			text += " mount"
		}
		got = append(got, text)
	}
	if want := []string{"a-1 10.5.0.1 node", "a-2 10.5.0.2 node mount", "a-c1 10.5.0.3 mount", "b-1 10.5.1.1 node"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if top.GeoConfig != "b-1" {
		t.Errorf("geo-config is at %q, want b-1: a site of one host is named by its site", top.GeoConfig)
	}
	if _, ok := top.Host("a"); ok {
		t.Error("a site of three hosts is taken for a host")
	}
}

func TestParse_LaterKeysOverrideEarlierOnes(t *testing.T) {
	top, err := Parse("x.yaml", []byte(`
sites:
  - name: a
  - {name: b, nodes: 2, up: {rate: 3 Mbps, queue: 64 KiB}}
  - name: c
pairs:
  - {sites: [a, b], rtt: 30 ms, loss: 1 %}
  - {from: b, to: c, delay: 7 ms, jitter: 2ms, burst: 3}
defaults: {nodes: 4, link: {rate: 10 Mbps}}
wan: {rtt: 20 ms, duplicate: 0.25, rate: 1 Gbps}
`))
	if err != nil {
		t.Fatal(err)
	}
	if a, _ := top.Site("a"); a.Nodes != 4 || a.Up.Rate != 10e6 || a.Down.Rate != 10e6 {
		t.Errorf("got %+v, want the defaults", a)
	}
	if b, _ := top.Site("b"); b.Nodes != 2 || b.Up != (Link{3e6, 64 << 10}) || b.Down.Rate != 10e6 {
		t.Errorf("got %+v, want its own words over the defaults", b)
	}
	for _, c := range []struct {
		from, to string
		want     Path
	}{
		{"a", "b", Path{Delay: 15 * time.Millisecond, Loss: 0.01, Duplicate: 0.25, Rate: 1e9}},
		{"b", "a", Path{Delay: 15 * time.Millisecond, Loss: 0.01, Duplicate: 0.25, Rate: 1e9}},
		{"b", "c", Path{Delay: 7 * time.Millisecond, Jitter: 2 * time.Millisecond, Duplicate: 0.25, Rate: 1e9, Burst: 3}},
		{"c", "b", Path{Delay: 10 * time.Millisecond, Duplicate: 0.25, Rate: 1e9}},
	} {
		if got := top.Path(c.from, c.to); got != c.want {
			t.Errorf("from %s to %s: got %+v, want %+v", c.from, c.to, got, c.want)
		}
	}
}

// TestParse_NamesFileAndLineOfBadInput has the line that must be named before
// the bar, and a word of the reason behind it.
func TestParse_NamesFileAndLineOfBadInput(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("m.csv", "region,a,b\na,0,5\nb,5,0\n")
	write("negative.csv", "region,a,b\na,0,5\nb,-5,0\n")
	const two = "sites:\n  - name: a\n  - name: b\n"
	for _, c := range []struct{ name, text, want string }{
		{"no YAML", "name: x\n  summary: y\n", "x.yaml:2|is not YAML"},
		{"nothing", "", "x.yaml:1|is empty"},
		{"a list", "- a\n", "x.yaml:1|key: value"},
		{"unknown key", "naem: x\n" + two, `x.yaml:1|unknown key "naem" in a topology; did you mean "name"?`},
		{"unknown key deep down", two + "wan:\n  rtt: 5 ms\n  rtl: 4\n", `x.yaml:6|unknown key "rtl" in wan`},
		{"key twice", "name: a\nname: b\n" + two, `x.yaml:2|"name" is there twice`},
		{"declared nowhere", "sites:\n  - name: paris\n  - {name: tokyo, declared: pariss}\n", "x.yaml:3|\"pariss\", which is no site; did you mean \"paris\"?"},
		{"no sites", "name: x\n", "x.yaml:1|there are no sites"},
		{"site without name", "sites:\n  - name: a\n  - nodes: 3\n", "x.yaml:3|a site has a name"},
		{"bad name", "sites:\n  - name: A/B\n", `x.yaml:2|"A/B" is no site's name`},
		{"site twice", "sites:\n  - name: a\n  - name: b\n  - name: a\n", `x.yaml:4|"a" is there already, at line 2`},
		{"rate 0", two + "defaults:\n  link: {rate: 0 Mbps}\n", "x.yaml:5|a rate is above 0"},
		{"rate 0 without unit", two + "wan:\n  rate: 0\n", "x.yaml:5|a rate is above 0"},
		{"rate of NaN", two + "wan:\n  rate: NaN Mbps\n", "x.yaml:5|is no rate"},
		{"rate without unit", two + "wan:\n  rate: 6\n", "x.yaml:5|is no rate; write it as"},
		{"too fast", two + "wan:\n  rate: 100 Gbps\n", "x.yaml:5|out of range"},
		{"negative RTT", two + "wan:\n  rtt: -3 ms\n", "x.yaml:5|a time is not negative"},
		{"RTT of NaN", two + "wan:\n  rtt: .nan\n", "x.yaml:5|is no time"},
		{"RTT without unit", two + "wan:\n  rtt: 100\n", "x.yaml:5|is no time; write it as"},
		{"RTT too long", two + "wan:\n  rtt: 60 s\n", "x.yaml:5|is more than 10s"},
		{"RTT and delay", two + "wan:\n  rtt: 60 ms\n  delay: 30 ms\n", "x.yaml:6|say the same twice"},
		{"jitter above delay", two + "wan:\n  rtt: 60 ms\n  rtt_jitter: 70 ms\n", "x.yaml:6|more than the delay"},
		{"jitter of a pair above delay", two + "wan: {rtt: 60 ms}\npairs:\n  - {from: a, to: b, jitter: 31 ms}\n", "x.yaml:6|more than the delay"},
		{"loss above one", two + "wan:\n  loss: 120 %\n", "x.yaml:5|a share is from 0 to 1"},
		{"loss in words", two + "wan:\n  loss: much\n", "x.yaml:5|is no share"},
		{"unknown site in a pair", two + "pairs:\n  - {sites: [a, bb], rtt: 5 ms}\n", `x.yaml:5|unknown site "bb"; did you mean "b"?`},
		{"pair with itself", two + "pairs:\n  - {sites: [a, a], rtt: 5 ms}\n", "x.yaml:5|not \"a\" with itself"},
		{"pair of one", two + "pairs:\n  - {sites: [a], rtt: 5 ms}\n", "x.yaml:5|a pair names two sites"},
		{"half a direction", two + "pairs:\n  - {from: a, rtt: 5 ms}\n", "x.yaml:5|from: A and to: B"},
		{"unreachable site", two + "pairs:\n  - {from: a, to: b, loss: 1}\n", `x.yaml:2|site "a" is unreachable`},
		{"matrix not square", "matrix:\n  names: [a, b]\n  rtt_ms:\n    - [0, 5]\n    - [5]\n", "x.yaml:5|not square: 1 values in this row, 2 rows"},
		{"fewer rows than names", "matrix:\n  names: [a, b, c]\n  rtt_ms:\n    - [0, 5]\n    - [5, 0]\n", "x.yaml:4|not square: 2 rows, 3 names"},
		{"negative in a matrix", "matrix:\n  names: [a, b]\n  rtt_ms:\n    - [0, 5]\n    - [-5, 0]\n", "x.yaml:5|from b to a, -5 ms, is negative"},
		{"NaN in a matrix", "matrix:\n  names: [a, b]\n  rtt_ms:\n    - [0, .nan]\n    - [5, 0]\n", "x.yaml:4|from a to b is NaN"},
		{"neither file nor rows", "matrix:\n  hosts: 3\n", "x.yaml:2|either a file, or rtt_ms"},
		{"no such matrix", "matrix:\n  hosts: 3\n  file: absent.csv\n", "x.yaml:3|absent.csv: there is no such file"},
		{"a matrix's own line", "matrix:\n  file: negative.csv\n", "negative.csv:3|from b to a, -5 ms, is negative"},
		{"more hosts than the matrix", "matrix:\n  file: m.csv\n  hosts: 3\n", "x.yaml:3|cannot be drawn from a matrix of 2"},
		{"matrix and cities", "matrix: {file: m.csv}\ncities: {places: [paris]}\n", "x.yaml:1|one of them"},
		{"unknown city", "cities:\n  places: [paris, lodnon]\n", `x.yaml:2|unknown city "lodnon"; did you mean "london"?`},
		{"city twice", "cities:\n  places:\n    - paris\n    - paris\n", `x.yaml:4|there already, at line 3`},
		{"latitude", "cities:\n  places:\n    - {name: pole, latitude: 91, longitude: 0}\n", "x.yaml:3|no number from -90 to 90"},
		{"unknown site beside a matrix", "matrix: {file: m.csv}\nsites:\n  - name: c\n", `x.yaml:3|unknown site "c"`},
		{"more sites than addresses", "network: 10.0.0.0/24\n" + two, "x.yaml:1|more hosts than addresses: 10.0.0.0/24 has a /24 for 1 sites, there are 2"},
		{"more hosts at all", "defaults: {nodes: 90, clients: 90}\n" + two, "x.yaml:1|at most 256"},
		{"network in words", "network: home\n" + two, "x.yaml:1|is no IPv4 network"},
		{"too many nodes", "sites:\n  - name: a\n    nodes: 1000\n", "x.yaml:3|no whole number from 0 to 100"},
		{"site without hosts", "sites:\n  - name: a\n  - {name: b, nodes: 0}\n", `x.yaml:3|site "b" has no host`},
		{"no node at all", "defaults: {nodes: 0, clients: 1}\n" + two, "x.yaml:1|no host runs a node"},
		{"geo-config nowhere", "geo_config: a-7\n" + two, `x.yaml:1|unknown host "a-7"`},
		{"mount nowhere", two + "mounts: [a-1, b-9]\n", `x.yaml:4|unknown host "b-9"`},
		{"mounts in words", two + "mounts: nods\n", `x.yaml:4|did you mean "nodes"?`},
		{"lease too short", two + "lease: 1 ms\n", "x.yaml:4|a lease is 100ms or more"},
		{"congestion control", two + "tcp: Re no\n", `x.yaml:4|"Re no" is no congestion control`},
		{"a host and a site of one name", "sites:\n  - {name: a, clients: 1}\n  - {name: a-c1}\n", `x.yaml:1|a host and a site would both be named "a-c1"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			top, err := Parse(filepath.Join(dir, "x.yaml"), []byte(c.text))
			where, why, _ := strings.Cut(c.want, "|")
			if err == nil {
				t.Fatalf("got %+v, want an error at %s", top, where)
			}
			if text := err.Error(); !strings.Contains(text, where+": ") || !strings.Contains(text, why) {
				t.Errorf("got %v\nwant %s and %q", err, where, why)
			}
			if code := fault.KindOf(err).ExitCode(); code != fault.ExitUsage {
				t.Errorf("got exit code %d, want %d", code, fault.ExitUsage)
			}
		})
	}
}

func TestParse_ReportsAllErrorsInOrder(t *testing.T) {
	_, err := Parse("x.yaml", []byte("sites:\n  - {name: a, nodse: 3}\nwan: {rtt: fast}\nlease: -1 s\n"))
	if err == nil {
		t.Fatal("got no error")
	}
	at := -1
	for _, where := range []string{"x.yaml:2", "x.yaml:3", "x.yaml:4"} {
		i := strings.Index(err.Error(), where)
		if i <= at {
			t.Errorf("%s is missing or not in its order in:\n%v", where, err)
		}
		at = i
	}
}

func TestYAML_ReadsBackTheSameTopology(t *testing.T) {
	sources := map[string]string{
		"words": `
seed: 7
lease: 1500ms
tcp: reno
mounts: clients
defaults: {lan: {rate: 100 Mbps}, link: {rate: 1500 kbps, queue: 1500 B}, clients: 1}
sites: [{name: a}, {name: b, declared: a, latitude: -3.5, longitude: 7}]
pairs: [{from: a, to: b, delay: 12.345 ms, jitter: 1 ms, loss: 0.1 %, burst: 2, duplicate: 0.2, reorder: 0.3, corrupt: 0.4, rate: 7 Mbps, queue: 3 MiB}]`,
		"cities": "cities: {places: [tokyo, boston, {name: here, latitude: 1, longitude: 2}], fibre_factor: 1.4, last_mile: 3 ms}",
	}
	for name, text := range sources {
		first, err := Parse(name, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		second, err := Parse(name, first.YAML())
		if err != nil {
			t.Fatalf("%v in:\n%s", err, first.YAML())
		}
		if !reflect.DeepEqual(first, second) {
			t.Errorf("%s: got\n%+v, want\n%+v, from:\n%s", name, second, first, first.YAML())
		}
	}
}

func TestUnits_AreReadAsWritten(t *testing.T) {
	for text, want := range map[string]Rate{"6 Mbps": 6e6, "400kbps": 400e3, "1.5 Mbit/s": 15e5, "1 Gbps": 1e9, "1200 bps": 1200} {
		if got, err := ParseRate(text); got != want || err != nil {
			t.Errorf("%s: got %v, %v; want %d", text, got, err, want)
		}
	}
	for text, want := range map[string]time.Duration{"100 ms": 100 * time.Millisecond, "1m30s": 90 * time.Second, "0.25 s": 250 * time.Millisecond, "0": 0, "10us": 10 * time.Microsecond} {
		if got, err := ParseTime(text); got != want || err != nil {
			t.Errorf("%s: got %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]float64{"0.1 %": 0.001, "0.25": 0.25, "100%": 1, "0": 0} {
		if got, err := ParseShare(text); math.Abs(got-want) > 1e-12 || err != nil {
			t.Errorf("%s: got %v, %v; want %v", text, got, err, want)
		}
	}
}
