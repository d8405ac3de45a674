package experiments

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/load"
	"cartwheel.dev/testbed/topology"
)

func scalability() experiment.Experiment {
	return experiment.Experiment{
		Name:    "scalability",
		Summary: "more and more clients read files of each other at once: files at all sites, and files at one server",
		Settings: []experiment.Setting{
			{Name: "clients", Default: "1,2,4,8", Help: "clients that read at once, each at a site of its own (1,2 in the short form)"},
			{Name: "files", Default: "10", Help: "files of each owner, and files that each client reads (2 in the short form)"},
			{Name: "bytes", Default: "1048576", Help: "bytes of each file"},
			{Name: "replicas", Default: "1", Help: "replicas of the files at all sites; the one server has one"},
			{Name: "mbit", Default: "10", Help: "each site's link, Mbit/s"},
			{Name: "rtt", Default: "100", Help: "round trip between sites, ms"},
		},
		Run: runScalability,
	}
}

// scalabilityPlan is what is read, and over what.
type scalabilityPlan struct {
	clients  []int // of each round
	owners   int   // sites with a client
	files    int
	bytes    int
	replicas int
	mbit     float64
	rtt      float64
}

func planScalability(env *experiment.Env) (scalabilityPlan, error) {
	const op fault.Op = "experiments.planScalability"
	p := scalabilityPlan{owners: 2}
	list, err := numbers(env.Text("clients"), 1, 100)
	if err != nil {
		return p, err
	}
	v := map[string]float64{}
	for _, name := range []string{"files", "bytes", "replicas", "mbit", "rtt"} {
		if v[name], err = env.Number(name); err != nil {
			return p, err
		}
	}
	if env.Short {
		list, v["files"] = []float64{1, 2}, min(v["files"], 2)
	}
	for _, n := range list {
		p.clients = append(p.clients, int(n))
		p.owners = max(p.owners, int(n))
	}
	p.files, p.bytes, p.replicas, p.mbit, p.rtt = int(v["files"]), int(v["bytes"]), int(v["replicas"]), v["mbit"], v["rtt"]
	if p.files < 1 || p.bytes < 1 || p.replicas < 1 || !(p.mbit > 0) {
		return p, fault.E(fault.Usage, op, "files", "there is one file, one byte and one replica at least, and a link")
	}
	return p, nil
}

// scalabilityServer is the site that holds everything where there is one server.
const scalabilityServer = "server"

// topology has a site for each owner and one for the server, all with the same
// link.
func (p scalabilityPlan) topology() (*topology.Topology, error) {
	var y strings.Builder
	fmt.Fprintf(&y, "name: scalability\ndefaults: {nodes: 1, link: {rate: %g Mbps}}\nsites:\n  - name: %s\n", p.mbit, scalabilityServer)
	for i := range p.owners {
		fmt.Fprintf(&y, "  - name: %s\n", scalabilitySite(i))
	}
	fmt.Fprintf(&y, "wan: {rtt: %g ms}\n", p.rtt)
	return described("scalability", y.String())
}

func scalabilitySite(i int) string { return fmt.Sprintf("s%02d", i+1) }

// scalabilityLayout is where the files are.
type scalabilityLayout struct {
	Name string `json:"layout"`
	dir  string
	one  bool // all at the server
}

func scalabilityLayouts() []scalabilityLayout {
	return []scalabilityLayout{{Name: "all sites", dir: "spread"}, {Name: "one server", dir: "single", one: true}}
}

// scalabilityRow is one round: so many clients at once, in one layout.
type scalabilityRow struct {
	scalabilityLayout
	Clients int              `json:"clients"`
	Read    []float64        `json:"read_ms"` // each file of each client
	Mbit    float64          `json:"mbit"`    // of all clients, from the first start to the last end
	Each    []load.SetResult `json:"each"`
}

func newScalabilityRow(l scalabilityLayout, each []load.SetResult) scalabilityRow {
	r := scalabilityRow{scalabilityLayout: l, Clients: len(each), Each: each}
	began, ended, bytes := each[0].Began, each[0].Ended, int64(0)
	for _, e := range each {
		r.Read = append(r.Read, e.Read...)
		began, ended, bytes = min(began, e.Began), max(ended, e.Ended), bytes+e.Bytes
	}
	r.Mbit = float64(bytes) * 8 / float64(ended-began) // bits a microsecond are Mbit/s
	return r
}

