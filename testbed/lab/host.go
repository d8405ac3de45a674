package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// has tells whether such a process belongs on the host.
func (l *Lab) has(h *host, p Process) bool {
	switch p {
	case NodeProcess:
		return h.Node
	case MountProcess:
		return h.Mount
	}
	return h == l.geo
}

// spawn starts one process and keeps it.
func (l *Lab) spawn(h *host, p Process, argv []string) (*supervisor.Child, error) {
	cmd := l.network.Command(context.Background(), h.Name, argv...)
	cmd.Env = append(os.Environ(), l.environ(h)...)
	s := supervisor.Spec{
		Name: fmt.Sprintf("%s of %s", p, h.Name), Owner: h.Name, Log: l.path("logs", h.Name+"-"+string(p)+".log"),
		Command: cmd, Gone: l.gone, Within: readyLimit,
	}
	if p == MountProcess {
		s.Mount = h.point
	}
	c, err := l.family.Spawn(s)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.runs[p], h.paused[p] = c, false
	return c, nil
}

// startGeoConfig starts the server and learns its address and cluster.
func (l *Lab) startGeoConfig(ctx context.Context, admin string) error {
	c, err := l.spawn(l.geo, GeoConfigProcess, []string{
		l.opt.Programs.Cartwheeld, "geo-config", "--data", l.path("data", "geo-config"),
		"--listen", fmt.Sprintf("/ip4/%v/tcp/%d", l.geo.Address, geoPort), "--admin", admin,
	})
	if err != nil {
		return err
	}
	r, err := c.Ready(ctx)
	if err != nil {
		return err
	}
	if len(r.Addresses) == 0 {
		return fault.E(fault.Other, "lab.Up", c.Name, "says no address")
	}
	l.geoAddress, l.cluster = r.Addresses[0], ids.Cluster(r.Cluster)
	return nil
}

func (l *Lab) spawnNode(h *host) (*supervisor.Child, error) {
	return l.spawn(h, NodeProcess, append([]string{
		l.opt.Programs.Cartwheeld, "node", "--data", l.path("data", h.Name), "--site", l.opt.Topology.Declared(h.Site), "--listen", h.listen(),
		"--socket", filepath.Join(l.state.dir, h.Name, "wire.sock"), "--geo-config", l.geoAddress,
		"--expected-nodes", fmt.Sprint(l.opt.Topology.Nodes()), "--lease", l.opt.Topology.Lease.String(),
	}, l.opt.NodeFlags...))
}

func (l *Lab) startMount(ctx context.Context, h *host) error {
	_ = supervisor.Detach(h.point) // of a mount that was killed
	c, err := l.spawn(h, MountProcess, append([]string{
		l.opt.Programs.Cartwheel, "mount", l.Contact(), h.point, "--site", l.opt.Topology.Declared(h.Site), "--report-ready", "--fsname", "cartwheel-" + h.Name,
		"--daemon-timeout", readyLimit.String(),
	}, l.opt.MountFlags...))
	if err != nil {
		return err
	}
	_, err = c.Ready(ctx)
	return err
}

// start starts one process of a host, if it does not run, and waits until it
// is ready.
func (l *Lab) start(ctx context.Context, h *host, p Process) error {
	switch {
	case h.child(p).Running():
		return nil
	case p == GeoConfigProcess:
		return l.startGeoConfig(ctx, l.state.admin)
	case p == MountProcess:
		return l.startMount(ctx, h)
	}
	c, err := l.spawnNode(h)
	if err == nil {
		_, err = c.Ready(ctx)
	}
	return err
}

// kill ends processes at once, as a loss of power would.
func (l *Lab) kill(h *host, which []Process) error {
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

// pause stops processes without ending them, as a machine that hangs would.
func (l *Lab) pause(h *host, which []Process) error {
	return l.signal(h, which, syscall.SIGSTOP, true)
}

// resume starts what is not running, and lets go on what was paused.
func (l *Lab) resume(ctx context.Context, h *host, which []Process) error {
	if err := l.signal(h, which, syscall.SIGCONT, false); err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	h.acting.Lock()
	defer h.acting.Unlock()
	for _, p := range which {
		if err := l.start(ctx, h, p); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) signal(h *host, which []Process, s syscall.Signal, paused bool) error {
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
	case c.Expected():
		return "killed"
	}
	return "died: " + c.How()
}

func asExit(err error) (*exec.ExitError, bool) {
	var e *exec.ExitError
	ok := errors.As(err, &e)
	return e, ok
}

const (
	nodePort = 7400
	geoPort  = 7300
	// readyLimit bounds the start of one process. Sixteen of them share two
	// cores and hundreds of milliseconds.
	readyLimit = 2 * time.Minute
)
