package experiments

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/lab"
	"cartwheel.dev/testbed/load"
)

// blackoutYAML has the geo-config server at a site that never goes off: it is
// one process, and while it is away nobody can take over.
const blackoutYAML = `
name: blackout
geo_config: keep-1
sites:
  - name: keep
  - name: north
  - name: east
  - name: west
wan: {rtt: 100 ms}
`

func blackout() experiment.Experiment {
	return experiment.Experiment{
		Name:    "blackout",
		Summary: "a site off for 30 s of every minute under load from every site: what was acknowledged, and how fast it goes on",
		Settings: []experiment.Setting{
			{Name: "sites", Default: "north,east,west", Help: "sites that go off, one after the other (north in the short form)"},
			{Name: "minutes", Default: "6", Help: "how many times a site goes off (1 in the short form)"},
			{Name: "every", Default: "60", Help: "seconds from one to the next (16 in the short form)"},
			{Name: "off", Default: "30", Help: "seconds of it that the site is off (6 in the short form)"},
			{Name: "workers", Default: "4", Help: "workers at each site"},
			{Name: "bytes", Default: "2048", Help: "bytes of each file"},
		},
		Run: runBlackout,
	}
}

// blackoutPlan is what is done, and when.
type blackoutPlan struct {
	sites      []string
	times      int
	every, off time.Duration
	calm       time.Duration // before the first
	workers    int
	bytes      int
}

func (p blackoutPlan) whole() time.Duration { return p.calm + time.Duration(p.times)*p.every }

func planBlackout(env *experiment.Env) (blackoutPlan, error) {
	p := blackoutPlan{sites: strings.Split(env.Text("sites"), ",")}
	v := map[string]float64{}
	for _, name := range []string{"minutes", "every", "off", "workers", "bytes"} {
		var err error
		if v[name], err = env.Number(name); err != nil {
			return p, err
		}
	}
	if env.Short {
		p.sites, v["minutes"], v["every"], v["off"] = p.sites[:1], 1, 16, 6
	}
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	p.times, p.workers, p.bytes = int(v["minutes"]), int(v["workers"]), int(v["bytes"])
	p.every, p.off = seconds(v["every"]), seconds(v["off"])
	p.calm = p.every / 2
	if p.off <= 0 || p.off >= p.every || p.times < 1 || p.workers < 1 || p.bytes < 1 {
		return p, fault.E(fault.Usage, "experiments.blackout", "off", "a site is off for more than no time and less than the whole; there is one time and one worker at least")
	}
	return p, nil
}

// outage is one time that a site was off.
type outage struct {
	Site string    `json:"site"`
	Off  time.Time `json:"off"`
	Back time.Time `json:"back"`
}

// siteRecord is what the writers of one site noted.
type siteRecord struct {
	Site    string       `json:"site"`
	Verdict load.Verdict `json:"verdict"`
	events  []load.Event
}

func runBlackout(ctx context.Context, env *experiment.Env) error {
	p, err := planBlackout(env)
	if err != nil {
		return err
	}
	t, err := described("blackout", blackoutYAML)
	if err != nil {
		return err
	}
	f, err := env.Folder("blackout", t)
	if err != nil {
		return err
	}
	var records []siteRecord
	var outages []outage
	began := time.Now()
	out, err := withLab(ctx, env, f, t, func(ctx context.Context, b *bed) error {
		places, err := b.everywhere()
		if err != nil {
			return err
		}
		for _, at := range places {
			if err := mkdir(ctx, filepath.Join(at.mount, ".Site="+at.site, "load-"+at.site)); err != nil {
				return err
			}
		}
		began = time.Now()
		if outages, err = underLoad(ctx, b, p, places, f.Path); err != nil {
			return err
		}
		records, err = judge(ctx, b, p, places, f.Path)
		b.final = slices.ContainsFunc(records, func(s siteRecord) bool { return len(s.Verdict.Lost) > 0 })
		return err
	})
	if err != nil {
		return err
	}
	r := blackoutReport(p, began, records, outages)
	return out.end(f, env, r, lost(records, func(s siteRecord) (string, load.Verdict) { return s.Site, s.Verdict }))
}

// eventsFile is where the writers of a site note what was acknowledged.
func eventsFile(site string) string { return "events-" + site + ".jsonl" }

// writerWords are the words of a writer and of its check.
func (p blackoutPlan) writerWords(dir, events string, seed uint64) []string {
	return []string{
		dir, "--workers", strconv.Itoa(p.workers), "--for", p.whole().String(), "--bytes", strconv.Itoa(p.bytes), "--seed", strconv.FormatUint(seed, 10),
		"--events", events,
	}
}

// underLoad has writers work at every site while sites go off and come back.
func underLoad(ctx context.Context, b *bed, p blackoutPlan, places []place, path func(string) string) ([]outage, error) {
	g, gctx := errgroup.WithContext(ctx)
	for i, at := range places {
		g.Go(func() error {
			words := p.writerWords(filepath.Join(at.mount, "load-"+at.site), path(eventsFile(at.site)), b.env.Seed+uint64(i))
			return at.work(gctx, nil, append([]string{"writers"}, words...)...)
		})
	}
	var outages []outage
	g.Go(func() error {
		for i := range p.times {
			pause := p.every - p.off
			if i == 0 {
				pause = p.calm
			}
			if err := sleep(gctx, pause); err != nil {
				return err
			}
			o := outage{Site: p.sites[i%len(p.sites)], Off: time.Now()}
			if err := b.Do(gctx, lab.Fault{Do: lab.Off, A: o.Site}); err != nil {
				return err
			}
			b.say("blackout: %s is off", o.Site)
			serr := sleep(gctx, p.off)
			o.Back = time.Now()
			if err := b.Do(context.WithoutCancel(gctx), lab.Fault{Do: lab.Heal, A: o.Site}); err != nil {
				return err
			}
			b.say("blackout: %s is back", o.Site)
			outages = append(outages, o)
			if serr != nil {
				return serr
			}
		}
		return nil
	})
	return outages, g.Wait()
}

// judge looks, from another site than the one that wrote it, for everything
// that was acknowledged.
func judge(ctx context.Context, b *bed, p blackoutPlan, places []place, path func(string) string) ([]siteRecord, error) {
	var records []siteRecord
	for i, at := range places {
		from := places[(i+1)%len(places)]
		b.say("blackout: looking from %s for what %s wrote", from.site, at.site)
		r := siteRecord{Site: at.site}
		file, err := os.Open(path(eventsFile(at.site)))
		if err != nil {
			return nil, fault.FromOS("experiments.judge", at.site, err)
		}
		r.events, err = load.ReadEvents(file)
		file.Close()
		if err != nil {
			return nil, err
		}
		words := p.writerWords(filepath.Join(from.mount, "load-"+at.site), path(eventsFile(at.site)), b.env.Seed+uint64(i))
		if err := from.work(ctx, &r.Verdict, append([]string{"verify"}, words...)...); err != nil {
			return nil, fmt.Errorf("looking from %s: %w", from.site, err)
		}
		records = append(records, r)
	}
	return records, nil
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
