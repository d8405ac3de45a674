// Package demo runs a whole Cartwheel on one machine: three sites of one node
// each, the embedded geo-config, a mount per site and the console's gateway, every
// one a process of its own, so that killing one is what losing a site is. It supervises and
// nothing more: the processes are the real ones. One goroutine owns the
// processes; the control socket only sends it requests.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"cartwheel.dev/clients/supervisor"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/freeport"
	"cartwheel.dev/geo-config/ids"
)

// GeoConfigName is what fail and heal call the geo-config process.
const GeoConfigName = "geo-config"

// Options are what a person can choose.
type Options struct {
	Dir        string // the mounts are DIR/SITE, everything else under DIR/.state
	Sites      []string
	Mounts     bool
	Keep       bool // leave DIR/.state for the next start
	Lease      time.Duration
	Cartwheeld string // program
	Cartwheel  string // program
	Console    Console
	Out        io.Writer
	// Force, when it closes, ends an orderly stop: what still runs is killed.
	Force <-chan struct{}
}

// SiteState is one site in demo.json.
type SiteState struct {
	Name     string `json:"name"`
	Mount    string `json:"mount,omitempty"`
	Node     string `json:"node"`
	NodePID  int    `json:"node_pid"`
	MountPID int    `json:"mount_pid,omitempty"`
	NodeLog  string `json:"node_log"`
	// API is the address of the node's admin API, as a URL, and APIToken the file
	// with the token that makes a program administrator there.
	API      string `json:"api"`
	APIToken string `json:"api_token"`
	MountLog string `json:"mount_log,omitempty"`
}

// State is demo.json: what runs, for tests and scripts.
type State struct {
	PID       int         `json:"pid"`
	Contact   string      `json:"contact"`
	Control   string      `json:"control"` // the socket of fail and heal
	Sites     []SiteState `json:"sites"`
	GeoConfig struct {
		PID int `json:"pid"`
	} `json:"geo_config"`
	// Console is where people look at the cluster; nil: the demo has no console.
	Console *ConsoleState `json:"console,omitempty"`
}

// Demo is a running demo. Run owns it.
type Demo struct {
	opt      Options
	family   *supervisor.Family
	geo      *supervisor.Child
	sites    []*siteOf
	contact  string
	console  consoleOf
	control  *control
	cluster  ids.Cluster
	requests chan request
	gone     chan *supervisor.Child
	ports    freeport.Pool

	geoListen  string // kept over a restart
	geoAddress string // with its identity
}

type siteOf struct {
	name, id    string
	listen, api string // kept over a restart
	node, mount *supervisor.Child
	mountPoint  string
}

// endsLimit bounds the ends of processes that wait to be seen. One that has no
// room is not reported.
const endsLimit = 16

// Run starts everything, says what to try, and serves until ctx ends; then it
// stops everything in order. A failed start leaves nothing behind.
func Run(ctx context.Context, opt Options) (err error) {
	const op fault.Op = "demo.Run"
	if opt.Dir, err = filepath.Abs(opt.Dir); err != nil {
		return fault.Wrap(fault.Invalid, op, opt.Dir, err)
	}
	if err := checkSites(opt.Sites); err != nil {
		return err
	}
	if err := prepare(opt); err != nil {
		return err
	}
	d := &Demo{
		opt: opt, family: supervisor.New(), requests: make(chan request), gone: make(chan *supervisor.Child, endsLimit),
		contact: filepath.Join(opt.Dir, "contact.json"),
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	if d.control, err = listen(d.path("control.sock"), d.requests); err != nil {
		return fault.Wrap(fault.IO, op, opt.Dir, err)
	}
	defer d.control.close()
	if err := d.save(); err != nil { // so that what is started is found if this process is killed
		return fault.Wrap(fault.IO, op, opt.Dir, err)
	}
	if err := d.start(ctx); err != nil {
		return err
	}
	if err := d.save(); err != nil {
		return fault.Wrap(fault.IO, op, opt.Dir, err)
	}
	d.welcome()
	d.serve(ctx)
	return nil
}

func (d *Demo) path(parts ...string) string {
	return filepath.Join(append([]string{d.opt.Dir, ".state"}, parts...)...)
}

func (d *Demo) say(format string, args ...any) { fmt.Fprintf(d.opt.Out, format+"\n", args...) }

// serve answers requests and reports deaths until ctx ends.
func (d *Demo) serve(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-d.requests:
			r.answer <- d.handle(ctx, r)
			if err := d.save(); err != nil {
				d.say("cannot write demo.json: %v", err)
			}
		case c := <-d.gone:
			if !c.Expected() {
				d.say("%s ended by itself (%s; log: %s); `cartwheel demo heal %s` starts it again", c.Name, c.How(), c.Log, c.Owner)
			}
		}
	}
}

func (d *Demo) save() error {
	s := State{PID: os.Getpid(), Contact: d.contact, Control: d.control.path}
	s.GeoConfig.PID = d.geo.PID()
	for _, site := range d.sites {
		out := SiteState{Name: site.name, Node: site.id, NodePID: site.node.PID(), NodeLog: site.node.LogFile(),
			API: "http://" + site.api, APIToken: d.path(site.name, "api.token")}
		if d.opt.Mounts {
			out.Mount, out.MountPID, out.MountLog = site.mountPoint, site.mount.PID(), site.mount.LogFile()
		}
		s.Sites = append(s.Sites, out)
	}
	if d.console.listen != "" {
		s.Console = &ConsoleState{URL: d.console.url(), PID: d.console.gateway.PID(), Log: d.console.gateway.LogFile()}
	}
	return writeJSON(filepath.Join(d.opt.Dir, "demo.json"), s)
}

// Load reads demo.json of a running demo.
func Load(dir string) (State, error) {
	const op fault.Op = "demo.Load"
	var s State
	data, err := os.ReadFile(filepath.Join(dir, "demo.json"))
	if errors.Is(err, os.ErrNotExist) {
		return s, fault.E(fault.NotFound, op, dir, "no demo runs there: start one with `cartwheel demo`, or name its directory with --dir")
	}
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	return s, fault.Wrap(fault.IO, op, dir, err)
}

func (d *Demo) welcome() {
	first := d.sites[0]
	last := d.sites[len(d.sites)-1]
	d.say("")
	d.say("Cartwheel runs at %d sites on this machine:", len(d.sites))
	for _, s := range d.sites {
		if s.mount != nil {
			d.say("  %-10s mounted at %s", s.name, s.mountPoint)
		} else {
			d.say("  %-10s node %s (no mount)", s.name, s.id)
		}
	}
	program := d.opt.Cartwheel
	d.say("")
	d.say("Try, in another terminal:")
	if first.mount != nil {
		d.say("  echo hello > %s/hello", first.mountPoint)
		d.say("  cat %s/hello", last.mountPoint)
		d.say("  %s where %s/hello", program, first.mountPoint)
		d.say("  mkdir -p %s/.Site=%s/.RepLevel=2/near", first.mountPoint, last.name)
	}
	d.say("  %s status --contact %s", program, d.contact)
	d.say("  %s net matrix --contact %s", program, d.contact)
	d.say("  %s demo fail %s --dir %s    (kill -9 its node; the others go on)", program, first.name, d.opt.Dir)
	d.say("  %s demo heal %s --dir %s", program, first.name, d.opt.Dir)
	d.say("")
	d.welcomeConsole()
	d.say("ready; Ctrl-C ends it all")
}
