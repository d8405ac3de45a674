package schema

import (
	"context"
	"fmt"
	"strings"

	"cartwheel.dev/geo-config/cockroach/database"
	"cartwheel.dev/geo-config/fault"
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
func Inspect(ctx context.Context, d *database.Database) ([]Feature, error) {
	const op fault.Op = "schema.Inspect"
	version, err := Version(ctx, d)
	if err != nil {
		return nil, d.Failure(op, err)
	}
	i := &inspection{ctx: ctx, db: d}
	i.note("database", true, false, d.Version)
	detail := fmt.Sprintf("version %d in schema %s", version, d.Schema)
	if version == 0 {
		detail = "none in schema " + d.Schema + ": cartwheel geo-config init makes them"
	}
	i.note("tables", Check(version) == nil, false, detail)
	if d.IsCockroach() {
		i.cockroach()
	} else {
		i.postgresql()
	}
	return i.features, nil
}

// inspection is one run of Inspect. Settings that cannot be read are unsupported.
type inspection struct {
	ctx      context.Context
	db       *database.Database
	features []Feature
}

func (i *inspection) note(name string, supported, needed bool, detail string) {
	i.features = append(i.features, Feature{Name: name, Supported: supported, Needed: needed, Detail: detail})
}

// ask returns the first column of a query's first row.
func (i *inspection) ask(query string) string {
	var text string
	if err := i.db.Pool.QueryRow(i.ctx, query).Scan(&text); err != nil {
		return "not known: " + err.Error()
	}
	return text
}

func (i *inspection) postgresql() {
	sync := i.ask("SHOW fsync")
	i.note("durable commits", sync == "on", true, "fsync is "+sync)
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
