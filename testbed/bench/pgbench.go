package bench

import (
	"context"
	"fmt"
	"regexp"
	"strconv"

	"cartwheel.dev/testbed/postgres"
)

// tps finds what pgbench counted.
var tps = regexp.MustCompile(`tps = ([0-9.]+) `)

// pgbench runs PostgreSQL's own benchmark, of the TPC-B kind, on a database of which all
// files are in the folder. Each transaction is synced.
func pgbench(ctx context.Context, p place) error {
	s, err := postgres.New(ctx, p.dir)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Start(ctx); err != nil {
		return err
	}
	fill, err := timed(func() error {
		_, err := s.Run(ctx, fmt.Sprintf("pgbench -q -i -s %d postgres", p.opt.PgbenchScale))
		return err
	})
	if err != nil {
		return err
	}
	p.out("pgbench fill", "ms", fill*1000)
	said, err := s.Run(ctx, fmt.Sprintf("pgbench -n -c 4 -j 2 -T %d postgres", p.opt.PgbenchSeconds))
	if err != nil {
		return err
	}
	m := tps.FindStringSubmatch(said)
	if m == nil {
		return fmt.Errorf("pgbench printed no line like %q:\n%s", tps, said)
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err == nil {
		p.out("pgbench, 4 clients", "/s", v)
	}
	return err
}
