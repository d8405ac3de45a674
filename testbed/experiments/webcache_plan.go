package experiments

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/load"
	"cartwheel.dev/testbed/topology"
)

// webWay is below which cues the proxies keep their cache, and whether sites go
// off meanwhile.
type webWay struct {
	Name string `json:"way"`
	key  string // in the setting
	cues string // in the path
	off  bool
}

// webFolder is the one cache of all proxies in all ways.
const webFolder = "cache"

func webWays() []webWay {
	const eventual = ".EventualConsistency/.MaxTime=1000/.Hotspot"
	return []webWay{
		{Name: "no failures", key: "calm", cues: eventual},
		{Name: "failures, .EventualConsistency", key: "eventual", cues: eventual, off: true},
		{Name: "failures, without it", key: "strict", cues: ".MaxTime=1000/.Hotspot", off: true},
	}
}

// webPlan is what is run, on what.
type webPlan struct {
	sites, proxies, atOnce int
	pages                  load.WebPages
	origin                 float64 // kbit/s
	ways                   []webWay
	calm, every, off, age  time.Duration
	times                  int
	home                   string // cues of the cache's folder
	folders                int    // of httpd's that are made before it runs
	room                   int64  // bytes; 0: the disk's
}

func planWebcache(env *experiment.Env) (webPlan, error) {
	const op fault.Op = "experiments.planWebcache"
	p := webPlan{pages: load.WebPages{Seed: env.Seed}, home: env.Text("home"), folders: len(httpdFolders)}
	short := map[string]float64{"sites": 3, "proxies": 1, "pages": 4, "at-once": 2, "calm": 5, "times": 1, "every": 6, "off": 3}
	v := map[string]float64{}
	for _, name := range []string{"sites", "proxies", "pages", "bytes", "origin", "at-once", "calm", "times", "every", "off", "age", "room"} {
		var err error
		if v[name], err = env.Number(name); err != nil {
			return p, err
		}
		if less, ok := short[name]; ok && env.Short {
			v[name] = min(v[name], less)
		}
	}
	if env.Short {
		v["origin"], p.folders = max(v["origin"], 2000), 4
	}
	seconds := func(name string) time.Duration { return time.Duration(v[name] * float64(time.Second)) }
	p.sites, p.proxies, p.atOnce, p.times = int(v["sites"]), int(v["proxies"]), int(v["at-once"]), int(v["times"])
	p.pages.Count, p.pages.Bytes, p.origin, p.room = int(v["pages"]), int(v["bytes"]), v["origin"], int64(v["room"]*1e6)
	p.calm, p.every, p.off, p.age = seconds("calm"), seconds("every"), seconds("off"), seconds("age")
	switch {
	case p.sites < 2 || p.proxies < 1 || p.pages.Count < 1 || p.pages.Bytes < 1 || p.atOnce < 1 || p.times < 1:
		return p, fault.E(fault.Usage, op, "sites", "there are two sites, one proxy, one page of one byte, one request at a time and one time at least")
	case !(p.origin >= 1) || p.calm <= 0 || p.age <= 0 || p.room < 0:
		return p, fault.E(fault.Usage, op, "origin", "the web site has a link, the way without failures a length, a page an age, and a node no less than no room")
	case p.off <= 0 || p.off >= p.every:
		return p, fault.E(fault.Usage, op, "off", "a site is off for more than no time and less than the whole")
	}
	for _, key := range strings.Split(env.Text("ways"), ",") {
		i := slices.IndexFunc(webWays(), func(w webWay) bool { return w.key == strings.TrimSpace(key) })
		if i < 0 {
			return p, fault.Errorf(fault.Usage, op, "ways", "%q is no way: there are calm, eventual and strict", key)
		}
		p.ways = append(p.ways, webWays()[i])
	}
	return p, nil
}

// whole is how long a way takes.
func (p webPlan) whole(w webWay) time.Duration {
	if w.off {
		return time.Duration(p.times) * p.every
	}
	return p.calm
}

// Sites of the topology beside those of the proxies.
const (
	webOrigin = "origin"
	webKeep   = "keep" // has geo-config, and is never off
)

func webSite(i int) string { return fmt.Sprintf("s%d", i+1) }

// webClientOf is the site of a site's client. It is a site of its own to the
// emulator, because its link is not the LAN and stays when the site is off.
func webClientOf(site string) string { return "c-" + site }

// topology has the sites with the proxies, a client beside each, and the origin.
func (p webPlan) topology() (*topology.Topology, error) {
	var sites, pairs strings.Builder
	for i := range p.sites {
		s := webSite(i)
		fmt.Fprintf(&sites, "  - {name: %s, nodes: %d}\n  - {name: %s, nodes: 0, clients: 1}\n", s, p.proxies, webClientOf(s))
		fmt.Fprintf(&pairs, "  - {sites: [%s, %s], rtt: 20 ms, rate: 10 Mbps}\n", s, webClientOf(s))
	}
	return described("webcache", fmt.Sprintf(`
name: webcache
mounts: nodes
geo_config: %s-c1
defaults: {lan: {rate: 100 Mbps}}
sites:
%s  - {name: %s, nodes: 0, clients: 1}
  - {name: %s, nodes: 0, clients: 1, link: {rate: %g kbps}}
wan: {rtt: 100 ms, rate: 6 Mbps}
pairs:
%s`, webKeep, &sites, webKeep, webOrigin, p.origin, &pairs))
}
