package cockroach

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Locality says how Migrate homes the tables in the regions of a CockroachDB.
// Elsewhere it has no effect.
type Locality struct {
	// Primary is the region of the counters, the audit log and the keys. Empty:
	// the database's own, or if it has none, none is set.
	Primary string
}

// locality runs the files that need regions. They run again each time, since the
// database may have got another region, and each of their statements may.
func (m *migrator) locality(ctx context.Context, l Locality) error {
	list, err := migrationsOf(localityKind)
	if err != nil {
		return err
	}
	if !m.dialect.cockroach {
		for _, file := range list {
			m.report.Skipped = append(m.report.Skipped, file.name+": only CockroachDB has regions and zones")
		}
		return nil
	}
	primary, others, err := m.regions(ctx, l)
	if err != nil && !errors.Is(err, errNoPrimary) {
		return err
	}
	if err == nil {
		m.report.Regions = append([]string{primary}, others...)
	}
	var database string
	if err := m.pool.QueryRow(ctx, "SELECT current_database()").Scan(&database); err != nil {
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
func (m *migrator) regions(ctx context.Context, l Locality) (primary string, others []string, err error) {
	rows, err := m.pool.Query(ctx, "SELECT region FROM [SHOW REGIONS FROM CLUSTER] ORDER BY region")
	if err != nil {
		return "", nil, err
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return "", nil, err
	}
	primary = l.Primary
	err = m.pool.QueryRow(ctx, `SELECT region FROM [SHOW REGIONS FROM DATABASE] WHERE "primary"`).Scan(&primary)
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
