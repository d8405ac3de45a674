package demo

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// request is what `demo fail` and `demo heal` ask of the running demo.
type request struct {
	Do   string `json:"do"` // fail or heal
	Name string `json:"name"`

	answer chan reply
}

type reply struct {
	Fault []byte `json:"fault"` // fault.Encode
}

// control serves the socket by which other processes steer the demo.
type control struct {
	path     string
	listener net.Listener
	done     sync.WaitGroup
	ctx      context.Context // ends with close
	cancel   context.CancelFunc
}

// maxSocketPath is less than the shortest limit that a system has.
const maxSocketPath = 100

func listen(path string, requests chan<- request) (*control, error) {
	if len(path) > maxSocketPath {
		dir, err := os.MkdirTemp(shortTemp(), "cartwheel-demo-")
		if err != nil {
			return nil, err
		}
		path = filepath.Join(dir, "control.sock")
	}
	_ = os.Remove(path) // of a demo that was killed
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	c := &control{path: path, listener: l}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.done.Add(1)
	go func() {
		defer c.done.Done()
		for {
			conn, err := l.Accept()
			if err != nil {
				return // closed
			}
			c.done.Add(1)
			go func() { defer c.done.Done(); c.one(conn, requests) }()
		}
	}()
	return c, nil
}

// controlLimit bounds one request with its answer.
const controlLimit = 90 * time.Second

func (c *control) one(conn net.Conn, requests chan<- request) {
	defer conn.Close()
	stop := context.AfterFunc(c.ctx, func() { conn.Close() })
	defer stop()
	_ = conn.SetDeadline(time.Now().Add(controlLimit)) // a socket that cannot have one fails below
	r := request{answer: make(chan reply, 1)}
	if err := json.NewDecoder(conn).Decode(&r); err != nil {
		return // whoever asked has gone
	}
	select {
	case requests <- r:
	case <-c.ctx.Done():
		return
	}
	select {
	case a := <-r.answer:
		_ = json.NewEncoder(conn).Encode(a) // whoever asked may have gone
	case <-c.ctx.Done():
	}
}

func (c *control) close() {
	c.cancel()
	_ = c.listener.Close() // nobody is served any more
	c.done.Wait()
	if dir := filepath.Dir(c.path); strings.HasPrefix(filepath.Base(dir), "cartwheel-demo-") {
		_ = os.Remove(dir) // made by listen; empty now
	}
}

// shortTemp is a temporary folder whose name leaves room for a socket's.
func shortTemp() string {
	if dir := os.TempDir(); len(dir) < maxSocketPath/2 || runtime.GOOS == "windows" {
		return dir
	}
	return "/tmp"
}

// Ask sends a request to the demo in dir: do is "fail" or "heal", name a site or
// GeoConfigName or ConsoleName.
func Ask(ctx context.Context, dir, do, name string) error {
	const op fault.Op = "demo.Ask"
	state, err := Load(dir)
	if err != nil {
		return err
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", state.Control)
	if err != nil {
		return &fault.Error{Kind: fault.Unreachable, Op: op, Subject: dir, Public: "the demo there does not answer; start it again with `cartwheel demo`", Cause: err}
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	_ = conn.SetDeadline(time.Now().Add(controlLimit)) // a socket that cannot have one fails below
	if err := json.NewEncoder(conn).Encode(request{Do: do, Name: name}); err != nil {
		return fault.Wrap(fault.Unreachable, op, dir, err)
	}
	var a reply
	if err := json.NewDecoder(conn).Decode(&a); err != nil {
		return fault.Wrap(fault.Unreachable, op, dir, err)
	}
	failed, err := fault.Decode(a.Fault)
	if err != nil {
		return fault.Wrap(fault.Corrupt, op, dir, err)
	}
	return failed
}

func (d *Demo) handle(ctx context.Context, r request) reply {
	var err error
	switch r.Do {
	case "fail":
		err = d.failOne(r.Name)
	case "heal":
		err = d.healOne(ctx, r.Name)
	default:
		err = fault.E(fault.Usage, "demo.handle", r.Do, "is neither fail nor heal")
	}
	return reply{Fault: fault.Encode(nil, err)}
}

func (d *Demo) find(name string) (*siteOf, error) {
	var names []string
	for _, s := range d.sites {
		if s.name == name {
			return s, nil
		}
		names = append(names, s.name)
	}
	return nil, fault.Errorf(fault.NotFound, "demo.find", name, "is no site of this demo; there are %v, %s and %s", names, GeoConfigName, ConsoleName)
}

func (d *Demo) failOne(name string) error {
	if name == GeoConfigName {
		if !d.geo.Running() {
			return fault.E(fault.NotFound, "demo.fail", name, "does not run")
		}
		d.geo.Kill()
		d.say("killed %s: reads and writes go on; failover and new slices wait until it is back", name)
		return nil
	}
	if name == ConsoleName {
		if !d.console.gateway.Running() {
			return fault.E(fault.NotFound, "demo.fail", name, "does not run")
		}
		d.console.gateway.Kill()
		d.say("killed the gateway of the console")
		return nil
	}
	s, err := d.find(name)
	if err != nil {
		return err
	}
	if !s.node.Running() {
		return fault.E(fault.NotFound, "demo.fail", name, "its node does not run; heal it first")
	}
	s.node.Kill()
	d.say("killed the node of %s", name)
	return nil
}

func (d *Demo) healOne(ctx context.Context, name string) error {
	if name == GeoConfigName {
		if d.geo.Running() {
			return nil
		}
		if err := d.startGeoConfig(ctx); err != nil {
			return err
		}
		d.say("started %s again", name)
		return nil
	}
	if name == ConsoleName {
		return d.healConsole(ctx)
	}
	s, err := d.find(name)
	if err != nil {
		return err
	}
	if !s.node.Running() {
		if err := d.startNode(ctx, s); err != nil {
			return err
		}
		d.say("started the node of %s again", name)
	}
	if d.opt.Mounts && !s.mount.Running() {
		return d.startMount(ctx, s)
	}
	return nil
}
