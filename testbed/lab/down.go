package lab

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"cartwheel.dev/clients/supervisor"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/netns"
	"cartwheel.dev/testbed/wan"
)

// Close ends everything, the mounts first, so that they can send what is
// unsent, and removes the namespaces, the mount points and, unless they are to
// be kept, the data. It may be called twice.
func (l *Lab) Close() error {
	l.closing.Do(func() { l.closed = l.close() })
	return l.closed
}

func (l *Lab) close() error {
	var errs []error
	if l.control != nil {
		l.control.close()
	}
	if l.network != nil {
		// The network as it was, so that what is unsent gets through.
		ctx, cancel := context.WithTimeout(context.Background(), healLimit)
		_ = l.heal(ctx, Fault{}) // an emulator that has died heals nothing
		cancel()
	}
	for _, p := range []Process{MountProcess, NodeProcess, GeoConfigProcess} {
		var children []*supervisor.Child
		for _, h := range l.hosts {
			c := h.child(p)
			if c.Running() {
				_ = c.Command.Process.Signal(unix.SIGCONT) // one that is paused cannot stop
			}
			children = append(children, c)
		}
		errs = append(errs, supervisor.EndAll(children, l.opt.Force))
		if p == MountProcess {
			for _, h := range l.hosts {
				unmount(h.point)
			}
		}
	}
	if l.end != nil {
		l.end()
		l.done.Wait()
	}
	l.family.Close()
	if l.network != nil {
		errs = append(errs, l.network.Close())
	}
	if l.events != nil {
		l.events.add("down", l.opt.Name, "")
		l.events.file.Close()
	}
	errs = append(errs, sweep(l.opt.Dir, l.opt.KeepData), l.state.release())
	return errors.Join(errs...)
}

// healLimit bounds the wait for an emulator that may have died.
const healLimit = 5 * time.Second

// unmount takes a mount away that its process has left, and its folder.
func unmount(point string) {
	if point == "" {
		return
	}
	for range 3 { // one above the other, if something went very wrong
		if supervisor.Detach(point) != nil {
			break // the usual: the mount's own process did it
		}
	}
	_ = os.Remove(point) // only if empty
}

// sweep removes what a lab's folder holds beside its logs.
func sweep(dir string, keepData bool) error {
	_ = os.Remove(filepath.Join(dir, "mnt")) // only if empty
	if keepData {
		return nil
	}
	var errs []error
	for _, sub := range []string{"data", "run", "contact.json"} {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, sub)))
	}
	return fault.Wrap(fault.IO, "lab.sweep", dir, errors.Join(errs...))
}

// Clear removes what a crashed lab of this name left: processes, mounts,
// namespaces, data. The caller holds its name, or it has no state folder.
func Clear(ctx context.Context, name string) error {
	data, err := os.ReadFile(filepath.Join(stateDir(name), "lab.json"))
	var r Record
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fault.Wrap(fault.IO, "lab.Clear", name, err)
	}
	// The mounts' processes end with their namespaces, and let go of the mounts.
	for _, h := range r.Hosts {
		unmount(h.Mount)
	}
	_, _, err = wan.Clean(ctx, Prefix, name)
	for _, h := range r.Hosts {
		unmount(h.Mount)
	}
	if r.Dir != "" {
		err = errors.Join(err, sweep(r.Dir, r.KeepData))
	}
	return err
}

// Down says what became of a lab.
type Down struct {
	Name    string `json:"name"`
	Dir     string `json:"dir,omitempty"`
	Crashed bool   `json:"crashed"` // its process was gone; what it left was removed
}

// downLimit bounds the orderly end of a lab.
const downLimit = 2 * time.Minute

// Bring brings a lab down: asks the process that holds it, or cleans up after
// one that crashed. It returns when nothing is left.
func Bring(ctx context.Context, name string) (Down, error) {
	const op fault.Op = "lab.Bring"
	r, runs, err := Load(name)
	d := Down{Name: name, Dir: r.Dir, Crashed: !runs}
	if fault.Is(err, fault.NotFound) {
		left, lerr := netns.List(Prefix, name)
		if _, serr := os.Stat(stateDir(name)); lerr != nil || len(left) == 0 && serr != nil {
			return d, errors.Join(err, lerr)
		}
		err = nil // half of what a lab has is left
	}
	if err != nil {
		return d, err
	}
	if runs {
		return d, end(ctx, name)
	}
	held, err := hold(ctx, name)
	if err != nil {
		return d, err
	}
	return d, errors.Join(fault.Wrap(fault.Other, op, name, Clear(ctx, name)), held.release())
}

// end asks a lab that runs to go down, and waits until it has.
func end(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, downLimit)
	defer cancel()
	if _, err := Ask(ctx, name, Request{Do: AskDown}); err != nil {
		return err
	}
	tick := time.NewTicker(downPoll)
	defer tick.Stop()
	for {
		if _, runs, err := Load(name); fault.Is(err, fault.NotFound) || err == nil && !runs {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fault.Wrap(fault.TimedOut, "lab.Down", name, ctx.Err())
		}
	}
}

const downPoll = 50 * time.Millisecond

// Left lists the labs of this machine that crashed, by their state folders and
// by namespaces that nobody holds.
func Left(ctx context.Context) ([]string, error) {
	names, err := Names()
	if err != nil {
		return nil, err
	}
	runs, err := netns.Runs(Prefix)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, r := range runs {
		names = append(names, r.ID)
	}
	var out []string
	for _, name := range names {
		if seen[name] {
			continue
		}
		seen[name] = true
		_, up, err := Load(name)
		if fault.Is(err, fault.NotFound) { // a network without a lab, such as a calibration's
			_, aerr := wan.Attach(ctx, Prefix, name)
			up, err = aerr == nil, nil
		}
		if err == nil && !up {
			out = append(out, name)
		}
	}
	return out, nil
}
