// Package postgrestest gives tests a database: a PostgreSQL that it starts in a
// directory of its own, on a port of its own, and, where COCKROACH_URL names
// one, a CockroachDB. It is no helper for production code: the server keeps
// nothing over a crash. Tests share a server, each with a schema of its own, or
// start one for themselves; several may run at once.
package postgrestest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// CockroachURL is the variable that names a running CockroachDB for the tests.
const CockroachURL = "COCKROACH_URL"

// Limits of a server's start and end.
const (
	startPatience = 60 * time.Second
	stopPatience  = 10 * time.Second
	pollEvery     = 20 * time.Millisecond
	portAttempts  = 5
)

// Database is a server that tests may use.
type Database struct {
	// Name is postgresql or cockroach.
	Name string
	// URL opens the server's default database.
	URL string
}

// Shared is one PostgreSQL for all tests of a package, started by the first of
// them that asks. The zero value is ready.
type Shared struct {
	mu     sync.Mutex // guards all below; held while the server starts
	server *server
	err    error // why it did not start
}

// Around returns m with the server's end after its tests, for TestMain and for
// a check of leaks that comes after them.
func (s *Shared) Around(m interface{ Run() int }) *Main { return &Main{s, m} }

// Main runs a package's tests.
type Main struct {
	shared *Shared
	m      interface{ Run() int }
}

// Run runs the tests and ends the server.
func (m *Main) Run() int {
	defer m.shared.stop()
	return m.m.Run()
}

func (s *Shared) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		s.server.stop()
	}
}

// URL returns the server's URL. Where PostgreSQL cannot run, the test is skipped
// with the reason.
func (s *Shared) URL(t testing.TB) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil && s.err == nil {
		s.server, s.err = launch()
	}
	refuse(t, s.err)
	return s.server.url()
}

// Databases returns the servers to test on: the PostgreSQL, and the CockroachDB
// that COCKROACH_URL names. Where there is neither, the test is skipped.
func (s *Shared) Databases(t testing.TB) []Database {
	t.Helper()
	var out []Database
	if url := os.Getenv(CockroachURL); url != "" {
		out = append(out, Database{Name: "cockroach", URL: url})
	}
	if _, err := programs(); err == nil || len(out) == 0 {
		out = append(out, Database{Name: "postgresql", URL: s.URL(t)})
	}
	return out
}

// Start starts a PostgreSQL for one test, which may stop it, and returns its URL.
// The server ends with the test.
func Start(t testing.TB) string {
	t.Helper()
	s, err := launch()
	refuse(t, err)
	endWith(t, s)
	return s.url()
}

// endWith ends a server with a test, and shows its last words where that failed.
func endWith(t testing.TB, s *server) {
	t.Cleanup(func() {
		s.stop()
		if t.Failed() {
			t.Logf("PostgreSQL said last:\n%s", tail(s.log.String(), 40))
		}
	})
}

// Server is a PostgreSQL of one test's own, which the test may stop and start.
type Server struct {
	t testing.TB
	s *server
}

// New starts a Server. It ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s, err := launch()
	refuse(t, err)
	endWith(t, s)
	return &Server{t, s}
}

// SocketURL is the server's URL over a Unix socket, which network namespaces share.
func (s *Server) SocketURL() string {
	u := url.URL{Scheme: "postgresql", User: url.User("cartwheel"), Path: "/postgres",
		RawQuery: url.Values{"host": {s.s.dir}, "port": {fmt.Sprint(s.s.port)}, "sslmode": {"disable"}}.Encode()}
	return u.String()
}

// Stop ends the server as a crash does. Its data stays.
func (s *Server) Stop() { s.s.halt() }

// Start starts the server again on its data and waits until it answers.
func (s *Server) Start() {
	s.t.Helper()
	if err := s.s.start(); err != nil {
		s.t.Fatalf("starting PostgreSQL again: %v\n%s", err, tail(s.s.log.String(), 40))
	}
}

// unable says why this machine cannot run a server.
type unable struct{ error }

func refuse(t testing.TB, err error) {
	t.Helper()
	var reason unable
	switch {
	case errors.As(err, &reason):
		t.Skip(reason)
	case err != nil:
		t.Fatal(err)
	}
}

