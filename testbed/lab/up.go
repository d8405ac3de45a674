package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"cartwheel.dev/clients/bootstrap"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/supervisor"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/testbed/netns"
	"cartwheel.dev/testbed/wan"
)

// endsLimit bounds the ends of processes that wait to be noted. One that has no
// room is not in the events.
const endsLimit = 64

// mountsAtOnce bounds the mounts that start together.
const mountsAtOnce = 4

// Up brings a lab up and returns when every mount answers. When it fails, or
// ctx ends meanwhile, it leaves no process, mount or namespace; the logs stay.
// The lab outlives ctx: Close ends it.
func Up(ctx context.Context, opt Options) (*Lab, error) {
	const op fault.Op = "lab.Up"
	var err error
	if opt.Dir, err = filepath.Abs(opt.Dir); err != nil {
		return nil, fault.Wrap(fault.Invalid, op, opt.Dir, err)
	}
	if opt.Name == "" {
		opt.Name = DefaultName
	}
	if err := opt.Programs.check(); err != nil {
		return nil, err
	}
	held, err := hold(ctx, opt.Name)
	if err != nil {
		return nil, err
	}
	if _, err := wan.Attach(ctx, Prefix, opt.Name); err == nil {
		err = fault.E(fault.Exists, op, netns.Run{Prefix: Prefix, ID: opt.Name}.String(),
			"namespaces of another run are there, and its network runs: end that run, or give this lab another --name")
		return nil, errors.Join(err, held.release())
	}
	if err := Clear(ctx, opt.Name); err != nil {
		return nil, errors.Join(err, held.release())
	}
	l := &Lab{
		opt: opt, state: held, family: supervisor.New(), gone: make(chan *supervisor.Child, endsLimit), asked: make(chan struct{}), started: time.Now(),
	}
	if err := l.up(ctx); err != nil {
		if ctx.Err() != nil {
			err = fault.Wrap(fault.Canceled, op, opt.Name, context.Cause(ctx))
		}
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (p Programs) check() error {
	for _, path := range []string{p.Cartwheel, p.Cartwheeld, p.Testbed} {
		if _, err := os.Stat(path); err != nil {
			return fault.E(fault.NotFound, "lab.Up", path, "is not there: run scripts/build, or name the programs' directory with --bin")
		}
	}
	return nil
}

func (l *Lab) up(ctx context.Context) error {
	t := l.opt.Topology
	if err := l.folders(); err != nil {
		return err
	}
	l.place()
	if err := l.state.save(l.record(false)); err != nil { // so that Clear finds the mounts if this process is killed
		return err
	}
	l.say("network: %d hosts at %d sites", len(t.Hosts), len(t.Sites))
	log, err := os.OpenFile(l.path("logs", "emulator.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fault.FromOS("lab.Up", l.opt.Dir, err)
	}
	defer log.Close()
	l.network, err = wan.Start(ctx, Config(t, l.opt.Name), wan.Options{Emulator: []string{l.opt.Programs.Testbed, "emulate"}, Stderr: log})
	if err != nil {
		return fault.Wrap(fault.Other, "lab.Up", l.opt.Name, withLog(err, log.Name()))
	}
	l.watch()
	if err := l.found(ctx); err != nil {
		return err
	}
	if err := l.mount(ctx); err != nil {
		return err
	}
	if l.control, err = listen(l); err != nil {
		return err
	}
	if err := l.state.save(l.record(true)); err != nil {
		return err
	}
	l.events.add("up", l.opt.Name, fmt.Sprintf("%s after %v", t.Name, time.Since(l.started).Round(time.Millisecond)))
	return nil
}

// folders makes the lab's folder with what is known at the start.
func (l *Lab) folders() error {
	const op fault.Op = "lab.folders"
	for _, sub := range []string{"logs", "run"} {
		if err := os.MkdirAll(l.path(sub), 0o755); err != nil {
			return fault.FromOS(op, l.opt.Dir, err)
		}
	}
	if err := os.MkdirAll(l.path("data", "geo-config"), 0o700); err != nil {
		return fault.FromOS(op, l.opt.Dir, err)
	}
	if err := os.WriteFile(l.path("topology.yaml"), l.opt.Topology.YAML(), 0o644); err != nil {
		return fault.FromOS(op, l.opt.Dir, err)
	}
	var err error
	l.events, err = newEvents(l.path("events.jsonl"))
	return err
}

// place makes the hosts.
func (l *Lab) place() {
	for _, h := range l.opt.Topology.Hosts {
		one := &host{Host: h, runs: map[Process]*supervisor.Child{}, paused: map[Process]bool{}}
		if h.Mount {
			one.point = l.path("mnt", h.Name)
		}
		if h.Name == l.opt.Topology.GeoConfig {
			l.geo = one
		}
		l.hosts = append(l.hosts, one)
	}
}

// found starts geo-config and the nodes and makes a cluster of them.
func (l *Lab) found(ctx context.Context) error {
	admin, err := bootstrap.Identity(l.path("data", "admin.key"))
	if err != nil {
		return err
	}
	l.state.admin = admin
	l.say("geo-config at %s", l.geo.Name)
	if err := l.startGeoConfig(ctx, admin); err != nil {
		return err
	}
	plan := bootstrap.Plan{GeoConfig: l.geoAddress, AdminKey: l.path("data", "admin.key"), UserKey: l.path("data", "user.key"), User: "lab"}
	file := contact.File{Cluster: l.cluster, UserKey: plan.UserKey}
	for _, h := range l.hosts {
		if !h.Node {
			continue
		}
		if err := os.MkdirAll(l.path("data", h.Name), 0o700); err != nil {
			return fault.FromOS("lab.Up", l.opt.Dir, err)
		}
		id, err := bootstrap.Identity(l.path("data", h.Name, "node.key"))
		if err != nil {
			return err
		}
		h.id = ids.Node(id)
		plan.Nodes = append(plan.Nodes, geoconfig.Node{ID: h.id, Site: ids.Site(l.opt.Topology.Declared(h.Site)), Addresses: []string{h.listen()}})
		file.Nodes = append(file.Nodes, h.peer())
	}
	if err := l.enrol(ctx, Enrolment{Plan: &plan}); err != nil {
		return err
	}
	l.say("%d nodes", len(plan.Nodes))
	if err := l.startNodes(ctx); err != nil {
		return err
	}
	if err := file.Save(l.Contact()); err != nil {
		return err
	}
	key, err := filepath.Abs(plan.AdminKey)
	if err != nil {
		return fault.FromOS("lab.Up", plan.AdminKey, err)
	}
	if err := (bootstrap.Admin{Cluster: l.cluster, GeoConfig: []string{l.geoAddress}, Key: key}).Save(l.AdminFile()); err != nil {
		return err
	}
	var await Enrolment
	await.Contact = l.Contact()
	for _, n := range plan.Nodes {
		await.Nodes = append(await.Nodes, n.ID)
	}
	return l.enrol(ctx, await)
}

func (l *Lab) startNodes(ctx context.Context) error {
	var nodes []*supervisor.Child
	for _, h := range l.hosts {
		if !h.Node {
			continue
		}
		c, err := l.spawnNode(h)
		if err != nil {
			return err
		}
		nodes = append(nodes, c)
	}
	for _, c := range nodes {
		if _, err := c.Ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) mount(ctx context.Context) error {
	n := len(l.Mounts())
	if n == 0 {
		return nil
	}
	l.say("%d mounts", n)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(mountsAtOnce)
	for _, h := range l.hosts {
		if !h.Mount {
			continue
		}
		g.Go(func() error {
			if err := os.MkdirAll(h.point, 0o755); err != nil {
				return fault.FromOS("lab.Up", h.point, err)
			}
			return l.startMount(ctx, h)
		})
	}
	return g.Wait()
}

// Enrolment is what this program does inside a host when it is called with the
// word `enrol`: register the nodes of a plan, or wait until the root is served.
type Enrolment struct {
	Plan    *bootstrap.Plan `json:"plan,omitempty"`
	Contact string          `json:"contact,omitempty"`
	Nodes   []ids.Node      `json:"nodes,omitempty"`
}

// Run does it.
func (e Enrolment) Run(ctx context.Context) error {
	if e.Plan != nil {
		return bootstrap.Register(ctx, *e.Plan)
	}
	return bootstrap.AwaitRoot(ctx, e.Contact, e.Nodes)
}

// enrolLimit bounds either.
const enrolLimit = time.Minute

// enrol does it where geo-config runs, whose addresses only exist there.
func (l *Lab) enrol(ctx context.Context, e Enrolment) error {
	ctx, cancel := context.WithTimeout(ctx, enrolLimit)
	defer cancel()
	data, err := json.Marshal(e)
	if err != nil {
		return fault.Wrap(fault.Invalid, "lab.Up", "", err)
	}
	_, err = l.Run(ctx, l.geo.Name, l.opt.Programs.Testbed, "enrol", string(data))
	return err
}

// watch hears of processes that end, until the lab closes.
func (l *Lab) watch() {
	ctx, cancel := context.WithCancel(context.Background())
	l.end = cancel
	l.done.Add(1)
	go func() {
		defer l.done.Done()
		for {
			select {
			case <-ctx.Done():
				return
			case <-l.network.Gone():
				l.events.add("died", "emulator", "the emulator ended: nothing passes between sites any more")
				l.say("the emulator ended by itself; log: %s", l.path("logs", "emulator.log"))
				return
			case c := <-l.gone:
				if !c.Expected() {
					l.events.add("died", c.Owner, fmt.Sprintf("%s ended by itself: %s", c.Name, c.How()))
					l.say("%s ended by itself (%s; log: %s); `cartwheel-testbed fault start %s` starts it again", c.Name, c.How(), c.Log, c.Owner)
				}
			}
		}
	}()
}

// withLog adds what a log says last.
func withLog(err error, path string) error {
	data, rerr := os.ReadFile(path)
	if rerr != nil || len(data) == 0 {
		return err
	}
	const tail = 2000
	return fmt.Errorf("%w; its log ends:\n%s", err, data[max(0, len(data)-tail):])
}
