package schema

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"cartwheel.dev/geo-config/cockroach/database"
	"cartwheel.dev/geo-config/fault"
)

// errNoPrimary: no region orders the changes.
var errNoPrimary = errors.New("no primary region")

// Home places the tables in the regions of a CockroachDB, and adds what it did to
// a report. Elsewhere it only says so. Primary is the region of the counters, the
// audit log and the keys; empty: the database's own, or if it has none, none is
// set. It may be repeated, and after the database got another region it has to
// be.
func Home(ctx context.Context, d *database.Database, primary string, report *Report) error {
	const op fault.Op = "schema.Home"
	m := &migrator{db: d, report: *report}
	err := m.locality(ctx, primary)
	*report = m.report
	return d.Failure(op, err)
}

func (m *migrator) locality(ctx context.Context, primary string) error {
	list, err := migrationsOf(localityKind)
	if err != nil {
		return err
	}
	if !m.db.IsCockroach() {
		for _, file := range list {
			m.report.Skipped = append(m.report.Skipped, file.name+": only CockroachDB has regions and zones")
		}
		return nil
	}
	primary, others, err := m.regions(ctx, primary)
	if err != nil && !errors.Is(err, errNoPrimary) {
		return err
	}
	if err == nil {
		m.report.Regions = append([]string{primary}, others...)
	}
	var database string
	if err := m.db.Pool.QueryRow(ctx, "SELECT current_database()").Scan(&database); err != nil {
		return err
	}
	for _, file := range list {
		if len(m.report.Regions) < file.regions {
			m.report.Skipped = append(m.report.Skipped, fmt.Sprintf("%s: the database spans %d regions, and %d are needed", file.name, len(m.report.Regions), file.regions))
			continue
		}
		if err := m.apply(ctx, file, fill(file.statements, database, primary, others)); err != nil {
			return err
		}
	}
	return nil
}

// regions returns the primary region and the others, of those that the nodes of
// the CockroachDB were started in.
func (m *migrator) regions(ctx context.Context, wanted string) (primary string, others []string, err error) {
	rows, err := m.db.Pool.Query(ctx, "SELECT region FROM [SHOW REGIONS FROM CLUSTER] ORDER BY region")
	if err != nil {
		return "", nil, err
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return "", nil, err
	}
	primary = wanted
	err = m.db.Pool.QueryRow(ctx, `SELECT region FROM [SHOW REGIONS FROM DATABASE] WHERE "primary"`).Scan(&primary)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return "", nil, err
	}
	if primary == "" {
		return "", nil, errNoPrimary
	}
	return primary, slices.DeleteFunc(all, func(r string) bool { return r == primary }), nil
}

// fill puts names into statements. One with {region} runs for each other region.
func fill(statements []string, database, primary string, others []string) []string {
	var out []string
	for _, s := range statements {
		s = strings.NewReplacer("{database}", quoted(database), "{primary}", quoted(primary)).Replace(s)
		if !strings.Contains(s, "{region}") {
			out = append(out, s)
			continue
		}
		for _, region := range others {
			out = append(out, strings.ReplaceAll(s, "{region}", quoted(region)))
		}
	}
	return out
}

// quoted makes an identifier of any name.
func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }
