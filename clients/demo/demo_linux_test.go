package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"cartwheel.dev/clients/supervisor"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/inmem"
	geoserver "cartwheel.dev/node/geo/serve"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/wire"
	"go.uber.org/goleak"
)

// The test binary is also the programs that the demo starts: its first word
// says which, the site's name how it behaves.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "geo-config", "node", "mount", "run": // run is the gateway's
			os.Exit(fakeChild(os.Args[1], os.Args[2:]))
		case "whole-demo":
			os.Exit(wholeDemo(os.Args[2]))
		}
	}
	goleak.VerifyTestMain(m)
}

// journalEnv names the file into which the children write what they do.
const journalEnv = "DEMO_TEST_JOURNAL"

func note(format string, args ...any) {
	f, err := os.OpenFile(os.Getenv(journalEnv), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	fmt.Fprintf(f, format+"\n", args...)
}

func flagOf(args []string, name string) string {
	if i := slices.Index(args, name); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

func fakeChild(what string, args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	site := flagOf(args, "--site")
	if what == "run" {
		what, site = "gateway", strings.Join(args, " ")
	}
	if strings.HasPrefix(site, "dying") || flagOf(args, "--console") == "dying" {
		fmt.Fprintln(os.Stderr, "the reason is written here")
		return 3
	}
	if what == "geo-config" {
		host, end, err := fakeGeoConfig(flagOf(args, "--data"), flagOf(args, "--listen"), flagOf(args, "--admin"))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer end()
		fmt.Printf(`{"ready":true,"id":%q,"cluster":"c1","addresses":[%q]}`+"\n", host.KeyID(), host.Addresses()[0]+"/p2p/"+host.KeyID())
	} else if what == "node" {
		host, err := fakeNode(flagOf(args, "--data"), flagOf(args, "--listen"))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer host.Close()
		fmt.Printf(`{"ready":true,"id":%q,"addresses":[%q]}`+"\n", host.KeyID(), host.Addresses()[0]+"/p2p/"+host.KeyID())
	} else {
		fmt.Println(`{"ready":true}`)
	}
	<-ctx.Done()
	if strings.HasPrefix(site, "deaf") {
		select {}
	}
	note("%s %s", what, site)
	return 0
}

func fakeGeoConfig(data, listen, admin string) (*wire.Host, func(), error) {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, nil, err
	}
	key, err := wire.MakeKey(filepath.Join(data, "node.key"))
	if err != nil {
		return nil, nil, err
	}
	host, err := wire.New(wire.Options{Key: key, Listen: []string{listen}})
	if err != nil {
		return nil, nil, err
	}
	store := inmem.New()
	if _, err := store.Apply(context.Background(), geoconfig.Batch{Key: "found", Cluster: &geoconfig.Cluster{ID: "c1", Generation: 1}}); err != nil {
		return nil, nil, err
	}
	server := geoserver.Serve(host, store, geoserver.Options{Allow: func(peer string, _ bool) error {
		rows, err := store.Read(context.Background(), geoconfig.Query{Users: true})
		isAdmin := func(u geoconfig.User) bool { return u.Admin && u.Key == peer }
		if err != nil || peer != admin && !slices.ContainsFunc(rows.Users, isAdmin) {
			return fault.E(fault.Unauthorized, "", peer, "")
		}
		return nil
	}})
	if err := host.Listen(); err != nil {
		return nil, nil, err
	}
	return host, func() {
		rows, err := store.Read(context.Background(), geoconfig.Query{Sites: true, Nodes: true, Users: true})
		note("rows: %d sites, %d nodes, %d users, %v", len(rows.Sites), len(rows.Nodes), len(rows.Users), err)
		server.Close()
		host.Close()
		store.Close()
	}, nil
}

// fakeNode greets, and serves the root's slice from the second time on that it is
// asked.
func fakeNode(data, listen string) (*wire.Host, error) {
	key, err := wire.MakeKey(filepath.Join(data, "node.key"))
	if err != nil {
		return nil, err
	}
	host, err := wire.New(wire.Options{Key: key, Listen: []string{listen}})
	if err != nil {
		return nil, err
	}
	var asked atomic.Int32
	host.Inline(method.Hello, func(r *wire.Request) { r.Reply(&pb.HelloResponse{}) })
	host.Inline(method.SliceList, func(r *wire.Request) {
		row, err := json.Marshal(status.Slice{SliceRow: geoconfig.SliceRow{ID: 1}, Serving: asked.Add(1) > 1})
		if err != nil {
			r.Fail(err)
			return
		}
		r.Reply(&pb.SliceListResponse{Slices: [][]byte{row}})
	})
	return host, host.Listen()
}

// wholeDemo is a demo in a process of its own, to be killed.
func wholeDemo(dir string) int {
	self, err := os.Executable()
	if err == nil {
		err = Run(context.Background(), Options{Dir: dir, Sites: []string{"one"}, Mounts: true, Lease: time.Second, Cartwheeld: self, Cartwheel: self, Out: os.Stdout})
	}
	fmt.Println(err)
	return 1
}

// running is a demo under test.
type running struct {
	t       *testing.T
	dir     string
	cancel  context.CancelFunc
	force   chan struct{}
	done    chan error
	journal string

	mu  sync.Mutex
	out bytes.Buffer
}

func (r *running) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Write(p)
}

