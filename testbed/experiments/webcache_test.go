package experiments

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/load"
)

func webEnv(t *testing.T, set map[string]string) *experiment.Env {
	t.Helper()
	values, err := webcache().Fill(set)
	if err != nil {
		t.Fatal(err)
	}
	return &experiment.Env{Values: values}
}

func TestWebcache_RefusesNonsense(t *testing.T) {
	for _, set := range []map[string]string{
		{"sites": "1"}, {"proxies": "0"}, {"pages": "0"}, {"bytes": "many"}, {"origin": "0"}, {"at-once": "0"}, {"ways": "fast"}, {"ways": ""},
		{"off": "60"}, {"off": "0"}, {"calm": "0"}, {"times": "0"}, {"age": "0"}, {"room": "-1"},
	} {
		if p, err := planWebcache(webEnv(t, set)); err == nil {
			t.Errorf("%v gave %+v", set, p)
		}
	}
	env := webEnv(t, nil)
	env.Short = true
	if p, err := planWebcache(env); err != nil || p.sites != 3 || p.proxies != 1 || p.pages.Count != 4 || p.origin != 2000 || len(p.ways) != 3 {
		t.Errorf("the short form: %+v, %v", p, err)
	}
}

func TestWebcache_ClientsKeepTheirSite(t *testing.T) {
	p, err := planWebcache(webEnv(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	top, err := p.topology()
	if err != nil {
		t.Fatal(err)
	}
	if got := top.Nodes(); got != 15 || top.GeoConfig != "keep-c1" {
		t.Errorf("%d nodes, geo-config at %s", got, top.GeoConfig)
	}
	if got := top.Path("c-s2", "s2"); got.Delay != 10*time.Millisecond || got.Rate != 10e6 {
		t.Errorf("from a client to its site: %+v", got)
	}
	if got := top.Path("s1", "s2"); got.Delay != 50*time.Millisecond || got.Rate != 6e6 {
		t.Errorf("between sites: %+v", got)
	}
	if s, ok := top.Site(webOrigin); !ok || s.Up.Rate != 400e3 || s.Down.Rate != 400e3 {
		t.Errorf("the web site: %+v", s)
	}
}

func TestWebcache_RefusesACacheLargerThanASite(t *testing.T) {
	nodes := []nodeRoom{{Site: "s1", Used: 1e6, Capacity: 5e6}, {Site: "s1", Capacity: 3e6}, {Site: "s2", Used: 3e6, Capacity: 8e6}}
	const reserve = 1e6
	if err := webFits(nodes, reserve, 4e6); err != nil {
		t.Errorf("4 MB in 5 and 4: %v", err)
	}
	err := webFits(nodes, reserve, 4.1e6)
	if !fault.Is(err, fault.NoSpace) {
		t.Fatalf("got %v, want no space", err)
	}
	for _, part := range []string{"s2", "4.1 MB", "4 MB free", "room"} {
		if !strings.Contains(fault.Explain(err), part) {
			t.Errorf("%q does not say %q", fault.Explain(err), part)
		}
	}
	nodes[1].Used = 9e6 // more than it may have
	if err := webFits(nodes, reserve, 3e6); err != nil {
		t.Errorf("a node that is too full takes nothing from the others: %v", err)
	}
}

func TestHTTPD_CachesBelowTheCues(t *testing.T) {
	w := webWays()[0]
	o := httpdOptions{host: "s1-1", listen: "10.98.0.1:3128", dir: "/lab/httpd/s1-1", cache: filepath.Join("/lab/mnt/s1-1", w.cues, webFolder), age: time.Hour}
	lines := strings.Split(o.config(), "\n")
	for _, line := range []string{
		`CacheRoot "/lab/mnt/s1-1/.EventualConsistency/.MaxTime=1000/.Hotspot/cache"`, "CacheEnable disk http://", "Listen 10.98.0.1:3128", "ProxyRequests On",
		"CacheDefaultExpire 3600", `CacheLockPath "/lab/httpd/s1-1/locks"`, "LoadModule cache_disk_module /usr/lib/apache2/modules/mod_cache_disk.so",
	} {
		if !slices.Contains(lines, line) {
			t.Errorf("the configuration lacks %q:\n%s", line, o.config())
		}
	}
}

// webAt is a request that ended so many milliseconds after zero, and took 20 ms.
func webAt(ms int, hit bool, err string) load.WebEvent {
	return load.WebEvent{At: zero.UnixMicro() + int64(ms-20)*1000, Took: 20000, Hit: hit, Err: err}
}

func TestWebcache_TellsFailuresOfASiteFromThoseOfOthers(t *testing.T) {
	p := webPlan{sites: 2, pages: load.WebPages{Count: 4, Bytes: 50000}, calm: 40 * time.Second, every: 40 * time.Second, off: 20 * time.Second, times: 1}
	second := func(s int) time.Time { return zero.Add(time.Duration(s) * time.Second) }
	failed := webRecord{webWay: webWays()[1], began: zero, bytes: 5e5, outages: []outage{{Site: "s1", Off: second(10), Back: second(30)}}, requests: map[string][]load.WebEvent{}}
	for s := range 40 {
		err := ""
		if s >= 10 && s < 30 {
			err = "timed out"
		}
		failed.requests["s1"] = append(failed.requests["s1"], webAt(1000*s+500, true, err))
		failed.requests["s2"] = append(failed.requests["s2"], webAt(1000*s+500, s != 15, ""))
	}
	failed.origin = []load.OriginEvent{{Page: 1, At: second(15).UnixMicro()}, {Page: 1, At: second(16).UnixMicro()}, {Page: 2, At: second(35).UnixMicro()}}
	calm := webRecord{webWay: webWays()[0], began: zero, requests: map[string][]load.WebEvent{"s1": {webAt(500, false, ""), webAt(39000, true, "")}, "s2": {webAt(39500, true, "")}}}
	calm.origin = []load.OriginEvent{{Page: 1, At: second(1).UnixMicro()}, {Page: 2, At: second(9).UnixMicro()}}
	r := webReport(p, []webRecord{calm, failed})
	want(t, published(t, r),
		"| no failures | the first quarter | all | 0.1 | 50.0 | 0 | 20.0 | 20.0 | 20.0 | 0 | 0.2 | - |",
		"| no failures | the last quarter | all | 0.2 | 50.0 | 0 | 20.0 | 20.0 | 20.0 | 100 | 0 | - |",
		"| failures, .EventualConsistency | all sites up | all | 2.00 | 50.0 | 0 | 20.0 | 20.0 | 20.0 | 100 | 0.05 | about 100/s throughout |",
		"| failures, .EventualConsistency | a site off | all | 1.00 | 50.0 | 1.00 | 20.0 | 20.0 | 20.0 | 95.0 | 0.1 | about 100/s throughout |",
		"| failures, .EventualConsistency | a site off | its own | 0 | 25.0 | 1.00 | - | - | - | - | 0.1 | - |",
		"| failures, .EventualConsistency | a site off | the others' | 1.00 | 25.0 | 0 | 20.0 | 20.0 | 20.0 | 95.0 | 0.1 | - |",
		"| no failures | 2 | 2 | 1.00 | 1 | 0 | 9.00 | 0 | twice CoralCDN's time until its load is zero |",
		"| failures, .EventualConsistency | 3 | 2 | 1.50 | 2 | 0.5 | 0 | 0 | - |",
		"not measured here: WheelFS")
	if line := r.Plots[0].Lines[1]; len(line.Y) != 40 || line.Y[5] != 2 || line.Y[20] != 1 {
		t.Errorf("the plot of the service has %v", line.Y)
	}
	if b := r.Plots[0].Bands; len(b) != 1 || b[0].From != 10 || b[0].To != 30 {
		t.Errorf("the plot shows %v as off", b)
	}
	failed.requests["s2"][3].Wrong = true
	if failed.wrong() != 1 || calm.wrong() != 0 {
		t.Error("a wrong page is not counted")
	}
}
