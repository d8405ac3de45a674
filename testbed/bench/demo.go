package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// Limits of waiting for other processes.
const (
	startLimit = 2 * time.Minute
	endLimit   = time.Minute
)

// demoRun is a demo that runs for a measurement, in a folder of its own.
type demoRun struct {
	program string // cartwheel
	tmp     string // removed at the end
	Contact string `json:"contact"`
	Sites   []struct {
		Name  string `json:"name"`
		Mount string `json:"mount"`
	} `json:"sites"`
}

// withDemo starts a demo in a new folder below in, calls fn, and ends and
// removes it all, whatever happened.
func withDemo(ctx context.Context, bin, in string, progress io.Writer, fn func(*demoRun) error) (err error) {
	const op fault.Op = "bench.withDemo"
	program, err := commandIn(bin)
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(in, "cartwheel-bench-")
	if err != nil {
		return fault.FromOS(op, in, err)
	}
	d := &demoRun{program: program, tmp: tmp}
	dir := filepath.Join(tmp, "demo")
	p, err := spawn(program, []string{"demo", "--dir", dir}, progress, "ready")
	if err != nil {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	defer func() {
		err = errors.Join(err, p.end())
		for _, s := range d.Sites {
			_ = syscall.Unmount(s.Mount, syscall.MNT_DETACH) // the demo has done it, mostly
		}
		err = errors.Join(err, os.RemoveAll(tmp))
	}()
	if err := p.ready(ctx); err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(dir, "demo.json"))
	if err == nil {
		err = json.Unmarshal(data, d)
	}
	if err == nil && len(d.Sites) == 0 {
		err = errors.New("it names no sites")
	}
	if err != nil {
		return fault.Wrap(fault.IO, op, filepath.Join(dir, "demo.json"), err)
	}
	return fn(d)
}

// commandIn finds the cartwheel command: in the folder named, else beside this
// one.
func commandIn(bin string) (string, error) {
	if bin == "" {
		self, err := os.Executable()
		if err != nil {
			return "", fault.Wrap(fault.IO, "bench.commandIn", "", err)
		}
		bin = filepath.Dir(self)
	}
	program := filepath.Join(bin, "cartwheel")
	if _, err := os.Stat(program); err != nil {
		return "", fault.E(fault.NotFound, "bench.commandIn", program, "is not there: run scripts/build, or name its folder with --bin")
	}
	return program, nil
}

// process is a program that says when it is ready, and stops on SIGTERM.
type process struct {
	name   string
	cmd    *exec.Cmd
	said   chan struct{} // closed at the line that says ready
	exited chan error
}

// spawn starts a program; what it prints goes to progress. It is ready when a
// line begins with sign.
func spawn(program string, args []string, progress io.Writer, sign string) (*process, error) {
	p := &process{name: filepath.Base(program) + " " + args[0], said: make(chan struct{}), exited: make(chan error, 1)}
	p.cmd = exec.Command(program, args...)
	p.cmd.Stderr = progress
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fault.FromOS("bench.spawn", program, err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fault.FromOS("bench.spawn", program, err)
	}
	go func() {
		said := false
		for s := bufio.NewScanner(out); s.Scan(); {
			if !said && strings.HasPrefix(s.Text(), sign) {
				said = true
				close(p.said)
			}
		}
		p.exited <- p.cmd.Wait()
	}()
	return p, nil
}

func (p *process) ready(ctx context.Context) error {
	const op fault.Op = "bench.ready"
	timer := time.NewTimer(startLimit)
	defer timer.Stop()
	select {
	case <-p.said:
		return nil
	case err := <-p.exited:
		p.exited <- err
		return fault.Errorf(fault.Other, op, p.name, "ended before it was ready: %v", err)
	case <-timer.C:
		return fault.Errorf(fault.TimedOut, op, p.name, "was not ready within %v", startLimit)
	case <-ctx.Done():
		return fault.Wrap(fault.Canceled, op, p.name, ctx.Err())
	}
}

// end stops the program in order, and kills it when that takes too long.
func (p *process) end() error {
	const op fault.Op = "bench.end"
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	timer := time.NewTimer(endLimit)
	defer timer.Stop()
	select {
	case err := <-p.exited:
		return fault.Wrap(fault.Other, op, p.name, err)
	case <-timer.C:
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.exited
		return fault.Errorf(fault.TimedOut, op, p.name, "did not stop within %v and was killed", endLimit)
	}
}
