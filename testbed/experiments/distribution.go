package experiments

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/load"
)

// distributionAll are the ways of the whole form, and of the short one.
const (
	distributionAll   = "one,all,hotspot,direct,bittorrent"
	distributionShort = "one,all,hotspot"
)

func distribution() experiment.Experiment {
	return experiment.Experiment{
		Name:    "distribution",
		Summary: "all hosts read one file of one site at once: without a cue, below .Hotspot/.WholeFile, by HTTP and by BitTorrent",
		Settings: []experiment.Setting{
			{Name: "topology", Default: "emulab-5x3", Help: "the file is at its last site, and hosts of the others read it"},
			{Name: "bytes", Default: "50000000", Help: "bytes of the file (600,000 in the short form)"},
			{Name: "replicas", Default: "1", Help: "replicas of the file"},
			{Name: "ways", Default: distributionAll, Help: "which reads: one host alone, all without a cue, all below the cues, all by HTTP, all by BitTorrent (the first three in the short form)"},
		},
		Run: runDistribution,
	}
}

// distributionWay is who reads, and below which cues.
type distributionWay struct {
	Name string `json:"way"`
	key  string // in the setting
	cues string // in the path
	one  bool   // one host alone
	past bool   // past Cartwheel, from local disk to local disk
}

func distributionWays() []distributionWay {
	return []distributionWay{
		{Name: "one host alone", key: "one", one: true},
		{Name: "all hosts, no cue", key: "all"},
		{Name: "all hosts, .Hotspot/.WholeFile", key: "hotspot", cues: ".Hotspot/.WholeFile"},
		{Name: "all hosts, HTTP from the origin", key: "direct", past: true},
		{Name: "all hosts, BitTorrent", key: "bittorrent", past: true},
	}
}

// distributionPlan is what is read, and how.
type distributionPlan struct {
	bytes, replicas int
	ways            []distributionWay
}

func planDistribution(env *experiment.Env) (p distributionPlan, err error) {
	const op fault.Op = "experiments.planDistribution"
	bytes, err := env.Number("bytes")
	if err != nil {
		return p, err
	}
	replicas, err := env.Number("replicas")
	if err != nil {
		return p, err
	}
	if env.Short {
		bytes = min(bytes, 6e5)
	}
	p.bytes, p.replicas = int(bytes), int(replicas)
	if p.bytes < 1 || p.replicas < 1 {
		return p, fault.E(fault.Usage, op, "bytes", "the file has a byte and a replica at least")
	}
	ways := env.Text("ways")
	if env.Short && ways == distributionAll {
		ways = distributionShort
	}
	for _, key := range strings.Split(ways, ",") {
		i := slices.IndexFunc(distributionWays(), func(w distributionWay) bool { return w.key == strings.TrimSpace(key) })
		if i < 0 {
			return p, fault.Errorf(fault.Usage, op, "ways", "%q is no way: there are %s", key, distributionAll)
		}
		p.ways = append(p.ways, distributionWays()[i])
	}
	return p, nil
}

// distributionRow is one way: how long each reader took, and what crossed the wide
// area meanwhile.
type distributionRow struct {
	distributionWay
	Read  []float64 `json:"read_ms"` // each reader's
	Bytes uint64    `json:"wan_bytes"`
	Sites int       `json:"sites"` // with a reader
}

func runDistribution(ctx context.Context, env *experiment.Env) error {
	p, err := planDistribution(env)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(p.ways, func(w distributionWay) bool { return w.key == "bittorrent" }) {
		if err := torrentNeeds(ctx); err != nil {
			return err
		}
	}
	t, err := chosen(env)
	if err != nil {
		return err
	}
	f, err := env.Folder("distribution", t)
	if err != nil {
		return err
	}
	var rows []distributionRow
	out, err := withLab(ctx, env, f, t, func(ctx context.Context, b *bed) error {
		rows = nil
		for _, w := range p.ways {
			row, err := p.round(ctx, b, w)
			if err != nil {
				return err
			}
			rows = append(rows, row)
		}
		return nil
	})
	if err != nil {
		return err
	}
	r := distributionReport(p, t, rows)
	return out.end(f, env, r, nil)
}