func runScalability(ctx context.Context, env *experiment.Env) error {
	p, err := planScalability(env)
	if err != nil {
		return err
	}
	t, err := p.topology()
	if err != nil {
		return err
	}
	f, err := env.Folder("scalability", t)
	if err != nil {
		return err
	}
	var rows []scalabilityRow
	out, err := withLab(ctx, env, f, t, func(ctx context.Context, b *bed) (err error) {
		rows, err = scalabilityRounds(ctx, b, p)
		return err
	})
	if err != nil {
		return err
	}
	r := scalabilityReport(p, rows)
	return out.end(f, env, r, nil)
}

func scalabilityRounds(ctx context.Context, b *bed, p scalabilityPlan) ([]scalabilityRow, error) {
	places, err := b.everywhere()
	if err != nil {
		return nil, err
	}
	server, owners := places[0], places[1:] // in the topology's order
	for _, l := range scalabilityLayouts() {
		b.say("scalability: %d files of %d bytes at %s", p.owners*p.files, p.bytes, l.Name)
		if err := p.plant(ctx, b, l, server, owners); err != nil {
			return nil, err
		}
	}
	var rows []scalabilityRow
	for _, n := range p.clients {
		for _, l := range scalabilityLayouts() {
			b.say("scalability: %d clients, files at %s", n, l.Name)
			r, err := p.read(ctx, b, l, owners[:n])
			if err != nil {
				return rows, err
			}
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// plant makes the files of a layout. Each owner's site writes its own; the server
// writes all of them where it holds them.
func (p scalabilityPlan) plant(ctx context.Context, b *bed, l scalabilityLayout, server place, owners []place) error {
	if err := mkdir(ctx, filepath.Join(server.mount, ".Site="+server.site, l.dir)); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(2) // the machine is small; nothing is timed here
	for i, at := range owners {
		g.Go(func() error {
			replicas := p.replicas
			if l.one {
				at, replicas = server, 1
			}
			folder := filepath.Join(at.mount, ".Site="+at.site, fmt.Sprintf(".RepLevel=%d", replicas), l.dir, load.SetFolder(i))
			if err := mkdir(ctx, folder); err != nil {
				return err
			}
			return at.work(ctx, nil, p.words("plant", at, l, i, b.env.Seed)...)
		})
	}
	return g.Wait()
}

// read has clients read at once, with cold caches.
func (p scalabilityPlan) read(ctx context.Context, b *bed, l scalabilityLayout, clients []place) (scalabilityRow, error) {
	for _, c := range clients {
		if err := c.cold(ctx); err != nil {
			return scalabilityRow{}, err
		}
	}
	each := make([]load.SetResult, len(clients))
	g, ctx := errgroup.WithContext(ctx)
	for i, c := range clients {
		g.Go(func() error { return c.work(ctx, &each[i], p.words("read", c, l, i, b.env.Seed)...) })
	}
	if err := g.Wait(); err != nil {
		return scalabilityRow{}, err
	}
	return newScalabilityRow(l, each), nil
}

func (p scalabilityPlan) words(way string, at place, l scalabilityLayout, own int, seed uint64) []string {
	words := []string{"set", way, filepath.Join(at.mount, l.dir)}
	for _, v := range []struct {
		flag  string
		value int
	}{{"owners", p.owners}, {"own", own}, {"files", p.files}, {"bytes", p.bytes}, {"reads", p.files}} {
		words = append(words, "--"+v.flag, strconv.Itoa(v.value))
	}
	return append(words, "--seed", strconv.FormatUint(seed, 10))
}

// of are the rows of one layout, fewest clients first.
func (l scalabilityLayout) of(rows []scalabilityRow) []scalabilityRow {
	var out []scalabilityRow
	for _, r := range rows {
		if r.scalabilityLayout == l {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b scalabilityRow) int { return a.Clients - b.Clients })
	return out
}
