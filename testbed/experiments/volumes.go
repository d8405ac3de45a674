package experiments

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/load"
	"cartwheel.dev/testbed/topology"
)

func volumes() experiment.Experiment {
	return experiment.Experiment{
		Name:    "volumes",
		Summary: "small files that are created, read and deleted in write-once volumes and in ordinary directories: single creates, e-mail and photos, over a wide area and in one place",
		Settings: []experiment.Setting{
			{Name: "rtt", Default: "100", Help: "round trip between the three sites, ms (20 in the short form)"},
			{Name: "mbit", Default: "200", Help: "each site's link, Mbit/s"},
			{Name: "creates", Default: "100", Help: "single creates, one after the other (5 in the short form)"},
			{Name: "workers", Default: "8", Help: "workers of each client; there is a client beside each node (2 in the short form)"},
			{Name: "seconds", Default: "30", Help: "how long the workers work, for each mix and layout (1 in the short form)"},
			{Name: "boxes", Default: "16", Help: "volumes, or directories (2 in the short form)"},
			{Name: "planted", Default: "8", Help: "files of each that are there before and are read (2 in the short form)"},
		},
		Run: runVolumes,
	}
}

// volumesPlan is what is done, and over what.
type volumesPlan struct {
	rtt, mbit                        float64
	creates, workers, boxes, planted int
	length                           time.Duration
	short                            bool // see does
}

func planVolumes(env *experiment.Env) (volumesPlan, error) {
	const op fault.Op = "experiments.planVolumes"
	v := map[string]float64{}
	for _, s := range volumes().Settings {
		n, err := env.Number(s.Name)
		if err != nil {
			return volumesPlan{}, err
		}
		if !(n > 0 && n <= 1e6) {
			return volumesPlan{}, fault.Errorf(fault.Usage, op, s.Name, "%s=%s is not above 0 and up to a million", s.Name, env.Text(s.Name))
		}
		v[s.Name] = n
	}
	for _, name := range []string{"creates", "workers", "boxes", "planted"} {
		if v[name] != float64(int(v[name])) {
			return volumesPlan{}, fault.Errorf(fault.Usage, op, name, "%s=%s is no whole number", name, env.Text(name))
		}
	}
	if v["boxes"]*v["planted"] > 1e5 {
		return volumesPlan{}, fault.Errorf(fault.Usage, op, "planted", "%s files in each of %s boxes are more than 100,000", env.Text("planted"), env.Text("boxes"))
	}
	if env.Short {
		for name, most := range map[string]float64{"rtt": 20, "creates": 5, "workers": 2, "seconds": 1, "boxes": 2, "planted": 2} {
			v[name] = min(v[name], most)
		}
	}
	return volumesPlan{rtt: v["rtt"], mbit: v["mbit"], creates: int(v["creates"]), workers: int(v["workers"]), boxes: int(v["boxes"]), planted: int(v["planted"]),
		length: time.Duration(v["seconds"] * float64(time.Second)), short: env.Short}, nil
}

// volumesNet is where the nodes are.
type volumesNet string

const (
	volumesWide  volumesNet = "three sites"
	volumesLocal volumesNet = "one place"
)

// topology has three nodes: each at a site of its own, or all in one place.
func (p volumesPlan) topology(n volumesNet) (*topology.Topology, error) {
	if n == volumesLocal {
		return described("volumes", fmt.Sprintf("name: volumes\nmounts: none\nsites:\n  - {name: s1, nodes: 3, link: {rate: %g Mbps}}\n", p.mbit))
	}
	return described("volumes", fmt.Sprintf("name: volumes\nmounts: none\ndefaults: {nodes: 1, link: {rate: %g Mbps}}\nsites: [{name: s1}, {name: s2}, {name: s3}]\nwan: {rtt: %g ms}\n", p.mbit, p.rtt))
}

// volumesWork is one mix of operations.
type volumesWork struct {
	name                 string
	sizes                load.BoxSizes
	create, read, remove int
	hosts                []int // whose clients work; nil: those of all
	single               bool
}

// The works. Only the e-mail's mix is the paper's: of photos it says nothing but the
// sizes of the files that it writes and reads.
func volumesWorks() []volumesWork {
	return []volumesWork{
		{name: "create beside the active", sizes: load.SmallSizesBox, create: 1, hosts: []int{0}, single: true},
		{name: "create far from the active", sizes: load.SmallSizesBox, create: 1, hosts: []int{1}, single: true},
		{name: "e-mail", sizes: load.MailSizesBox, create: 4, read: 2, remove: 3},
		{name: "photos", sizes: load.PhotoSizesBox, create: 1, read: 9},
	}
}

// volumesLayouts are what the files are in, by whether that is plain directories.
var volumesLayouts = map[bool]string{false: "volumes", true: "directories"} //nolint:gochecknoglobals // does not change

// volumesRow is one work in one layout.
type volumesRow struct {
	Net    volumesNet       `json:"nodes"`
	Work   string           `json:"work"`
	Layout string           `json:"layout"`
	Each   []load.BoxResult `json:"each"`
}

// all joins a figure of all clients.
func (r volumesRow) all(figure func(load.BoxResult) []float64) []float64 {
	var out []float64
	for _, e := range r.Each {
		out = append(out, figure(e)...)
	}
	return out
}

func (r volumesRow) creates() []float64 {
	return r.all(func(e load.BoxResult) []float64 { return e.Create })
}
func (r volumesRow) reads() []float64 {
	return r.all(func(e load.BoxResult) []float64 { return e.Read })
}
func (r volumesRow) deletes() []float64 {
	return r.all(func(e load.BoxResult) []float64 { return e.Delete })
}