// Schema returns a new name for a schema, which is dropped when the test ends.
func Schema(t testing.TB, url string) string {
	t.Helper()
	var random [6]byte
	_, _ = rand.Read(random[:]) // never fails
	name := "scratch_" + hex.EncodeToString(random[:])
	t.Cleanup(func() {
		if err := execute(url, `DROP SCHEMA IF EXISTS "`+name+`" CASCADE`); err != nil {
			t.Errorf("dropping schema %s: %v", name, err)
		}
	})
	return name
}

func execute(url, statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement)
	return err
}

// programs returns the directory with PostgreSQL's programs.
func programs() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path), nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", errors.New("PostgreSQL is not installed (scripts/setup test installs it)")
	}
	slices.Sort(found)
	return filepath.Dir(found[len(found)-1]), nil
}

// launch starts a server in a new directory.
func launch() (*server, error) {
	bin, err := programs()
	if err != nil {
		return nil, unable{err}
	}
	as, err := account()
	if err != nil {
		return nil, unable{err}
	}
	dir, err := os.MkdirTemp("", "postgrestest")
	if err != nil {
		return nil, err
	}
	s := &server{bin: bin, dir: dir, as: as}
	if err := as.own(dir); err != nil {
		os.RemoveAll(dir)
		return nil, unable{fmt.Errorf("%s cannot be given to the user of PostgreSQL: %w", dir, err)}
	}
	err = s.initialize()
	// Another process may take the port before the server does.
	for attempt := 0; err == nil; attempt++ {
		failed := s.choosePort()
		if failed == nil {
			failed = s.start()
		}
		if failed == nil {
			return s, nil
		}
		if attempt == portAttempts {
			err = fmt.Errorf("starting PostgreSQL: %w\n%s", failed, s.log.String())
		}
	}
	os.RemoveAll(dir)
	return nil, err
}

// server is one PostgreSQL.
type server struct {
	bin, dir string
	as       owner
	port     int
	process  *exec.Cmd
	ended    chan struct{} // closed when the process has
	log      buffer
}

func (s *server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir, cmd.Env = s.dir, []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = s.as.attributes()
	cmd.Stdout, cmd.Stderr = &s.log, &s.log
	return cmd
}

func (s *server) initialize() error {
	if err := s.command("initdb", "-D", filepath.Join(s.dir, "data"), "-A", "trust", "-U", "cartwheel", "-E", "UTF8", "--locale=C", "--no-sync").Run(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, s.log.String())
	}
	// In the file, so that a test may set them otherwise.
	settings, err := os.OpenFile(filepath.Join(s.dir, "data", "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer settings.Close()
	_, err = fmt.Fprintf(settings, "fsync = off\nmax_connections = 200\nunix_socket_directories = '%s'\nlisten_addresses = '127.0.0.1'\n", s.dir)
	return err
}

func (s *server) url() string {
	u := url.URL{Scheme: "postgresql", User: url.User("cartwheel"), Host: fmt.Sprintf("127.0.0.1:%d", s.port), Path: "/postgres", RawQuery: "sslmode=disable"}
	return u.String()
}

// choosePort takes a port that is free now.
func (s *server) choosePort() error {
	free, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.port = free.Addr().(*net.TCPAddr).Port
	return free.Close()
}

// start runs the server and waits until it answers.
func (s *server) start() error {
	s.process = s.command("postgres", "-D", filepath.Join(s.dir, "data"), "-p", fmt.Sprint(s.port))
	if err := s.process.Start(); err != nil {
		return err
	}
	s.ended = make(chan struct{})
	go func() {
		defer close(s.ended)
		_ = s.process.Wait() // how it ended is in its log
	}()
	return s.await()
}

func (s *server) await() error {
	ctx, cancel := context.WithTimeout(context.Background(), startPatience)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := execute(s.url(), "SELECT 1")
		if err == nil {
			return nil
		}
		select {
		case <-s.ended:
			return errors.New("the server ended at once")
		case <-ctx.Done():
			_ = s.process.Process.Kill()
			<-s.ended
			return err
		case <-tick.C:
		}
	}
}

// stop ends the server and all its processes, and removes its files.
func (s *server) stop() {
	s.halt()
	os.RemoveAll(s.dir)
}

// halt ends the server and all its processes.
func (s *server) halt() {
	_ = s.process.Process.Signal(quit) // it may have ended
	select {
	case <-s.ended:
	case <-time.After(stopPatience):
		_ = s.process.Process.Kill()
		<-s.ended
	}
}

func tail(text string, lines int) string {
	all := strings.Split(text, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// buffer collects what the processes say.
type buffer struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

// Write implements io.Writer.
func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
