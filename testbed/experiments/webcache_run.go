package experiments

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"cartwheel.dev/clients/supervisor"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/server"
	"cartwheel.dev/testbed/lab"
	"cartwheel.dev/testbed/load"
)

// Ports of the web site and of the proxies in the first way. httpd caches a whole
// scheme at its own port only. Each way has other proxies, because one that waits
// for a mount may let go of its port late.
const (
	webPort   = 80
	proxyPort = 3128
)

// webRecord is what happened in one way.
type webRecord struct {
	webWay
	began    time.Time
	requests map[string][]load.WebEvent // by the client's site, which is the proxies'
	origin   []load.OriginEvent
	outages  []outage
	bytes    uint64 // from the web site, headers included
}

// wrong counts the answers that were not the page.
func (r webRecord) wrong() int {
	n := 0
	for _, events := range r.requests {
		for _, e := range events {
			if e.Wrong {
				n++
			}
		}
	}
	return n
}

// hits counts the pages that came from the cache.
func (r webRecord) hits() int {
	n := 0
	for _, events := range r.requests {
		for _, e := range events {
			if e.Hit {
				n++
			}
		}
	}
	return n
}

// nodeRoom is what one node may store, as `cartwheel status` tells it.
type nodeRoom struct {
	Site     string `json:"site"`
	Used     int64  `json:"used_bytes"`
	Capacity int64  `json:"capacity_bytes"`
}

// webFits refuses a disk cache of the application's that is larger than what the
// nodes of a site can store: that site could not keep it. Each node keeps a reserve
// free.
func webFits(nodes []nodeRoom, reserve, need int64) error {
	room := map[string]int64{}
	for _, n := range nodes {
		room[n.Site] += max(0, n.Capacity-n.Used-reserve)
	}
	for _, n := range nodes {
		if room[n.Site] < need {
			return fault.Errorf(fault.NoSpace, "experiments.webFits", n.Site,
				"the disk cache of the proxies is larger than the site's: it takes %.3g MB, and the site's nodes have %.3g MB free beside their reserve; have fewer or smaller pages (pages, bytes), or give each node more (room)",
				float64(need)/1e6, float64(room[n.Site])/1e6)
		}
	}
	return nil
}

// rounds runs the ways one after the other, on one cache.
func (p webPlan) rounds(ctx context.Context, b *bed, path func(string) string) ([]webRecord, error) {
	first, err := b.at(webSite(0))
	if err != nil {
		return nil, err
	}
	var seen struct {
		Nodes []nodeRoom `json:"nodes"`
	}
	if err := first.decode(ctx, &seen, []string{first.programs.Cartwheel, "--json", "status"}); err != nil {
		return nil, err
	}
	if err := webFits(seen.Nodes, server.DefaultConfig().ReserveBytes, int64(p.pages.Count)*int64(p.pages.Bytes)); err != nil {
		return nil, err
	}
	if err := p.prepare(ctx, b, first); err != nil {
		return nil, err
	}
	preload, err := buildOneDevice(ctx, b.Dir())
	if err != nil {
		return nil, err
	}
	origin, err := p.startOrigin(ctx, b, path)
	if err != nil {
		return nil, err
	}
	var records []webRecord
	for i, w := range p.ways {
		b.say("webcache: %s", w.Name)
		r, err := p.round(ctx, b, w, webHosts{origin: origin, port: proxyPort + i, preload: preload}, path)
		if err != nil {
			return records, err
		}
		records = append(records, r)
	}
	if !slices.ContainsFunc(records, func(r webRecord) bool { return r.hits() > 0 }) {
		return records, fault.E(fault.Other, "experiments.rounds", webFolder, "no page ever came from the proxies' cache: the logs of httpd say why")
	}
	return records, p.readOrigin(records, path)
}

