package demo

import (
	"bufio"
	"context"
	"encoding/json"
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

// family starts processes from one locked thread, because the kernel ends a
// child with the thread, not the process, that started it.
type family struct {
	starts chan func()
	done   chan struct{}
}

func newFamily() *family {
	f := &family{starts: make(chan func()), done: make(chan struct{})}
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

func (f *family) do(fn func() error) error {
	out := make(chan error, 1)
	f.starts <- func() { out <- fn() }
	return <-out
}

func (f *family) close() {
	close(f.starts)
	<-f.done
}

// readiness is the line that a child prints when it serves.
type readiness struct {
	Ready     bool     `json:"ready"`
	ID        string   `json:"id"`
	Cluster   string   `json:"cluster"`
	Addresses []string `json:"addresses"`
}

// child is one process; its output goes to its log.
type child struct {
	mountPoint  string // of a mount; see detach
	name, owner string
	logPath     string
	cmd         *exec.Cmd
	exited      chan struct{}
	exitErr     error // set before exited is closed
	wanted      atomic.Bool
	line        chan readiness
}

// spawn starts a program. gone hears of its end.
func (f *family) spawn(name, owner, logPath string, gone chan<- *child, program string, args ...string) (*child, error) {
	const op fault.Op = "demo.spawn"
	output, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fault.Wrap(fault.IO, op, name, err)
	}
	defer output.Close()
	c := &child{name: name, owner: owner, logPath: logPath, exited: make(chan struct{}), line: make(chan readiness, 1)}
	c.cmd = exec.Command(program, args...)
	c.cmd.Stderr = output
	c.cmd.SysProcAttr = attached()
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fault.Wrap(fault.IO, op, name, err)
	}
	if err := f.do(c.cmd.Start); err != nil {
		return nil, &fault.Error{Kind: fault.NotFound, Op: op, Subject: program, Public: "cannot start " + name + "; run scripts/build first", Cause: err}
	}
	var reading sync.WaitGroup
	reading.Add(1)
	go func() { defer reading.Done(); c.read(out) }()
	go func() {
		reading.Wait()
		c.exitErr = c.cmd.Wait()
		close(c.exited)
		select {
		case gone <- c:
		default: // nobody listens any more
		}
	}()
	return c, nil
}

// read takes the first line that says ready and throws away the rest.
func (c *child) read(out io.Reader) {
	s := bufio.NewScanner(out)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var r readiness
		if json.Unmarshal(s.Bytes(), &r) == nil && r.Ready {
			select {
			case c.line <- r:
			default:
			}
		}
	}
}

// ready waits for the line.
func (c *child) ready(parent context.Context) (readiness, error) {
	const op fault.Op = "demo.ready"
	ctx, cancel := context.WithTimeout(parent, readyLimit)
	defer cancel()
	select {
	case r := <-c.line:
		return r, nil
	case <-c.exited:
		return readiness{}, fault.Errorf(fault.Other, op, c.name, "ended before it was ready (%v); its log ends:\n%s", c.exitErr, lastLines(c.logPath))
	case <-parent.Done():
		return readiness{}, fault.Wrap(fault.Canceled, op, c.name, context.Cause(parent))
	case <-ctx.Done():
		return readiness{}, fault.Errorf(fault.TimedOut, op, c.name, "was not ready within %v; its log ends:\n%s", readyLimit, lastLines(c.logPath))
	}
}

func (c *child) pid() int {
	if c == nil {
		return 0
	}
	return c.cmd.Process.Pid
}

func (c *child) log() string {
	if c == nil {
		return ""
	}
	return c.logPath
}

func (c *child) running() bool {
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

func (c *child) expected() bool { return c.wanted.Load() }

// kill ends it at once, as a loss of power would.
func (c *child) kill() {
	c.wanted.Store(true)
	_ = c.cmd.Process.Kill() // it may have ended by itself
	if c.mountPoint != "" {
		timer := time.NewTimer(killLimit)
		defer timer.Stop()
		select {
		case <-c.exited:
			return
		case <-timer.C:
			_ = detach(c.mountPoint) // what keeps it may have let go meanwhile
		}
	}
	<-c.exited
}

// end asks it to stop, and kills it when it does not within the limit or when
// force closes.
func (c *child) end(force <-chan struct{}) error {
	const op fault.Op = "demo.end"
	if !c.running() {
		return nil
	}
	c.wanted.Store(true)
	if err := askToStop(c.cmd.Process); err != nil && c.running() {
		c.kill()
		return nil // this system has no way to ask
	}
	timer := time.NewTimer(stopLimit)
	defer timer.Stop()
	select {
	case <-c.exited:
		return nil
	case <-force:
		c.kill()
		return fault.E(fault.Interrupted, op, c.name, "was killed before it had stopped")
	case <-timer.C:
		c.kill()
		return fault.Errorf(fault.TimedOut, op, c.name, "did not stop within %v and was killed; log: %s", stopLimit, c.logPath)
	}
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