func (r *running) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.String()
}

const patience = 20 * time.Second

func start(t *testing.T, dir string, sites ...string) *running {
	t.Helper()
	return startWith(t, Options{Dir: dir, Sites: sites, Mounts: true})
}

// startWith runs a demo whose programs are this one.
func startWith(t *testing.T, o Options) *running {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &running{t: t, dir: o.Dir, force: make(chan struct{}), done: make(chan error, 1), journal: filepath.Join(t.TempDir(), "journal")}
	t.Setenv(journalEnv, r.journal)
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() {
		o.Lease, o.Cartwheeld, o.Cartwheel, o.Out, o.Force = time.Second, self, self, r, r.force
		r.done <- Run(ctx, o)
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-r.done:
			r.done <- err
		case <-time.After(2 * patience):
			t.Error("the demo did not end")
		}
	})
	return r
}

func (r *running) await(what string, ok func() bool) {
	r.t.Helper()
	for end := time.Now().Add(patience); !ok(); {
		select {
		case err := <-r.done:
			r.done <- err
			r.t.Fatalf("the demo ended by itself: %v; it said:\n%s", err, r.text())
		default:
		}
		if time.Now().After(end) {
			r.t.Fatalf("waited %v for %s; the demo said:\n%s", patience, what, r.text())
		}
		<-time.After(10 * time.Millisecond)
	}
}

func (r *running) ready() State {
	r.t.Helper()
	r.await("the demo to be ready", func() bool { return strings.Contains(r.text(), "\nready") })
	s, err := Load(r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func (r *running) end() error {
	r.t.Helper()
	r.cancel()
	select {
	case err := <-r.done:
		r.done <- err
		return err
	case <-time.After(2 * patience):
		r.t.Fatal("the demo did not end")
		return nil
	}
}

// there reports whether a process runs; one that has ended and that nobody has
// waited for does not.
func there(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(stat, []byte(") Z "))
}

func TestRun_StartsAndStopsInOrder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 25)) // too long for a socket's name
	r := start(t, dir, "tokyo", "boston")
	s := r.ready()
	if len(s.Control) > maxSocketPath {
		t.Errorf("the socket's name has %d bytes", len(s.Control))
	}
	visitor, err := dial(s.Control) // who says nothing must not hold up the end
	if err != nil {
		t.Fatal(err)
	}
	defer visitor.Close()
	if len(s.Sites) != 2 || s.Sites[0].Name != "tokyo" || s.Sites[0].Mount != filepath.Join(dir, "tokyo") || s.PID != os.Getpid() {
		t.Errorf("got %+v, want two sites with their mounts", s)
	}
	pids := []int{s.GeoConfig.PID}
	for _, site := range s.Sites {
		pids = append(pids, site.NodePID, site.MountPID)
	}
	for _, pid := range pids {
		if pid == 0 || !there(pid) {
			t.Errorf("process %d of demo.json does not run", pid)
		}
	}
	var contact struct {
		Cluster string   `json:"cluster"`
		Nodes   []string `json:"nodes"`
	}
	data, err := os.ReadFile(s.Contact)
	if err == nil {
		err = json.Unmarshal(data, &contact)
	}
	if err != nil || contact.Cluster != "c1" || len(contact.Nodes) != 2 {
		t.Errorf("got contact %+v (%v), want cluster c1 and two nodes", contact, err)
	}
	began := time.Now()
	if err := r.end(); err != nil {
		t.Errorf("the demo ended with %v", err)
	}
	if took := time.Since(began); took > supervisor.StopLimit/2 {
		t.Errorf("ending took %v", took)
	}
	if _, err := os.Stat(filepath.Dir(s.Control)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket's folder is still there: %v", err)
	}
	for _, pid := range pids {
		if there(pid) {
			t.Errorf("process %d is still there", pid)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	journal, err := os.ReadFile(r.journal)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(journal)), "\n")
	var order []string
	for _, l := range lines {
		order = append(order, strings.Fields(l)[0])
	}
	if want := []string{"mount", "mount", "node", "node", "geo-config", "rows:"}; !slices.Equal(order, want) {
		t.Errorf("stopped in the order %q, want %q", order, want)
	}
	if want := "rows: 2 sites, 2 nodes, 1 users, <nil>"; lines[len(lines)-1] != want {
		t.Errorf("geo-config was told %q, want %q", lines[len(lines)-1], want)
	}
}

func TestRun_EarlyDeathQuotesTheLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	r := start(t, dir, "tokyo", "dying")
	select {
	case err := <-r.done:
		r.done <- err
		if err == nil || !strings.Contains(err.Error(), "the reason is written here") || !strings.Contains(err.Error(), "dying") {
			t.Errorf("got %v, want the site and its log", err)
		}
	case <-time.After(patience):
		t.Fatal("the demo did not end")
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
}

