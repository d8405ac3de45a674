// Package netns makes, enters, lists and removes named network namespaces, as
// `ip netns` knows them. A name is PREFIX-RUN.ROLE, so that what a crashed run
// left behind is told from what another run still uses, and can be cleaned up
// by its name alone. It needs root, and changes nothing in the namespace that
// it is called from. Its functions may be called by several goroutines.
package netns

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	vnetns "github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"cartwheel.dev/geo-config/fault"
)

// Folder is where names of namespaces live.
const Folder = "/run/netns"

// Run names what belongs together: all namespaces of one run.
type Run struct{ Prefix, ID string }

func (r Run) String() string { return r.Prefix + "-" + r.ID }

// Name returns the namespace's name for a role in the run.
func (r Run) Name(role string) string { return r.Prefix + "-" + r.ID + "." + role }

// RunOf tells the run that a namespace's name belongs to, and its role.
func RunOf(name string) (run Run, role string, ok bool) {
	head, role, ok := strings.Cut(name, ".")
	prefix, id, dash := strings.Cut(head, "-")
	return Run{prefix, id}, role, ok && dash && prefix != "" && id != ""
}

// Path returns where a namespace can be opened.
func Path(name string) string { return filepath.Join(Folder, name) }

// Create makes namespaces; one that exists is an error of kind Exists, and
// leaves those made before it in place.
func Create(names ...string) error {
	const op fault.Op = "netns.Create"
	if os.Geteuid() != 0 {
		return fault.E(fault.Permission, op, "", "network namespaces need root: run it with sudo")
	}
	return onThread(op, func() error {
		for _, name := range names {
			if _, err := os.Lstat(Path(name)); err == nil {
				return fault.E(fault.Exists, op, name, "this network namespace is there already, from another run: clean up that run first (down)")
			}
			ns, err := vnetns.NewNamed(name)
			if err != nil {
				return fault.Wrap(fault.IO, op, name, err)
			}
			ns.Close()
		}
		return nil
	})
}

// Do calls fn on a thread that is in the namespace. Sockets that fn opens stay
// in that namespace wherever they are used later; goroutines that fn starts are
// not in it.
func Do(name string, fn func() error) error {
	const op fault.Op = "netns.Do"
	return onThread(op, func() error {
		ns, err := vnetns.GetFromPath(Path(name))
		if err != nil {
			return fault.Wrap(fault.NotFound, op, name, err)
		}
		defer ns.Close()
		if err := vnetns.Set(ns); err != nil {
			return fault.Wrap(fault.Permission, op, name, err)
		}
		return fn()
	})
}

// onThread runs fn on a thread of its own and returns the thread to the
// namespace it came from; where that fails the thread ends.
func onThread(op fault.Op, fn func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		home, err := vnetns.Get()
		if err != nil {
			runtime.UnlockOSThread()
			done <- fault.Wrap(fault.IO, op, "", err)
			return
		}
		err = fn()
		if back := vnetns.Set(home); back == nil {
			runtime.UnlockOSThread() // else the thread ends with this goroutine
		}
		home.Close()
		done <- err
	}()
	return <-done
}

// Command prepares a command inside the namespace. Only its network differs:
// mounts, process IDs and users are those of the caller, and the process is
// the command itself.
func Command(ctx context.Context, name string, argv ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "nsenter", append([]string{"--net=" + Path(name), "--"}, argv...)...)
}

// List returns the names of a prefix's namespaces, of every run if id is empty.
func List(prefix, id string) ([]string, error) {
	const op fault.Op = "netns.List"
	entries, err := os.ReadDir(Folder)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.FromOS(op, Folder, err)
	}
	var out []string
	for _, e := range entries {
		run, _, ok := RunOf(e.Name())
		if ok && run.Prefix == prefix && (id == "" || run.ID == id) {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

// Runs returns the runs of a prefix that have namespaces.
func Runs(prefix string) ([]Run, error) {
	names, err := List(prefix, "")
	var out []Run
	for _, name := range names {
		if run, _, _ := RunOf(name); !slices.Contains(out, run) {
			out = append(out, run)
		}
	}
	return out, err
}

// Delete ends every process in the namespaces, asking first and killing what
// has not gone after grace, and removes their names. What is not there is no
// error. It returns how many processes it had to end.
func Delete(ctx context.Context, grace time.Duration, names ...string) (ended int, err error) {
	const op fault.Op = "netns.Delete"
	ended, err = endAll(ctx, grace, names)
	for _, name := range names {
		if uerr := unix.Unmount(Path(name), unix.MNT_DETACH); uerr != nil && !errors.Is(uerr, unix.EINVAL) && !errors.Is(uerr, unix.ENOENT) {
			err = errors.Join(err, fault.FromOS(op, name, uerr))
			continue
		}
		if rerr := os.Remove(Path(name)); rerr != nil && !errors.Is(rerr, os.ErrNotExist) {
			err = errors.Join(err, fault.FromOS(op, name, rerr))
		}
	}
	return ended, err
}
