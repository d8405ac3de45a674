package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"cartwheel.dev/clients/supervisor"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

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

// spawnNode starts cartwheeld of a host; it is not ready yet.
func (l *Lab) spawnNode(h *host) (*supervisor.Child, error) {
	return l.spawn(h, NodeProcess, append([]string{
		l.opt.Programs.Cartwheeld, "node", "--data", l.DataFolder(h.Name), "--site", l.opt.Topology.Declared(h.Site), "--listen", h.listen(),
		"--socket", filepath.Join(l.state.dir, h.Name, "wire.sock"), "--geo-config", l.geoAddress,
		"--expected-nodes", fmt.Sprint(l.opt.Topology.Nodes()), "--lease", l.opt.Topology.Lease.String(),
	}, l.opt.NodeFlags...))
}

// startMount starts a host's mount, and returns when it answers.
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

// resume starts what is not running, and lets go on what was paused.
func (l *Lab) resume(ctx context.Context, h *host, which []Process) error {
	if err := h.signal(which, syscall.SIGCONT, false); err != nil && !fault.Is(err, fault.NotFound) {
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