// prepare makes the cache's folder, and those that httpd keeps pages in. They are
// root's: httpd's user may write to them but not remove them. A proxy that could
// not keep a page removes its folder, which another one far away may be about to
// use.
func (p webPlan) prepare(ctx context.Context, b *bed, first place) error {
	const op fault.Op = "experiments.prepare"
	for _, dir := range []string{b.Dir(), filepath.Dir(first.mount)} { // the way to the mounts
		if err := os.Chmod(dir, 0o755); err != nil {
			return fault.FromOS(op, dir, err)
		}
	}
	folder := filepath.Join(first.mount, p.home, webFolder)
	if err := mkdir(ctx, folder); err != nil {
		return err
	}
	if err := os.Chmod(folder, 0o777|os.ModeSticky); err != nil {
		return fault.FromOS(op, folder, err)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for _, name := range httpdFolders[:p.folders] {
		g.Go(func() error {
			at := filepath.Join(folder, string(name))
			if err := mkdir(ctx, at); err != nil {
				return err
			}
			return fault.FromOS(op, at, os.Chmod(at, 0o777))
		})
	}
	return g.Wait()
}

const webOriginEvents = "events-origin.jsonl"

// startOrigin starts the web site, and returns its address.
func (p webPlan) startOrigin(ctx context.Context, b *bed, path func(string) string) (string, error) {
	h := b.Topology().At(webOrigin)[0]
	at, err := b.host(h)
	if err != nil {
		return "", err
	}
	address := fmt.Sprintf("%v:%d", h.Address, webPort)
	words := append([]string{at.programs.Testbed, "load", "origin", address, "--age", p.age.String(), "--events", path(webOriginEvents)}, p.pageWords()...)
	c, err := b.spawn(b.Command(context.WithoutCancel(ctx), h.Name, words...), h.Name, "origin")
	if err != nil {
		return "", err
	}
	_, err = c.Ready(ctx)
	return address, err
}

func (p webPlan) pageWords() []string {
	return []string{"--pages", strconv.Itoa(p.pages.Count), "--bytes", strconv.Itoa(p.pages.Bytes), "--seed", strconv.FormatUint(p.pages.Seed, 10)}
}

// webHosts is what a way needs to know of the others' processes.
type webHosts struct {
	origin  string // HOST:PORT
	port    int    // of the proxies
	preload string // a library for httpd
}

// round has clients ask by proxies of their own, and sites go off where the way
// says so.
func (p webPlan) round(ctx context.Context, b *bed, w webWay, hosts webHosts, path func(string) string) (webRecord, error) {
	r := webRecord{webWay: w, requests: map[string][]load.WebEvent{}}
	proxies, err := p.startProxies(ctx, b, w, hosts)
	if err != nil {
		return r, err
	}
	before, err := originBytes(ctx, b)
	if err != nil {
		return r, err
	}
	r.began = time.Now()
	g, gctx := errgroup.WithContext(ctx)
	for i := range p.sites {
		g.Go(func() error { return p.ask(gctx, b, w, i, hosts, path) })
	}
	if w.off {
		g.Go(func() (err error) { r.outages, err = p.outages(gctx, b); return err })
	}
	if err := g.Wait(); err != nil {
		return r, err
	}
	after, err := originBytes(ctx, b)
	if err != nil {
		return r, err
	}
	r.bytes = after - before
	for _, c := range proxies {
		if !c.Running() {
			return r, fault.Errorf(fault.Other, "experiments.round", c.Name, "ended by itself (%s); log: %s", c.How(), c.LogFile())
		}
	}
	_ = supervisor.EndAll(proxies, nil) // one that waits for a mount is killed, which is no error
	for i := range p.sites {
		events, err := readFile(path(webEvents(w, webSite(i))), load.ReadWebEvents)
		if err != nil {
			return r, err
		}
		r.requests[webSite(i)] = events
	}
	return r, nil
}

func webEvents(w webWay, site string) string { return fmt.Sprintf("events-%s-%s.jsonl", w.key, site) }

// readFile reads a file of events.
func readFile[T any](path string, read func(io.Reader) ([]T, error)) ([]T, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.FromOS("experiments.readFile", path, err)
	}
	defer f.Close()
	return read(f)
}

// proxyHosts are the hosts of a site with a proxy.
func proxyHosts(b *bed, site string) (out []string) {
	for _, h := range b.Topology().At(site) {
		out = append(out, h.Name)
	}
	return out
}

