package acceptance

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// postgres is a PostgreSQL cluster whose data directory lies on a mount. It
// runs as the user postgres, as the server refuses root.
type postgres struct {
	d            *demo
	bin          string
	data, socket string
	owner        *syscall.Credential
	server       *exec.Cmd // nil while it does not run
}

func startPostgres(d *demo, data string) *postgres {
	d.t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		d.t.Fatal("PostgreSQL is not installed: run scripts/setup programs")
	}
	socket, err := os.MkdirTemp("", "pg") // short: sockets' paths end at 108 bytes
	if err != nil {
		d.t.Fatal(err)
	}
	p := &postgres{d: d, bin: filepath.Dir(found[0]), data: data, socket: socket, owner: credential(d.t, "postgres")}
	d.t.Cleanup(func() {
		p.stop(syscall.SIGQUIT)
		_ = os.RemoveAll(socket)
	})
	d.run("chown", "postgres:postgres", data, socket)
	d.run("chmod", "700", data)
	p.sh("initdb -D " + data + " --data-checksums --no-locale -E UTF8")
	p.start()
	return p
}

// credential is what a process of the named user runs with.
func credential(t *testing.T, name string) *syscall.Credential {
	t.Helper()
	account, err := user.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func (p *postgres) try(script string) (string, error) {
	// A server that keeps its standard output would keep this test waiting.
	return try("runuser", "-u", "postgres", "--", "sh", "-c", "cd /; PATH="+p.bin+":$PATH; export PGHOST="+p.socket+"; "+script)
}

func (p *postgres) sh(script string) string {
	p.d.t.Helper()
	out, err := p.try(script)
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(p.socket, "log"))
		p.d.t.Fatalf("%s: %v\n%s\nserver log:\n%s", script, err, tail([]byte(out), 4000), tail(log, 3000))
	}
	return out
}

// start runs the server as a child of this process, so that a killed one is
// reaped and its process ID does not look alive to the next one.
func (p *postgres) start() {
	p.d.t.Helper()
	log, err := os.OpenFile(filepath.Join(p.socket, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		p.d.t.Fatal(err)
	}
	defer log.Close()
	p.server = exec.Command(filepath.Join(p.bin, "postgres"), "-D", p.data, "-k", p.socket, "-c", "listen_addresses=", "-c", "max_connections=40")
	p.server.Stdout, p.server.Stderr, p.server.Dir = log, log, "/"
	p.server.SysProcAttr = &syscall.SysProcAttr{Credential: p.owner, Pdeathsig: syscall.SIGINT}
	if err := p.server.Start(); err != nil {
		p.d.t.Fatal(err)
	}
	p.d.await("the server to answer", 3*time.Minute, func() error {
		if _, err := p.try("psql -XAt -d postgres -c 'select 1'"); err != nil {
			text, _ := os.ReadFile(log.Name())
			return fmt.Errorf("%w: it said:\n%s", err, tail(text, 2000))
		}
		return nil
	})
}

// stop ends the server with a signal: SIGINT is its fast, SIGQUIT its immediate
// shutdown.
func (p *postgres) stop(how syscall.Signal) {
	if p.server == nil {
		return
	}
	leader, _ := p.leader()
	_ = syscall.Kill(leader, how)
	_ = p.server.Wait()
	p.server = nil
}

// leader is the process ID in the server's lock file.
func (p *postgres) leader() (int, error) {
	text, err := os.ReadFile(filepath.Join(p.data, "postmaster.pid"))
	if err != nil {
		return 0, err
	}
	var leader int
	_, err = fmt.Sscan(string(text), &leader)
	return leader, err
}

// query returns the rows of a query, unaligned, without a header.
func (p *postgres) query(sql string) string {
	p.d.t.Helper()
	return strings.TrimSpace(p.sh("psql -XAt -d postgres -c \"" + sql + "\""))
}

// kill ends the server and all its children with SIGKILL.
func (p *postgres) kill() {
	p.d.t.Helper()
	leader, err := p.leader()
	if err != nil {
		p.d.t.Fatal(err)
	}
	children, _ := try("pgrep", "-P", fmt.Sprint(leader))
	for _, field := range append(strings.Fields(children), fmt.Sprint(leader)) {
		var pid int
		if _, err := fmt.Sscan(field, &pid); err == nil && pid > 1 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	_ = p.server.Wait()
	p.server = nil
}

// balanced fails the test where the sums of pgbench's tables differ: every
// transaction adds the same amount to one row of each.
func (p *postgres) balanced() {
	p.d.t.Helper()
	got := p.query(`select (select sum(abalance) from pgbench_accounts) = s and (select sum(bbalance) from pgbench_branches) = s
		and (select sum(tbalance) from pgbench_tellers) = s, s from (select coalesce(sum(delta), 0) as s from pgbench_history) as h`)
	if !strings.HasPrefix(got, "t|") {
		p.d.t.Errorf("the sums of pgbench's tables differ: %q", got)
	}
}

// check runs amcheck over every table and index.
func (p *postgres) check() {
	p.d.t.Helper()
	p.sh("pg_amcheck --install-missing --heapallindexed --parent-check -d postgres")
}

// transactions runs pgbench and returns how many transactions it was told are
// committed.
func (p *postgres) transactions(seconds int) func() int {
	p.d.t.Helper()
	cmd := exec.Command("runuser", "-u", "postgres", "--", "sh", "-c",
		fmt.Sprintf("cd /; PATH=%s:$PATH; PGHOST=%s pgbench -n -c 4 -j 2 -T %d postgres", p.bin, p.socket, seconds))
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
	d := startPrograms(t, "runuser", "pgrep")
	dir := d.mkdir("pg")
	// The database runs at the second site, its data's active is at the first.
	p := startPostgres(d, dir[1])
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
	d := startPrograms(t, "runuser", "pgrep")
	dir := d.mkdir("pg")
	p := startPostgres(d, dir[0])
	p.sh("pgbench -i -s 2 postgres")
	for range 3 {
		before := p.query("select count(*) from pgbench_history")
		p.transactions(5)()
		committed := p.query("select count(*) from pgbench_history")
		if before == committed {
			t.Fatal("no transaction was committed")
		}
		p.kill()
		p.start()
		if got := p.query("select count(*) from pgbench_history"); got != committed {
			t.Errorf("after the crash the history has %s rows, want %s", got, committed)
		}
		p.balanced()
	}
	p.check()
	// The same directory serves at another site once the server here is gone.
	p.stop(syscall.SIGINT)
	p.data = dir[2]
	p.start()
	p.balanced()
	p.check()
}
