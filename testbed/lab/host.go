package lab

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"cartwheel.dev/clients/supervisor"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/testbed/topology"
)

// Process is one of the processes that a host can have.
type Process string

// The processes.
const (
	NodeProcess      Process = "node"
	MountProcess     Process = "mount"
	GeoConfigProcess Process = "geo-config"
)

// processes are all of them, in the order in which they are started.
func processes() []Process { return []Process{GeoConfigProcess, NodeProcess, MountProcess} }

// host is one host of a lab with its processes.
type host struct {
	topology.Host
	id    ids.Node
	point string // where its mount is

	// acting is held while processes of this host are started or ended, one
	// at a time.
	acting sync.Mutex
	mu     sync.Mutex // guards below
	runs   map[Process]*supervisor.Child
	paused map[Process]bool
}

func (h *host) listen() string { return fmt.Sprintf("/ip4/%v/tcp/%d", h.Address, nodePort) }

func (h *host) peer() string { return h.listen() + "/p2p/" + string(h.id) }

func (h *host) child(p Process) *supervisor.Child {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.runs[p]
}

func (h *host) pid(p Process) int {
	if c := h.child(p); c.Running() {
		return c.PID()
	}
	return 0
}

func (h *host) log(p Process) string { return h.child(p).LogFile() }

// kill ends processes at once, as a loss of power would.
func (h *host) kill(which []Process) error {
	h.acting.Lock()
	defer h.acting.Unlock()
	killed := false
	for _, p := range which {
		if c := h.child(p); c.Running() {
			c.Kill()
			killed = true
		}
	}
	if !killed {
		return fault.Errorf(fault.NotFound, "lab.kill", h.Name, "none of %v runs there: start it first", which)
	}
	return nil
}

// stop asks processes to end, and waits until they have. It kills one that makes no
// progress.
func (h *host) stop(which []Process) error {
	h.acting.Lock()
	defer h.acting.Unlock()
	stopped := false
	for i := len(which) - 1; i >= 0; i-- { // a mount sends what is unsent while its node runs
		c := h.child(which[i])
		if !c.Running() {
			continue
		}
		if err := c.End(nil); err != nil {
			return err
		}
		stopped = true
	}
	if !stopped {
		return fault.Errorf(fault.NotFound, "lab.stop", h.Name, "none of %v runs there: start it first", which)
	}
	return nil
}

// pause halts processes without ending them, as a machine that hangs would.
func (h *host) pause(which []Process) error {
	return h.signal(which, syscall.SIGSTOP, true)
}

// signal sends a signal to those processes that run.
func (h *host) signal(which []Process, s syscall.Signal, paused bool) error {
	h.acting.Lock()
	defer h.acting.Unlock()
	found := false
	for _, p := range which {
		c := h.child(p)
		if !c.Running() {
			continue
		}
		if err := c.Command.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fault.Wrap(fault.Other, "lab.signal", c.Name, err)
		}
		found = true
		h.mu.Lock()
		h.paused[p] = paused
		h.mu.Unlock()
	}
	if !found {
		return fault.Errorf(fault.NotFound, "lab.signal", h.Name, "none of %v runs there: start it first", which)
	}
	return nil
}

// condition says how a process is.
func (h *host) condition(p Process) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.runs[p]
	switch {
	case c == nil:
		return "never started"
	case c.Running() && h.paused[p]:
		return "paused"
	case c.Running():
		return "runs"
	case c.Expected() && c.Command.ProcessState.Success():
		return "stopped"
	case c.Expected():
		return "killed"
	}
	return "died: " + c.How()
}

const (
	nodePort = 7400
	geoPort  = 7300
	// readyLimit bounds the start of one process. Sixteen of them share two
	// cores and hundreds of milliseconds.
	readyLimit = 2 * time.Minute
)
