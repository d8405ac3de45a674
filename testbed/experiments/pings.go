package experiments

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/lab"
	"cartwheel.dev/testbed/load"
	"cartwheel.dev/testbed/topology"
)

// pingsYAML has the geo-config server at the city that is never cut off.
const pingsYAML = `
name: pings
geo_config: frankfurt-1
cities: {places: [frankfurt, tokyo, sydney, washington, sao-paulo]}
`

// pingsCommon is the city that is the home of the common folder.
const pingsCommon = "frankfurt"

func pings() experiment.Experiment {
	return experiment.Experiment{
		Name:    "pings",
		Summary: "every host writes its round trips to a file and reads all others'; one is cut off and comes back: how old is what they see?",
		Settings: []experiment.Setting{
			{Name: "cut", Default: "tokyo", Help: "site that is cut off, not frankfurt"},
			{Name: "calm", Default: "15", Help: "seconds before it is cut off (6 in the short form)"},
			{Name: "off", Default: "30", Help: "seconds that it is cut off (6 in the short form)"},
			{Name: "after", Default: "30", Help: "seconds after it has come back (10 in the short form)"},
			{Name: "every", Default: "1", Help: "seconds from one measurement to the next"},
		},
		Run: runPings,
	}
}

// pingsPlan is what is done, and when.
type pingsPlan struct {
	cut                     string
	calm, off, after, every time.Duration
}

func (p pingsPlan) whole() time.Duration { return p.calm + p.off + p.after }

func planPings(env *experiment.Env, t *topology.Topology) (pingsPlan, error) {
	const op fault.Op = "experiments.planPings"
	p := pingsPlan{cut: env.Text("cut")}
	if _, ok := t.Site(p.cut); !ok || p.cut == pingsCommon {
		return p, fault.E(fault.Usage, op, p.cut, "is no site that can be cut off here")
	}
	for _, s := range []struct {
		name  string
		short float64
		into  *time.Duration
	}{{"calm", 6, &p.calm}, {"off", 6, &p.off}, {"after", 10, &p.after}, {"every", 1, &p.every}} {
		v, err := env.Number(s.name)
		if err != nil {
			return p, err
		}
		if env.Short {
			v = min(v, s.short)
		}
		if *s.into = time.Duration(v * float64(time.Second)); *s.into <= 0 {
			return p, fault.E(fault.Usage, op, s.name, "is more than no time")
		}
	}
	return p, nil
}

// pingsWay is how the programs reach their files.
type pingsWay struct {
	Name string `json:"way"`
	dir  string
	cue  string // in the path
}

// strict says that no cue gives up anything: what was acknowledged is seen.
func (w pingsWay) strict() bool { return w.cue == "" }

func pingsWays() []pingsWay {
	return []pingsWay{
		{Name: "no cue", dir: "pings-plain"},
		{Name: ".MaxTime=1000/.SyncLevel=1", dir: "pings-cues", cue: ".MaxTime=1000/.SyncLevel=1"},
		{Name: ".EventualConsistency", dir: "pings-eventual", cue: ".EventualConsistency"},
	}
}

// pingsRecord is what the programs of one way noted.
type pingsRecord struct {
	pingsWay
	Events []load.PingEvent `json:"events"`
	Lost   []string         `json:"lost"` // hosts whose last acknowledged file was missing at the end, and where
}

func runPings(ctx context.Context, env *experiment.Env) error {
	t, err := described("pings", pingsYAML)
	if err != nil {
		return err
	}
	p, err := planPings(env, t)
	if err != nil {
		return err
	}
	f, err := env.Folder("pings", t)
	if err != nil {
		return err
	}
	var records []pingsRecord
	var o outage
	out, err := withLab(ctx, env, f, t, func(ctx context.Context, b *bed) (err error) {
		places, err := b.everywhere()
		if err != nil {
			return err
		}
		if o, err = pingsUnderway(ctx, b, p, places, f.Path); err != nil {
			return err
		}
		records, err = pingsRecords(places, f.Path)
		b.final = slices.ContainsFunc(records, pingsRecord.broken)
		return err
	})
	if err != nil {
		return err
	}
	r := pingsReport(p, t, records, o)
	out.mark(&r)
	if err := f.Finish(r, env.Out); err != nil {
		return err
	}
	for _, record := range records {
		if record.broken() {
			return fault.Errorf(fault.Corrupt, "experiments.pings", record.Name, "acknowledged round trips were lost, or a reader saw an older version after a later one: %v", record.Lost)
		}
	}
	return nil
}

