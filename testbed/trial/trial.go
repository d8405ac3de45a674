// Package trial runs a demo, with all of its processes, for as long as a
// measurement takes, and looks at those processes from outside: their memory,
// their processor time, their files. It measures nothing itself, and asserts
// nothing. A Demo belongs to one goroutine; processes may be looked at by any.
package trial

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

// Options say which demo.
type Options struct {
	Bin      string    // folder of the cartwheel command; "": this command's
	In       string    // where the demo's folder is made; "": that of temporary files
	Words    []string  // more words of `cartwheel demo`
	Progress io.Writer // sees what the processes say
}

// Site is one site of a running demo.
type Site struct {
	Name     string `json:"name"`
	Mount    string `json:"mount"`
	NodePID  int    `json:"node_pid"`
	MountPID int    `json:"mount_pid"`
}

// Demo is a demo that runs for a measurement.
type Demo struct {
	Program string `json:"-"` // the cartwheel command
	Folder  string `json:"-"` // the measurement's own, removed at the end
	Contact string `json:"contact"`
	Sites   []Site `json:"sites"`
}

// dir is the demo's own folder.
func (d *Demo) dir() string { return filepath.Join(d.Folder, "demo") }

// Data is a site's folder of the node's data.
func (d *Demo) Data(s Site) string { return filepath.Join(d.dir(), ".state", s.Name) }

// Run starts a demo in a new folder, calls fn, and ends and removes it all,
// whatever happened.
func Run(ctx context.Context, o Options, fn func(*Demo) error) (err error) {
	const op fault.Op = "trial.Run"
	program, err := commandIn(o.Bin)
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(o.In, "cartwheel-trial-")
	if err != nil {
		return fault.FromOS(op, o.In, err)
	}
	d := &Demo{Program: program, Folder: tmp}
	p, err := Start(program, append([]string{"demo", "--dir", d.dir()}, o.Words...), o.Progress, "ready")
	if err != nil {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	defer func() {
		err = errors.Join(err, p.End())
		for _, s := range d.Sites {
			_ = syscall.Unmount(s.Mount, syscall.MNT_DETACH) // the demo has done it, mostly
		}
		err = errors.Join(err, os.RemoveAll(tmp))
	}()
	if err := p.Ready(ctx); err != nil {
		return err
	}
	if err := d.Load(); err != nil {
		return err
	}
	return fn(d)
}

// Load learns the demo's processes anew: they are others once it healed one.
func (d *Demo) Load() error {
	file := filepath.Join(d.dir(), "demo.json")
	data, err := os.ReadFile(file)
	if err == nil {
		d.Sites = nil
		err = json.Unmarshal(data, d)
	}
	if err == nil && len(d.Sites) == 0 {
		err = errors.New("it names no sites")
	}
	return fault.Wrap(fault.IO, "trial.Load", file, err)
}

// commandIn finds the cartwheel command: in the folder named, else beside this
// one.
func commandIn(bin string) (string, error) {
	if bin == "" {
		self, err := os.Executable()
		if err != nil {
			return "", fault.Wrap(fault.IO, "trial.commandIn", "", err)
		}
		bin = filepath.Dir(self)
	}
	program := filepath.Join(bin, "cartwheel")
	if _, err := os.Stat(program); err != nil {
		return "", fault.E(fault.NotFound, "trial.commandIn", program, "is not there: run scripts/build, or name its directory with --bin")
	}
	return program, nil
}

// Process is a program that says when it is ready, and stops on SIGTERM.
type Process struct {
	name   string
	cmd    *exec.Cmd
	said   chan struct{} // closed at the line that says ready
	exited chan error
}

// Start starts a program; what it prints goes to progress. It is ready when a
// line begins with sign.
func Start(program string, args []string, progress io.Writer, sign string) (*Process, error) {
	p := &Process{name: filepath.Base(program) + " " + args[0], said: make(chan struct{}), exited: make(chan error, 1)}
	p.cmd = exec.Command(program, args...)
	p.cmd.Stderr = progress
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fault.FromOS("trial.Start", program, err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fault.FromOS("trial.Start", program, err)
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

// Ready waits until the program says that it is.
func (p *Process) Ready(ctx context.Context) error {
	const op fault.Op = "trial.Ready"
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

// End stops the program in order, and kills it when that takes too long.
func (p *Process) End() error {
	const op fault.Op = "trial.End"
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

// PID is the program's process.
func (p *Process) PID() int { return p.cmd.Process.Pid }