func (p webPlan) startProxies(ctx context.Context, b *bed, w webWay, hosts webHosts) ([]*supervisor.Child, error) {
	var out []*supervisor.Child
	for i := range p.sites {
		for _, name := range proxyHosts(b, webSite(i)) {
			mount, err := b.Mount(name)
			if err != nil {
				return out, err
			}
			h, _ := b.Topology().Host(name)
			c, err := b.httpd(ctx, httpdOptions{
				host: name, listen: fmt.Sprintf("%v:%d", h.Address, hosts.port), dir: filepath.Join(b.Dir(), "httpd-"+w.key, name),
				cache: filepath.Join(mount, w.cues, webFolder), age: p.age,
			}, hosts.preload)
			if err != nil {
				return out, err
			}
			out = append(out, c)
		}
	}
	return out, nil
}

// ask runs the client of a site.
func (p webPlan) ask(ctx context.Context, b *bed, w webWay, i int, hosts webHosts, path func(string) string) error {
	site := webSite(i)
	client, err := b.host(b.Topology().At(webClientOf(site))[0])
	if err != nil {
		return err
	}
	words := append([]string{"web", hosts.origin, "--client", strconv.Itoa(i), "--at-once", strconv.Itoa(p.atOnce), "--for", p.whole(w).String(), "--events", path(webEvents(w, site))}, p.pageWords()...)
	for _, name := range proxyHosts(b, site) {
		h, _ := b.Topology().Host(name)
		words = append(words, "--proxy", fmt.Sprintf("%v:%d", h.Address, hosts.port))
	}
	return client.work(ctx, nil, words...)
}

// outages take the sites off, one after the other, each in the middle of its time.
func (p webPlan) outages(ctx context.Context, b *bed) ([]outage, error) {
	var out []outage
	calm := (p.every - p.off) / 2
	for i := range p.times {
		if err := sleep(ctx, calm); err != nil {
			return out, err
		}
		o := outage{Site: webSite(i % p.sites), Off: time.Now()}
		if err := webCut(ctx, b, o.Site, lab.Cut); err != nil {
			return out, err
		}
		b.say("webcache: %s is off", o.Site)
		serr := sleep(ctx, p.off)
		o.Back = time.Now()
		if err := webCut(context.WithoutCancel(ctx), b, o.Site, lab.Heal); err != nil {
			return out, err
		}
		b.say("webcache: %s is back", o.Site)
		if out = append(out, o); serr != nil {
			return out, serr
		}
		if err := sleep(ctx, calm); err != nil {
			return out, err
		}
	}
	return out, nil
}

// webCut cuts a site off from all others but its client, or heals that.
func webCut(ctx context.Context, b *bed, site string, do lab.Verb) error {
	for _, s := range b.Topology().Sites {
		if s.Name == site || s.Name == webClientOf(site) {
			continue
		}
		if err := b.Do(ctx, lab.Fault{Do: do, A: site, B: s.Name}); err != nil {
			return err
		}
	}
	return nil
}

// originBytes counts what has come from the web site, headers included.
func originBytes(ctx context.Context, b *bed) (uint64, error) {
	stats, err := b.Network().Stats(ctx)
	if err != nil {
		return 0, err
	}
	n := uint64(0)
	for pair, c := range stats.Pairs {
		if pair.From == webOrigin {
			n += c.Through
		}
	}
	return n, nil
}

// readOrigin gives each way the requests that came to the web site in its time.
func (p webPlan) readOrigin(records []webRecord, path func(string) string) error {
	events, err := readFile(path(webOriginEvents), load.ReadOriginEvents)
	if err != nil {
		return err
	}
	slices.SortFunc(events, func(a, b load.OriginEvent) int { return cmp.Compare(a.At, b.At) })
	for i := range records {
		r := &records[i]
		end := r.began.Add(p.whole(r.webWay)).UnixMicro()
		for _, e := range events {
			if e.At >= r.began.UnixMicro() && e.At < end {
				r.origin = append(r.origin, e)
			}
		}
	}
	return nil
}

// MarshalJSON keeps what can be drawn again; the events have files of their own.
func (r webRecord) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{
		"way": r.Name, "began": r.began, "outages": r.outages, "origin_requests": len(r.origin), "origin_bytes": r.bytes, "wrong": r.wrong(),
	})
}
