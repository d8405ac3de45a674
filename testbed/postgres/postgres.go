// Package postgres runs a PostgreSQL whose data directory lies wherever its caller
// wants it: on a file system that is tested or measured. The server speaks over a Unix
// socket alone, and runs as the user postgres, as it refuses root. A Server is used by
// one goroutine.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// account runs the server and owns its files.
const account = "postgres"

// startLimit bounds the start of a server, which may have a crash to recover from.
const startLimit = 3 * time.Minute

// Server is one PostgreSQL.
type Server struct {
	// Data is its data directory. While the server does not run, it may be set to
	// another path of the same directory.
	Data string

	bin, socket string
	owner       *syscall.Credential
	process     *exec.Cmd // nil while it does not run
}

// New makes a data directory of an empty one, for a server that does not run yet. It
// needs root. Close removes what else it makes.
func New(ctx context.Context, data string) (*Server, error) {
	const op fault.Op = "postgres.New"
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return nil, fault.E(fault.NotFound, op, "initdb", "PostgreSQL is not installed: scripts/setup test installs it")
	}
	slices.Sort(found)
	owner, err := credential()
	if err != nil {
		return nil, fault.Wrap(fault.NotFound, op, account, err)
	}
	socket, err := os.MkdirTemp("", "pg") // short: sockets' paths end at 108 bytes
	if err != nil {
		return nil, fault.Wrap(fault.IO, op, "", err)
	}
	s := &Server{Data: data, bin: filepath.Dir(found[len(found)-1]), socket: socket, owner: owner}
	for _, dir := range []string{data, socket} {
		err = errors.Join(err, os.Chown(dir, int(owner.Uid), int(owner.Gid)))
	}
	if err = errors.Join(err, os.Chmod(data, 0o700)); err == nil {
		_, err = s.Run(ctx, "initdb -D "+data+" --data-checksums --no-locale -E UTF8")
	}
	if err != nil {
		return nil, fault.Wrap(fault.IO, op, data, errors.Join(err, s.Close()))
	}
	return s, nil
}

func credential() (*syscall.Credential, error) {
	u, err := user.Lookup(account)
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, err
}

// Command is a shell's script that finds PostgreSQL's programs and this server.
func (s *Server) Command(ctx context.Context, script string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	cmd.Dir, cmd.Env = "/", append(os.Environ(), "PATH="+s.bin+":"+os.Getenv("PATH"), "PGHOST="+s.socket)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.owner, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// Run runs a script as Command does, and returns what it printed.
func (s *Server) Run(ctx context.Context, script string) (string, error) {
	var out strings.Builder
	cmd := s.Command(ctx, script)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w\n%s\nserver log:\n%s", script, err, last(out.String()), last(s.Log()))
	}
	return out.String(), nil
}

// Query returns the rows of a query, unaligned, without a header.
func (s *Server) Query(ctx context.Context, sql string) (string, error) {
	out, err := s.Run(ctx, "psql -XAt -d postgres -c \""+sql+"\"")
	return strings.TrimSpace(out), err
}

// Start runs the server and waits until it answers. It is a child of this process, so
// that a killed one is reaped and does not look alive to the next one.
func (s *Server) Start(ctx context.Context) error {
	const op fault.Op = "postgres.Start"
	log, err := os.OpenFile(filepath.Join(s.socket, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fault.Wrap(fault.IO, op, "", err)
	}
	defer log.Close()
	s.process = exec.Command(filepath.Join(s.bin, "postgres"), "-D", s.Data, "-k", s.socket, "-c", "listen_addresses=", "-c", "max_connections=40")
	s.process.Stdout, s.process.Stderr, s.process.Dir = log, log, "/"
	s.process.SysProcAttr = &syscall.SysProcAttr{Credential: s.owner, Pdeathsig: syscall.SIGINT}
	if err := s.process.Start(); err != nil {
		s.process = nil
		return fault.Wrap(fault.IO, op, s.Data, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		_, err := s.Query(ctx, "select 1")
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fault.Wrap(fault.TimedOut, op, s.Data, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Stop ends the server by a signal: SIGINT is its fast, SIGQUIT its immediate shutdown.
func (s *Server) Stop(how syscall.Signal) {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Signal(how) // it may have ended
	_ = s.process.Wait()              // how it ended is in its log
	s.process = nil
}

// Kill ends the server and all its processes at once, as a crash does.
func (s *Server) Kill() error {
	if s.process == nil {
		return nil
	}
	leader := s.process.Process.Pid
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", leader, leader))
	if err != nil {
		return fault.Wrap(fault.IO, "postgres.Kill", s.Data, err)
	}
	for _, field := range append(strings.Fields(string(children)), fmt.Sprint(leader)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 1 {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
	}
	_ = s.process.Wait()
	s.process = nil
	return nil
}

// Log is what the server wrote.
func (s *Server) Log() string {
	text, _ := os.ReadFile(filepath.Join(s.socket, "log")) // it is there once the server started
	return string(text)
}

// Close ends the server and removes what New made beside the data directory.
func (s *Server) Close() error {
	s.Stop(syscall.SIGQUIT)
	return os.RemoveAll(s.socket)
}

// last is the end of a text.
func last(text string) string { return text[max(0, len(text)-3000):] }
