package experiments

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"cartwheel.dev/clients/supervisor"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/lab"
	"cartwheel.dev/testbed/report"
	"cartwheel.dev/testbed/topology"
	"cartwheel.dev/testbed/wan"
)

// place is a host where work is done: its mount, and how commands run there.
type place struct {
	host     string
	site     string
	mount    string
	contact  string
	programs lab.Programs
	run      func(ctx context.Context, argv ...string) ([]byte, error)
}

// work has the host do one work of package load, and decodes its result.
func (p place) work(ctx context.Context, into any, args ...string) error {
	return p.decode(ctx, into, append([]string{p.programs.Testbed, "load"}, args...))
}

func (p place) decode(ctx context.Context, into any, argv []string) error {
	out, err := p.run(ctx, argv...)
	if err != nil || into == nil {
		return err
	}
	return fault.Wrap(fault.Other, "experiments.work", fmt.Sprint(argv), json.Unmarshal(out, into))
}

// count is what `cartwheel trace` tells of one kind of file operations.
type count struct {
	Kind    string `json:"operation"`
	Count   int    `json:"count"`
	WAN     int    `json:"wan"`
	MostWAN int    `json:"most_wan"`
	Out     int64  `json:"out_bytes"`
	In      int64  `json:"in_bytes"`
	Between int64  `json:"between_bytes"`
}

// traced is work with its round trips counted by the mount.
func (p place) traced(ctx context.Context, into any, args ...string) ([]count, error) {
	return p.tracedBy(ctx, nil, into, args...)
}

// tracedBy is traced with more words for `cartwheel trace`.
func (p place) tracedBy(ctx context.Context, words []string, into any, args ...string) ([]count, error) {
	file, err := os.CreateTemp("", "trace-")
	if err != nil {
		return nil, fault.FromOS("experiments.traced", "", err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	argv := append([]string{p.programs.Cartwheel, "--json", "trace", "--mount", p.mount, "-o", file.Name()}, words...)
	argv = append(append(argv, p.programs.Testbed, "load"), args...)
	if err := p.decode(ctx, into, argv); err != nil {
		return nil, err
	}
	var seen struct {
		Counts []count `json:"counts"`
	}
	data, err := os.ReadFile(file.Name())
	if err == nil {
		err = json.Unmarshal(data, &seen)
	}
	return seen.Counts, fault.Wrap(fault.Other, "experiments.traced", p.host, err)
}

// cold drops the caches of the place's mount and the kernel's.
func (p place) cold(ctx context.Context) error { return p.work(ctx, nil, "cold", p.mount) }

// bed is a lab that runs for an experiment, and what it has cost so far.
type bed struct {
	*lab.Lab
	env    *experiment.Env
	before *wan.Stats
	final  bool // what was found is to be told even if the attempt is void

	family   *supervisor.Family // of children; nil: there is none
	children []*supervisor.Child
}

// spawn starts a program that belongs to a host of the lab; its log is with the
// lab's. It ends with the bed, and with this process.
func (b *bed) spawn(cmd *exec.Cmd, host, name string) (*supervisor.Child, error) {
	if b.family == nil {
		b.family = supervisor.New()
	}
	c, err := b.family.Spawn(supervisor.Spec{
		Name: name + " of " + host, Owner: host, Log: filepath.Join(b.Dir(), "logs", host+"-"+name+".log"), Command: cmd, StopWithin: childLimit,
	})
	if err == nil {
		b.children = append(b.children, c)
	}
	return c, err
}

// childLimit bounds the orderly end of a program that an experiment started.
const childLimit = 5 * time.Second

// end ends what spawn started; one that does not stop by itself is killed, which
// is no error.
func (b *bed) end() {
	_ = supervisor.EndAll(b.children, nil)
	if b.children = nil; b.family != nil {
		b.family.Close()
		b.family = nil
	}
}

// attempts is how often an experiment is made in all, as long as it is void.
// The short form shows that an experiment works, and is made once.
const attempts = 2

// withLab brings a lab up in the run's folder, calls fn, and takes it down,
// whatever happened; where that was void, it does so once more, with a lab of
// its own. So fn begins anew each time it is called.
func withLab(ctx context.Context, env *experiment.Env, f *report.Folder, t *topology.Topology, fn func(ctx context.Context, b *bed) error) (outcome, error) {
	return withNodes(ctx, env, f, t, nil, fn)
}

// withNodes is withLab with words for every cartwheeld.
func withNodes(ctx context.Context, env *experiment.Env, f *report.Folder, t *topology.Topology, words []string, fn func(ctx context.Context, b *bed) error) (outcome, error) {
	most := attempts
	if env.Short {
		most = 1
	}
	return repeat(most, func() (string, bool, error) { return attempt(ctx, env, f, t, words, fn) }, func(void string) {
		fmt.Fprintf(env.Progress, "%s; once more\n", void)
	})
}

// outcome is how the attempts of an experiment went.
type outcome struct {
	void    string   // why the last does not count; empty: it does
	earlier []string // why each before it did not
}

// mark says in the report how it went.
func (o outcome) mark(r *report.Result) { r.Void, r.Earlier = o.void, o.earlier }

// add takes in how the attempts of one part of an experiment went.
func (o *outcome) add(part string, one outcome) {
	if one.void != "" {
		if o.void != "" {
			o.void += "; "
		}
		o.void += part + ": " + one.void
	}
	for _, v := range one.earlier {
		o.earlier = append(o.earlier, part+": "+v)
	}
}

// repeat makes an attempt, and again where it is void and what it found is not
// final, up to so many in all. say is told why there will be another one.
func repeat(most int, attempt func() (void string, final bool, err error), say func(void string)) (o outcome, err error) {
	for {
		void, final, err := attempt()
		if o.void = void; err != nil || void == "" || final || len(o.earlier)+1 >= most {
			return o, err
		}
		say(void)
		o.earlier = append(o.earlier, void)
	}
}

// attempt is withLab once.
func attempt(ctx context.Context, env *experiment.Env, f *report.Folder, t *topology.Topology, words []string, fn func(ctx context.Context, b *bed) error) (void string, final bool, err error) {
	const op fault.Op = "experiments.attempt"
	self, err := os.Executable()
	if err != nil {
		return "", false, fault.Wrap(fault.Other, op, "", err)
	}
	data, err := os.MkdirTemp("", "lab-")
	if err != nil {
		return "", false, fault.FromOS(op, "", err)
	}
	defer os.RemoveAll(data)
	l, err := lab.Up(ctx, lab.Options{
		Name: labName(env), Topology: t, Dir: data, Programs: lab.Beside(filepath.Dir(self)), NodeFlags: words,
		Say: func(format string, args ...any) { fmt.Fprintf(env.Progress, format+"\n", args...) },
	})
	if err != nil {
		return "", false, errors.Join(err, keepLogs(f, data))
	}
	defer func() { err = errors.Join(err, l.Close(), keepLogs(f, data)) }()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case <-l.AskedDown():
			stop(fault.E(fault.Canceled, op, l.Name(), "another process asked the lab to go down"))
		case <-ctx.Done():
		}
	}()
	b := &bed{Lab: l, env: env}
	if b.before, err = l.Network().Stats(ctx); err != nil {
		return "", false, err
	}
	defer b.end() // before the lab goes down
	if err := fn(ctx, b); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = errors.Join(cause, err)
		}
		return "", false, err
	}
	after, err := l.Network().Stats(ctx)
	if err != nil {
		return "", false, err
	}
	return after.Since(b.before).Void(), b.final, nil
}

