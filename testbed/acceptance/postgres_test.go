package acceptance

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"cartwheel.dev/testbed/postgres"
)

// database is a PostgreSQL cluster whose data directory lies on a mount.
type database struct {
	*postgres.Server
	d *demo
}

func startDatabase(d *demo, data string) *database {
	d.t.Helper()
	s, err := postgres.New(context.Background(), data)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			d.t.Error(err)
		}
	})
	p := &database{s, d}
	p.start()
	return p
}

func (p *database) start() {
	p.d.t.Helper()
	if err := p.Start(context.Background()); err != nil {
		p.d.t.Fatal(err)
	}
}

func (p *database) sh(script string) {
	p.d.t.Helper()
	if _, err := p.Run(context.Background(), script); err != nil {
		p.d.t.Fatal(err)
	}
}

// query returns the rows of a query, unaligned, without a header.
func (p *database) query(sql string) string {
	p.d.t.Helper()
	out, err := p.Query(context.Background(), sql)
	if err != nil {
		p.d.t.Fatal(err)
	}
	return out
}

// balanced fails the test where the sums of pgbench's tables differ: every
// transaction adds the same amount to one row of each.
func (p *database) balanced() {
	p.d.t.Helper()
	got := p.query(`select (select sum(abalance) from pgbench_accounts) = s and (select sum(bbalance) from pgbench_branches) = s
		and (select sum(tbalance) from pgbench_tellers) = s, s from (select coalesce(sum(delta), 0) as s from pgbench_history) as h`)
	if !strings.HasPrefix(got, "t|") {
		p.d.t.Errorf("the sums of pgbench's tables differ: %q", got)
	}
}

// check runs amcheck over every table and index.
func (p *database) check() {
	p.d.t.Helper()
	p.sh("pg_amcheck --install-missing --heapallindexed --parent-check -d postgres")
}

// transactions runs pgbench and returns how many transactions it was told are
// committed.
func (p *database) transactions(seconds int) func() int {
	p.d.t.Helper()
	cmd := p.Command(context.Background(), fmt.Sprintf("pgbench -n -c 4 -j 2 -T %d postgres", seconds))
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		p.d.t.Fatal(err)
	}
	return func() int {
		p.d.t.Helper()
		err := cmd.Wait()
		var n int
		_, after, found := strings.Cut(out.String(), "number of transactions actually processed: ")
		if found {
			_, _ = fmt.Sscan(after, &n)
		}
		if err != nil || n == 0 {
			p.d.t.Fatalf("pgbench: %v, %d transactions:\n%s", err, n, tail([]byte(out.String()), 2000))
		}
		return n
	}
}

func TestPostgreSQL_OutlivesItsActive(t *testing.T) {
	d := startPrograms(t)
	dir := d.mkdir("pg")
	// The database runs at the second site, its data's active is at the first.
	p := startDatabase(d, dir[1])
	p.sh("pgbench -i -s 2 postgres")
	wait := p.transactions(40)
	d.await("the first transactions", time.Minute, func() error {
		if p.query("select count(*) > 50 from pgbench_history") != "t" {
			return fmt.Errorf("fewer than 50 are committed")
		}
		return nil
	})
	d.fail(d.Sites[0].Name)
	done := wait()
	t.Logf("%d transactions while the active was killed", done)
	if got := p.query("select count(*) from pgbench_history"); got != fmt.Sprint(done) {
		t.Errorf("the history has %s rows, want the %d that pgbench was told are committed", got, done)
	}
	p.balanced()
	p.check()
	d.heal(d.Sites[0].Name)
	d.awaitWhole(3 * time.Minute)
	p.check()
}

func TestPostgreSQL_RecoversFromItsOwnCrash(t *testing.T) {
	d := startPrograms(t)
	dir := d.mkdir("pg")
	p := startDatabase(d, dir[0])
	p.sh("pgbench -i -s 2 postgres")
	for range 3 {
		before := p.query("select count(*) from pgbench_history")
		p.transactions(5)()
		committed := p.query("select count(*) from pgbench_history")
		if before == committed {
			t.Fatal("no transaction was committed")
		}
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		p.start()
		if got := p.query("select count(*) from pgbench_history"); got != committed {
			t.Errorf("after the crash the history has %s rows, want %s", got, committed)
		}
		p.balanced()
	}
	p.check()
	// The same directory serves at another site once the server here is gone.
	p.Stop(syscall.SIGINT)
	p.Data = dir[2]
	p.start()
	p.balanced()
	p.check()
}