// seconds is from the first start to the last end.
func (r volumesRow) seconds() float64 {
	began, ended := r.Each[0].Began, r.Each[0].Ended
	for _, e := range r.Each {
		began, ended = min(began, e.Began), max(ended, e.Ended)
	}
	return float64(ended-began) / 1e6
}

// rate is how many operations a second all clients did together.
func (r volumesRow) rate() float64 {
	return float64(len(r.creates())+len(r.reads())+len(r.deletes())) / r.seconds()
}

// lost lists what was acknowledged and is not so.
func (r volumesRow) lost() (out []string) {
	for _, e := range r.Each {
		out = append(out, e.Lost...)
	}
	return out
}

func runVolumes(ctx context.Context, env *experiment.Env) error {
	p, err := planVolumes(env)
	if err != nil {
		return err
	}
	wide, err := p.topology(volumesWide)
	if err != nil {
		return err
	}
	f, err := env.Folder("volumes", wide)
	if err != nil {
		return err
	}
	var rows []volumesRow
	var o outcome
	for _, n := range []volumesNet{volumesWide, volumesLocal} {
		t, err := p.topology(n)
		if err != nil {
			return err
		}
		var got []volumesRow
		out, err := withLab(ctx, env, f, t, func(ctx context.Context, b *bed) (err error) {
			got, err = volumesIn(ctx, b, p, n)
			b.final = slices.ContainsFunc(got, func(r volumesRow) bool { return len(r.lost()) > 0 })
			return err
		})
		if err != nil {
			return err
		}
		rows = append(rows, got...)
		if out.void != "" {
			o.void = string(n) + ": " + out.void
		}
		o.earlier = append(o.earlier, out.earlier...)
	}
	r := volumesReport(p, rows)
	o.mark(&r)
	if err := f.Finish(r, env.Out); err != nil {
		return err
	}
	for _, row := range rows {
		if lost := row.lost(); len(lost) > 0 {
			return fault.Errorf(fault.Corrupt, "experiments.volumes", row.Layout, "%d acknowledged operations of %s do not show: %s", len(lost), row.Work, lost[0])
		}
	}
	return nil
}

// volumesIn does all works in one lab.
func volumesIn(ctx context.Context, b *bed, p volumesPlan, n volumesNet) ([]volumesRow, error) {
	var at []place
	for _, h := range b.Topology().Hosts {
		host, err := b.host(h)
		if err != nil {
			return nil, err
		}
		at = append(at, host)
	}
	cues := "/.Site=s1/.RepSites=3"
	if n == volumesLocal {
		cues = "/"
	}
	var rows []volumesRow
	for i, w := range volumesWorks() {
		if !p.does(w, n) {
			continue
		}
		for _, plain := range []bool{false, true} {
			b.say("volumes: %s, %s in %s", n, w.name, volumesLayouts[plain])
			folder := fmt.Sprintf("%s-%d", volumesLayouts[plain], i)
			if err := at[0].work(ctx, nil, append(p.words("make", at[0], w, folder, plain, b.env.Seed), "--cues", cues)...); err != nil {
				return nil, err
			}
			r, err := p.work(ctx, b, at, w, folder, plain)
			if err != nil {
				return nil, err
			}
			r.Net = n
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// does reports whether a work is done over a net. In one place nothing is far; the short
// form does there the e-mail alone, and creates over the wide area from afar alone.
func (p volumesPlan) does(w volumesWork, n volumesNet) bool {
	far := w.single && w.hosts[0] > 0
	if n == volumesLocal {
		return !far && (!p.short || w.sizes == load.MailSizesBox)
	}
	return !p.short || far || !w.single
}

// work has the clients of a work do it at once.
func (p volumesPlan) work(ctx context.Context, b *bed, at []place, w volumesWork, folder string, plain bool) (volumesRow, error) {
	if w.hosts != nil {
		var some []place
		for _, i := range w.hosts {
			some = append(some, at[i])
		}
		at = some
	}
	r := volumesRow{Work: w.name, Layout: volumesLayouts[plain], Each: make([]load.BoxResult, len(at))}
	g, ctx := errgroup.WithContext(ctx)
	for i, host := range at {
		g.Go(func() error {
			words := append(p.words("work", host, w, folder, plain, b.env.Seed), "--worker", host.host)
			if w.single {
				words = append(words, "--each", strconv.Itoa(p.creates))
			} else {
				words = append(words, "--workers", strconv.Itoa(p.workers), "--for", p.length.String())
			}
			return host.work(ctx, &r.Each[i], words...)
		})
	}
	if err := g.Wait(); err != nil {
		return r, err
	}
	for _, e := range r.Each {
		if e.Failed > 0 {
			b.say("volumes: %s at %s: %d operations failed, the first with: %s", w.name, e.Site, e.Failed, e.First)
		}
	}
	return r, nil
}

func (p volumesPlan) words(way string, at place, w volumesWork, folder string, plain bool, seed uint64) []string {
	words := []string{"volumes", way, "--contact", at.contact, "--site", at.site, "--folder", folder, "--sizes", string(w.sizes), "--seed", strconv.FormatUint(seed, 10)}
	if plain {
		words = append(words, "--plain")
	}
	for _, v := range []struct {
		flag  string
		value int
	}{{"boxes", p.boxes}, {"planted", p.planted}, {"create", w.create}, {"read", w.read}, {"delete", w.remove}} {
		words = append(words, "--"+v.flag, strconv.Itoa(v.value))
	}
	return words
}
