// Package supervisor runs processes that die with this one: each writes its own log,
// says in one line of JSON when it is ready, and is stopped in order, or killed
// when that takes too long. It knows nothing of what the processes do. A Family
// and its children may be used by several goroutines.
package supervisor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// Limits of waiting for a child.
const (
	ReadyLimit = 40 * time.Second
	StopLimit  = 20 * time.Second
	killLimit  = time.Second // of a killed mount, before its connection is ended
)

// Family starts processes from one locked thread, because the kernel ends a
// child with the thread, not the process, that started it.
type Family struct {
	starts chan func()
	done   chan struct{}
}

// New makes a family without children.
func New() *Family {
	f := &Family{starts: make(chan func()), done: make(chan struct{})}
	go func() {
		defer close(f.done)
		runtime.LockOSThread()
		for fn := range f.starts {
			fn()
		}
		runtime.UnlockOSThread()
	}()
	return f
}

func (f *Family) do(fn func() error) error {
	out := make(chan error, 1)
	f.starts <- func() { out <- fn() }
	return <-out
}

// Close gives the thread back. The children have ended by then.
func (f *Family) Close() {
	close(f.starts)
	<-f.done
}

// Readiness is the line that a child prints when it serves.
type Readiness struct {
	Ready     bool     `json:"ready"`
	ID        string   `json:"id"`
	Cluster   string   `json:"cluster"`
	Addresses []string `json:"addresses"`
}

// Spec says what to start.
type Spec struct {
	Name  string // for people
	Owner string // the site or host that it belongs to
	Log   string // file that takes what it writes to standard error
	Mount string // where it mounts, if it does: a killed mount is taken away
	// Command is the program with its words, not yet started.
	Command *exec.Cmd
	// Within bounds the wait for readiness; 0: ReadyLimit.
	Within time.Duration
	// StopWithin bounds its end, from when it was asked and from each sign that it
	// gets on; 0: StopLimit.
	StopWithin time.Duration
	// Gone hears of the child's end, if somebody listens.
	Gone chan<- *Child
}

// Child is one process; its output goes to its log.
type Child struct {
	Spec
	exited  chan struct{}
	exitErr error // set before exited is closed
	wanted  atomic.Bool
	line    chan Readiness
	// saidMore holds a token once the child has written another line of JSON.
	saidMore chan struct{}
}

// Spawn starts a program.
func (f *Family) Spawn(s Spec) (*Child, error) {
	const op fault.Op = "supervisor.Spawn"
	output, err := os.OpenFile(s.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fault.Wrap(fault.IO, op, s.Name, err)
	}
	defer output.Close()
	c := &Child{Spec: s, exited: make(chan struct{}), line: make(chan Readiness, 1), saidMore: make(chan struct{}, 1)}
	cmd := c.Command
	cmd.Stderr = output
	cmd.SysProcAttr = attached()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fault.Wrap(fault.IO, op, s.Name, err)
	}
	if err := f.do(cmd.Start); err != nil {
		return nil, &fault.Error{Kind: fault.NotFound, Op: op, Subject: cmd.Path, Public: "cannot start " + s.Name + "; run scripts/build first", Cause: err}
	}
	var reading sync.WaitGroup
	reading.Add(1)
	go func() { defer reading.Done(); c.read(out) }()
	go func() {
		reading.Wait()
		c.exitErr = cmd.Wait()
		close(c.exited)
		select {
		case s.Gone <- c:
		default: // nobody listens any more
		}
	}()
	return c, nil
}

// read takes the first line that says ready. Of later lines of JSON only that
// they came counts: a child writes one each time it has got nearer to its end.
func (c *Child) read(out io.Reader) {
	s := bufio.NewScanner(out)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var r Readiness
		if json.Unmarshal(s.Bytes(), &r) != nil {
			continue
		}
		if r.Ready {
			select {
			case c.line <- r:
			default:
			}
			continue
		}
		select {
		case c.saidMore <- struct{}{}:
		default:
		}
	}
}

// Ready waits for the line.
func (c *Child) Ready(parent context.Context) (Readiness, error) {
	const op fault.Op = "supervisor.Ready"
	within := c.Within
	if within == 0 {
		within = ReadyLimit
	}
	ctx, cancel := context.WithTimeout(parent, within)
	defer cancel()
	select {
	case r := <-c.line:
		return r, nil
	case <-c.exited:
		return Readiness{}, fault.Errorf(fault.Other, op, c.Name, "ended before it was ready (%v); its log ends:\n%s", c.exitErr, lastLines(c.Log))
	case <-parent.Done():
		return Readiness{}, fault.Wrap(fault.Canceled, op, c.Name, context.Cause(parent))
	case <-ctx.Done():
		return Readiness{}, fault.Errorf(fault.TimedOut, op, c.Name, "was not ready within %v; its log ends:\n%s", within, lastLines(c.Log))
	}
}

// PID is the process's number; 0 of no child.
func (c *Child) PID() int {
	if c == nil {
		return 0
	}
	return c.Command.Process.Pid
}

// LogFile is where the child writes; empty of no child.
func (c *Child) LogFile() string {
	if c == nil {
		return ""
	}
	return c.Log
}

// Running tells whether there is such a process.
func (c *Child) Running() bool {
	if c == nil {
		return false
	}
	select {
	case <-c.exited:
		return false
	default:
		return true
	}
}

// Expected tells whether its end was asked for.
func (c *Child) Expected() bool { return c.wanted.Load() }

// How says how the process ended, once it has.
func (c *Child) How() string { return fmt.Sprint(c.Command.ProcessState) }

// Kill ends it at once, as a loss of power would.
func (c *Child) Kill() {
	c.wanted.Store(true)
	_ = c.Command.Process.Kill() // it may have ended by itself
	if c.Mount != "" {
		timer := time.NewTimer(killLimit)
		defer timer.Stop()
		select {
		case <-c.exited:
			return
		case <-timer.C:
			_ = Detach(c.Mount) // what keeps it may have let go meanwhile
			AbortConnections(c.Command.Process.Pid)
		}
	}
	<-c.exited
}

// End asks it to stop. It kills it when force closes, or when the limit has passed
// since it was asked and since it last said that it has got nearer to its end.
func (c *Child) End(force <-chan struct{}) error {
	const op fault.Op = "supervisor.End"
	if !c.Running() {
		return nil
	}
	c.wanted.Store(true)
	if err := askToStop(c.Command.Process); err != nil && c.Running() {
		c.Kill()
		return nil // this system has no way to ask
	}
	limit := c.StopWithin
	if limit == 0 {
		limit = StopLimit
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		select {
		case <-c.exited:
			return nil
		case <-c.saidMore:
			timer.Reset(limit)
		case <-force:
			c.Kill()
			return fault.E(fault.Interrupted, op, c.Name, "was killed before it had stopped")
		case <-timer.C:
			c.Kill()
			return fault.Errorf(fault.TimedOut, op, c.Name, "said nothing of getting on for %v while it stopped, and was killed; log: %s", limit, c.Log)
		}
	}
}

// EndAll ends children at once, and waits for all of them.
func EndAll(children []*Child, force <-chan struct{}) error {
	done := make(chan error, len(children))
	for _, c := range children {
		go func() { done <- c.End(force) }()
	}
	var errs []error
	for range children {
		errs = append(errs, <-done)
	}
	return errors.Join(errs...)
}

const logTail = 2000

func lastLines(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Sprint(err)
	}
	if len(data) > logTail {
		data = data[len(data)-logTail:]
	}
	return string(data)
}