func TestAsk_FailKillsANodeAndHealStartsIt(t *testing.T) {
	r := start(t, filepath.Join(t.TempDir(), "demo"), "tokyo", "boston")
	s := r.ready()
	second := Run(context.Background(), Options{Dir: r.dir, Sites: []string{"one"}, Out: r})
	if !fault.Is(second, fault.Busy) || !strings.Contains(second.Error(), r.dir) {
		t.Errorf("a second demo in the same folder: got %v, want busy with the folder", second)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, name := range []string{"boston", GeoConfigName} {
		pid := func() int {
			s, err := Load(r.dir)
			if err != nil {
				t.Fatal(err)
			}
			if name == GeoConfigName {
				return s.GeoConfig.PID
			}
			return s.Sites[1].NodePID
		}
		before := pid()
		if err := Ask(ctx, r.dir, "fail", name); err != nil {
			t.Fatal(err)
		}
		if there(before) {
			t.Errorf("%s: process %d still runs after fail", name, before)
		}
		if err := Ask(ctx, r.dir, "fail", name); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: a second fail answers %v, want not found", name, err)
		}
		if err := Ask(ctx, r.dir, "heal", name); err != nil {
			t.Fatal(err)
		}
		r.await("the new process in demo.json", func() bool { return pid() != before })
		if after := pid(); !there(after) {
			t.Errorf("%s: process %d does not run after heal", name, after)
		}
	}
	err := Ask(ctx, r.dir, "fail", "atlantis")
	if !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), "atlantis") || !strings.Contains(err.Error(), "tokyo") {
		t.Errorf("got %v, want not found with the names that there are", err)
	}
	if err := syscall.Kill(s.Sites[0].MountPID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r.await("the death of a mount to be reported", func() bool { return strings.Contains(r.text(), "mount at tokyo ended by itself") })
	if err := Ask(ctx, r.dir, "heal", "tokyo"); err != nil {
		t.Fatal(err)
	}
	r.await("the new mount in demo.json", func() bool {
		now, err := Load(r.dir)
		return err == nil && now.Sites[0].MountPID != s.Sites[0].MountPID && there(now.Sites[0].MountPID)
	})
}

func TestRun_SecondInterruptKills(t *testing.T) {
	r := start(t, filepath.Join(t.TempDir(), "demo"), "deaf")
	s := r.ready()
	began := time.Now()
	r.cancel()
	close(r.force)
	if err := r.end(); !fault.Is(errors.Unwrap(err), fault.Interrupted) && !strings.Contains(fmt.Sprint(err), "killed before it had stopped") {
		t.Errorf("got %v, want a word on who was killed", err)
	}
	if took := time.Since(began); took > supervisor.StopLimit/2 {
		t.Errorf("ending by force took %v", took)
	}
	if there(s.Sites[0].NodePID) || there(s.Sites[0].MountPID) {
		t.Error("a process is still there")
	}
}

func TestRun_CleansUpAfterAKilledDemo(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "demo")
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(self, "whole-demo", dir)
	cmd.Stdout = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var s State
	r := &running{t: t, dir: dir}
	r.await("the other process's demo", func() bool {
		text, _ := os.ReadFile(log.Name())
		return bytes.Contains(text, []byte("\nready"))
	})
	if s, err = Load(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // where the test fails
		for _, pid := range []int{s.Sites[0].NodePID, s.Sites[0].MountPID, s.GeoConfig.PID} {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	r.await("the children to die with it", func() bool {
		return !there(s.Sites[0].NodePID) && !there(s.Sites[0].MountPID) && !there(s.GeoConfig.PID)
	})
	next := start(t, dir, "one")
	next.ready()
	if !strings.Contains(next.text(), "was killed; cleaning up") {
		t.Errorf("it does not say that it cleaned up:\n%s", next.text())
	}
	if err := next.end(); err != nil {
		t.Error(err)
	}
}

func TestRun_RefusesBadOptions(t *testing.T) {
	full := t.TempDir()
	if err := os.MkdirAll(filepath.Join(full, "one", "mine"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		opt   Options
		kind  fault.Kind
		names string
	}{
		{"a site twice", Options{Sites: []string{"a", "a"}}, fault.Usage, "a"},
		{"a bad name", Options{Sites: []string{"a/b"}}, fault.Usage, "a/b"},
		{"no site", Options{}, fault.Usage, "--sites"},
		{"geo-config as a site", Options{Sites: []string{GeoConfigName}}, fault.Usage, GeoConfigName},
		{"a folder in the way", Options{Sites: []string{"one"}, Mounts: true, Dir: full}, fault.Busy, filepath.Join(full, "one")},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.opt.Out = &bytes.Buffer{}
			if c.opt.Dir == "" {
				c.opt.Dir = t.TempDir()
			}
			err := Run(context.Background(), c.opt)
			if !fault.Is(err, c.kind) || fault.SubjectOf(err) != c.names {
				t.Errorf("got %v, want kind %v naming %s", err, c.kind, c.names)
			}
		})
	}
	if _, err := Load(t.TempDir()); !fault.Is(err, fault.NotFound) {
		t.Errorf("a folder without a demo: got %v, want not found", err)
	}
}