// readers are a place at each host with a mount, but for the last site's, and that
// site's own place.
func (p distributionPlan) readers(b *bed) (origin place, readers []place, err error) {
	sites := b.Topology().Sites
	last := sites[len(sites)-1].Name
	if origin, err = b.at(last); err != nil {
		return origin, nil, err
	}
	for _, h := range b.Topology().Hosts {
		if h.Site == last {
			continue
		}
		at, err := b.place(h)
		if err != nil {
			return origin, nil, err
		}
		readers = append(readers, at)
	}
	if len(readers) == 0 {
		return origin, nil, fault.E(fault.Usage, "experiments.readers", "topology", "there is no host at another site than the last one")
	}
	return origin, readers, nil
}

// round has readers bring the file in one way; each way has a file of its own.
func (p distributionPlan) round(ctx context.Context, b *bed, w distributionWay) (distributionRow, error) {
	row := distributionRow{distributionWay: w}
	origin, readers, err := p.readers(b)
	if err != nil {
		return row, err
	}
	b.say("distribution: %s", w.Name)
	if !w.past {
		if err := p.plant(ctx, b, w, origin); err != nil {
			return row, err
		}
	}
	if w.one {
		readers = readers[:1]
	}
	sites := map[string]bool{}
	for _, r := range readers {
		sites[r.site] = true
		if err := r.cold(ctx); err != nil {
			return row, err
		}
	}
	row.Sites = len(sites)
	before, err := wanBytes(ctx, b)
	if err != nil {
		return row, err
	}
	switch w.key {
	case "direct":
		row.Read, err = p.direct(ctx, b, origin, readers)
	case "bittorrent":
		row.Read, err = p.torrent(ctx, b, origin, readers)
	default:
		row.Read, err = p.read(ctx, w, readers, b.env.Seed)
	}
	if err != nil {
		return row, err
	}
	after, err := wanBytes(ctx, b)
	row.Bytes = after - before
	return row, err
}

// plant makes the file of a way at the origin.
func (p distributionPlan) plant(ctx context.Context, b *bed, w distributionWay, origin place) error {
	folder := filepath.Join(origin.mount, ".Site="+origin.site, fmt.Sprintf(".RepLevel=%d", p.replicas), w.key, load.SetFolder(0))
	if err := mkdir(ctx, folder); err != nil {
		return err
	}
	return origin.work(ctx, nil, p.words("plant", filepath.Join(origin.mount, w.key), 0, b.env.Seed)...)
}

// read has all readers read at once, and returns how many milliseconds each took.
func (p distributionPlan) read(ctx context.Context, w distributionWay, readers []place, seed uint64) ([]float64, error) {
	return everyReader(ctx, readers, func(ctx context.Context, _ int, at place, into *load.SetResult) error {
		return at.work(ctx, into, p.words("read", filepath.Join(at.mount, w.cues, w.key), 1, seed)...)
	})
}

func (p distributionPlan) words(way, dir string, own int, seed uint64) []string {
	return []string{"set", way, dir, "--owners", "2", "--own", strconv.Itoa(own), "--files", "1", "--reads", "1",
		"--bytes", strconv.Itoa(p.bytes), "--seed", strconv.FormatUint(seed, 10)}
}

// wanBytes counts what has crossed the wide area and arrived, headers included.
func wanBytes(ctx context.Context, b *bed) (uint64, error) {
	stats, err := b.Network().Stats(ctx)
	if err != nil {
		return 0, err
	}
	n := uint64(0)
	for _, c := range stats.Pairs {
		n += c.Through
	}
	return n, nil
}