// pingsFile is where a host's program of one way notes what it did.
func pingsFile(w pingsWay, site string) string { return fmt.Sprintf("events-%s-%s.jsonl", w.dir, site) }

// pingsFolders makes the common folder of each way, and in it one for each host,
// whose home is the host's site.
func pingsFolders(ctx context.Context, places []place) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, w := range pingsWays() {
		g.Go(func() error {
			if err := mkdir(ctx, filepath.Join(places[0].mount, ".Site="+pingsCommon, w.dir)); err != nil {
				return err
			}
			for _, at := range places {
				g.Go(func() error { return mkdir(ctx, filepath.Join(at.mount, ".Site="+at.site, w.dir, at.site)) })
			}
			return nil
		})
	}
	return g.Wait()
}

// pingsUnderway has a program of each way run at each host while one is cut off
// and comes back.
func pingsUnderway(ctx context.Context, b *bed, p pingsPlan, places []place, path func(string) string) (outage, error) {
	o := outage{Site: p.cut}
	if err := pingsFolders(ctx, places); err != nil {
		return o, err
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, w := range pingsWays() {
		for _, at := range places {
			g.Go(func() error { return at.work(ctx, nil, pingsWords(b, p, w, at, places, path)...) })
		}
	}
	g.Go(func() error {
		if err := sleep(ctx, p.calm); err != nil {
			return err
		}
		o.Off = time.Now()
		if err := b.Do(ctx, lab.Fault{Do: lab.Off, A: p.cut}); err != nil {
			return err
		}
		b.say("pings: %s is cut off", p.cut)
		err := sleep(ctx, p.off)
		o.Back = time.Now()
		if err := b.Do(context.WithoutCancel(ctx), lab.Fault{Do: lab.Heal, A: p.cut}); err != nil {
			return err
		}
		b.say("pings: %s is back", p.cut)
		return err
	})
	return o, g.Wait()
}

// pingsWords are the words of one program.
func pingsWords(b *bed, p pingsPlan, w pingsWay, at place, places []place, path func(string) string) []string {
	words := []string{
		"pings", filepath.Join(at.mount, w.cue, w.dir), "--host", at.site, "--for", p.whole().String(), "--every", p.every.String(),
		"--events", path(pingsFile(w, at.site)),
	}
	for _, other := range places {
		if h, ok := b.Topology().Host(other.host); ok && other.site != at.site {
			words = append(words, "--peer", fmt.Sprintf("%s=%v:9", other.site, h.Address)) // nothing listens: a refusal is an answer
		}
	}
	return words
}

// pingsRecords reads what the programs noted, and looks at every mount for what
// each had acknowledged last.
func pingsRecords(places []place, path func(string) string) ([]pingsRecord, error) {
	var records []pingsRecord
	for _, w := range pingsWays() {
		r := pingsRecord{pingsWay: w}
		last := map[string]uint64{}
		for _, at := range places {
			f, err := os.Open(path(pingsFile(w, at.site)))
			if err != nil {
				return nil, fault.FromOS("experiments.pings", at.site, err)
			}
			events, err := load.ReadPingEvents(f)
			if err = errors.Join(err, f.Close()); err != nil {
				return nil, err
			}
			for _, e := range events {
				if e.Op == load.OpReplace && e.Err == "" {
					last[at.site] = e.Is.Version
				}
			}
			r.Events = append(r.Events, events...)
		}
		r.Lost = pingsLost(places, w, last)
		records = append(records, r)
	}
	return records, nil
}

// pingsLost looks from every mount for a version of each site's file that is not
// older than the last acknowledged one.
func pingsLost(places []place, w pingsWay, last map[string]uint64) []string {
	var mu sync.Mutex // guards lost
	var lost []string
	var all sync.WaitGroup
	for _, at := range places {
		for site, version := range last {
			all.Go(func() {
				s, err := load.ReadPings(filepath.Join(at.mount, w.dir), site)
				if err != nil || s.Version < version {
					mu.Lock()
					defer mu.Unlock()
					lost = append(lost, fmt.Sprintf("%s as seen at %s: version %d, want %d (%v)", site, at.site, s.Version, version, err))
				}
			})
		}
	}
	all.Wait()
	slices.Sort(lost)
	return lost
}

// broken says that a promise was broken: without a cue, what was acknowledged is
// seen from then on.
func (r pingsRecord) broken() bool {
	return r.strict() && (len(r.Lost) > 0 || slices.ContainsFunc(r.Events, func(e load.PingEvent) bool { return e.Back }))
}
