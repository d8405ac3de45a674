package experiments

import (
	"context"
	"fmt"
	"slices"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
)

func webcache() experiment.Experiment {
	return experiment.Experiment{
		Name:    "webcache",
		Summary: "httpd proxies at all sites share one disk cache below the cues, in front of a slow web site; sites go off",
		Settings: []experiment.Setting{
			{Name: "sites", Default: "5", Help: "sites with proxies, and a client each (3 in the short form)"},
			{Name: "proxies", Default: "3", Help: "proxies at each site, with a node and a mount each (1 in the short form)"},
			{Name: "pages", Default: "100", Help: "pages of the web site (4 in the short form)"},
			{Name: "bytes", Default: "41000", Help: "bytes of each page"},
			{Name: "origin", Default: "400", Help: "the web site's link, kbit/s (2000 in the short form)"},
			{Name: "at-once", Default: "5", Help: "requests that each client has in flight (2 in the short form)"},
			{Name: "ways", Default: "calm,eventual,strict", Help: "what is run: without failures, and with them below .EventualConsistency and without it"},
			{Name: "calm", Default: "240", Help: "seconds of the way without failures (5 in the short form)"},
			{Name: "times", Default: "5", Help: "how many times a site goes off in each way with failures (1 in the short form)"},
			{Name: "every", Default: "60", Help: "seconds from one to the next (6 in the short form)"},
			{Name: "off", Default: "30", Help: "seconds of it that the site is off (3 in the short form)"},
			{Name: "age", Default: "3600", Help: "seconds that the web site lets caches keep a page"},
			{Name: "home", Default: ".KeepTogether", Help: "cues below which the cache's directory is made"},
			{Name: "room", Default: "0", Help: "MB that each node may store, of which it keeps 268 free; 0: what its disk has"},
		},
		Run: runWebcache,
	}
}

func runWebcache(ctx context.Context, env *experiment.Env) error {
	p, err := planWebcache(env)
	if err != nil {
		return err
	}
	if err := httpdNeeds(); err != nil {
		return err
	}
	t, err := p.topology()
	if err != nil {
		return err
	}
	f, err := env.Folder("webcache", t)
	if err != nil {
		return err
	}
	var words []string
	if p.room > 0 {
		words = []string{"--capacity-bytes", fmt.Sprint(p.room)}
	}
	var records []webRecord
	out, err := withNodes(ctx, env, f, t, words, func(ctx context.Context, b *bed) (err error) {
		records, err = p.rounds(ctx, b, f.Path)
		b.final = slices.ContainsFunc(records, func(r webRecord) bool { return r.wrong() > 0 })
		return err
	})
	if err != nil {
		return err
	}
	r := webReport(p, records)
	out.mark(&r)
	if err := f.Finish(r, env.Out); err != nil {
		return err
	}
	for _, record := range records {
		if n := record.wrong(); n > 0 {
			return fault.Errorf(fault.Corrupt, "experiments.runWebcache", record.Name, "%d answers were not the page that the web site has", n)
		}
	}
	return nil
}
