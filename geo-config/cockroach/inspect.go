package cockroach

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// Feature is something that a database has or lacks.
type Feature struct {
	Name string `json:"name"`
	// Supported features are there, and switched on.
	Supported bool `json:"supported"`
	// Needed features must be there: without one the store loses changes.
	Needed bool   `json:"needed"`
	Detail string `json:"detail"`
}

// Inspect tells what a database supports, and what its tables are.
func Inspect(ctx context.Context, o Options) ([]Feature, error) {
	const op fault.Op = "cockroach.Inspect"
	o = o.defaults()
	pool, where, err := connect(o)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	i := &inspection{ctx: ctx, q: pool}
	if i.dialect, err = dialectOf(ctx, pool); err != nil {
		return nil, failure(op, where, err)
	}
	version, err := schemaVersion(ctx, pool)
	if err != nil {
		return nil, failure(op, where, err)
	}
	i.note("database", true, false, i.dialect.version)
	detail := fmt.Sprintf("version %d in schema %s", version, o.Schema)
	if version == 0 {
		detail = "none in schema " + o.Schema + ": cartwheel geo-config init makes them"
	}
	i.note("tables", checkVersion(version) == nil, false, detail)
	if i.dialect.cockroach {
		i.cockroach()
	} else {
		i.postgresql()
	}
	return i.features, nil
}

// inspection is one run of Inspect. Settings that cannot be read are unsupported.
type inspection struct {
	ctx      context.Context
	q        querier
	dialect  dialect
	features []Feature
}

func (i *inspection) note(name string, supported, needed bool, detail string) {
	i.features = append(i.features, Feature{Name: name, Supported: supported, Needed: needed, Detail: detail})
}

// ask returns the first column of a query's first row.
func (i *inspection) ask(query string) string {
	var text string
	if err := i.q.QueryRow(i.ctx, query).Scan(&text); err != nil {
		return "not known: " + err.Error()
	}
	return text
}

func (i *inspection) postgresql() {
	sync, commit := i.ask("SHOW fsync"), i.ask("SHOW synchronous_commit")
	i.note("durable commits", sync == "on" && commit != "off" && commit != "local", true, "fsync is "+sync+", synchronous_commit is "+commit)
	i.note("regions", false, false, "PostgreSQL stands at one place: changes wait while it is away")
	i.note("follower reads", false, false, "only CockroachDB has them: backups read as exports do")
}

func (i *inspection) cockroach() {
	i.note("durable commits", true, true, "a majority of the replicas has each commit on its disk")
	regions := i.ask("SELECT coalesce(string_agg(region, ', '), '') FROM [SHOW REGIONS FROM DATABASE]")
	spans := regions != "" && !strings.HasPrefix(regions, "not known")
	if !spans {
		regions = "none: start the nodes with --locality, and run cartwheel geo-config init --primary-region"
	}
	i.note("regions", spans, false, regions)
	goal := i.ask("SELECT survival_goal FROM [SHOW SURVIVAL GOAL FROM DATABASE]")
	i.note("survives the loss of a region", goal == "region", false, "the survival goal is "+goal)
	i.note("follower reads", true, false, "backups read the nearest replica")
}

// Measure returns the median time of n commits, each of one row, on an empty
// store.
func Measure(ctx context.Context, s geoconfig.Store, n int) (time.Duration, error) {
	_, err := s.Apply(ctx, geoconfig.Batch{Key: "measure", Cluster: &geoconfig.Cluster{ID: "scratch", Generation: 1}})
	if err != nil {
		return 0, err
	}
	var times []time.Duration
	for i := range n {
		start := time.Now()
		name := fmt.Sprintf("s%d", i)
		if _, err := s.Apply(ctx, geoconfig.Batch{Key: name, Sites: []geoconfig.Site{{Name: ids.Site(name)}}}); err != nil {
			return 0, err
		}
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}