// labName is a name that no other run on this machine has.
func labName(env *experiment.Env) string {
	return fmt.Sprintf("x%07d", (uint64(os.Getpid())*31+env.Seed)%10000000)
}

// keepLogs copies the logs of a lab to the run's folder, over those of an
// attempt before.
func keepLogs(f *report.Folder, data string) error {
	names, err := filepath.Glob(filepath.Join(data, "logs", "*.log"))
	for _, name := range append(names, filepath.Join(data, "events.jsonl")) {
		text, rerr := os.ReadFile(name)
		if errors.Is(rerr, os.ErrNotExist) {
			continue
		}
		if rerr == nil {
			rerr = os.WriteFile(f.Path(filepath.Join(report.LogFolder, filepath.Base(name))), text, 0o644)
		}
		err = errors.Join(err, rerr)
	}
	return fault.FromOS("experiments.keepLogs", data, err)
}

// at is the first host with a mount at a site.
func (b *bed) at(site string) (place, error) {
	for _, h := range b.Topology().At(site) {
		if h.Mount {
			return b.place(h)
		}
	}
	return place{}, fault.E(fault.NotFound, "experiments.at", site, "no host of this site has a mount")
}

// everywhere is a place at each site that has a mount.
func (b *bed) everywhere() ([]place, error) {
	var all []place
	for _, s := range b.Topology().Sites {
		p, err := b.at(s.Name)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return nil, err
		}
		if err == nil {
			all = append(all, p)
		}
	}
	return all, nil
}

func (b *bed) place(h topology.Host) (place, error) {
	point, err := b.Mount(h.Name)
	if err != nil {
		return place{}, err
	}
	p, err := b.host(h)
	p.mount = point
	return p, err
}

// host is a place that may have no mount.
func (b *bed) host(h topology.Host) (place, error) {
	self, err := os.Executable()
	if err != nil {
		return place{}, fault.Wrap(fault.Other, "experiments.host", "", err)
	}
	return place{
		host: h.Name, site: h.Site, contact: b.Contact(), programs: lab.Beside(filepath.Dir(self)),
		run: func(ctx context.Context, argv ...string) ([]byte, error) { return b.Run(ctx, h.Name, argv...) },
	}, nil
}

func (b *bed) say(format string, args ...any) { fmt.Fprintf(b.env.Progress, format+"\n", args...) }

// mkdir makes a folder through a mount, with cues in its path; a cluster that
// has just come up may need a moment for its first slices.
func mkdir(ctx context.Context, path string) error {
	var err error
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for range 100 {
		if err = os.MkdirAll(path, 0o755); err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fault.FromOS("experiments.mkdir", path, errors.Join(ctx.Err(), err))
		}
	}
	return fault.FromOS("experiments.mkdir", path, err)
}

// described reads a topology that an experiment brings itself.
func described(name, yaml string) (*topology.Topology, error) {
	return topology.Parse(name+".yaml", bytes.TrimLeft([]byte(yaml), "\n"))
}

// chosen is the topology that the settings name.
func chosen(env *experiment.Env) (*topology.Topology, error) {
	return topology.Find(env.Text("topology"), topology.Draw{Seed: env.Seed})
}
