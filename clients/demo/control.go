package demo

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
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
	Kind    fault.Kind `json:"kind"`
	Message string     `json:"message,omitempty"`
}

// control serves the socket by which other processes steer the demo.
type control struct {
	listener net.Listener
	done     sync.WaitGroup
	closed   chan struct{}
}

func listen(path string, requests chan<- request) (*control, error) {
	_ = os.Remove(path) // of a demo that was killed
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	c := &control{listener: l, closed: make(chan struct{})}
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
	_ = conn.SetDeadline(time.Now().Add(controlLimit)) // a socket that cannot have one fails below
	r := request{answer: make(chan reply, 1)}
	if err := json.NewDecoder(conn).Decode(&r); err != nil {
		return // whoever asked has gone
	}
	select {
	case requests <- r:
	case <-c.closed:
		return
	}
	select {
	case a := <-r.answer:
		_ = json.NewEncoder(conn).Encode(a) // whoever asked may have gone
	case <-c.closed:
	}
}

func (c *control) close() {
	close(c.closed)
	c.listener.Close()
	c.done.Wait()
}

// Ask sends a request to the demo in dir: do is "fail" or "heal", name a site or
// GeoConfigName.
func Ask(ctx context.Context, dir, do, name string) error {
	const op fault.Op = "demo.Ask"
	if _, err := Load(dir); err != nil {
		return err
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", filepath.Join(dir, ".state", "control.sock"))
	if err != nil {
		return &fault.Error{Kind: fault.Unreachable, Op: op, Subject: dir, Public: "the demo there does not answer; start it again with `cartwheel demo`", Cause: err}
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(controlLimit)) // a socket that cannot have one fails below
	if err := json.NewEncoder(conn).Encode(request{Do: do, Name: name}); err != nil {
		return fault.Wrap(fault.Unreachable, op, dir, err)
	}
	var a reply
	if err := json.NewDecoder(conn).Decode(&a); err != nil {
		return fault.Wrap(fault.Unreachable, op, dir, err)
	}
	if a.Kind != fault.None {
		return fault.E(a.Kind, op, name, a.Message)
	}
	return nil
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
	if err != nil {
		return reply{Kind: fault.KindOf(err), Message: err.Error()}
	}
	return reply{}
}

func (d *Demo) find(name string) (*siteOf, error) {
	var names []string
	for _, s := range d.sites {
		if s.name == name {
			return s, nil
		}
		names = append(names, s.name)
	}
	return nil, fault.Errorf(fault.NotFound, "demo.find", name, "is no site of this demo; there are %v and %s", names, GeoConfigName)
}

func (d *Demo) failOne(name string) error {
	if name == GeoConfigName {
		if !d.geo.running() {
			return fault.E(fault.NotFound, "demo.fail", name, "does not run")
		}
		d.geo.kill()
		d.say("killed %s: reads and writes go on; failover and new slices wait until it is back", name)
		return nil
	}
	s, err := d.find(name)
	if err != nil {
		return err
	}
	if !s.node.running() {
		return fault.E(fault.NotFound, "demo.fail", name, "its node does not run; heal it first")
	}
	s.node.kill()
	d.say("killed the node of %s", name)
	return nil
}

func (d *Demo) healOne(ctx context.Context, name string) error {
	if name == GeoConfigName {
		if d.geo.running() {
			return nil
		}
		return d.startGeoConfig(ctx)
	}
	s, err := d.find(name)
	if err != nil {
		return err
	}
	if !s.node.running() {
		if err := d.startNode(ctx, s); err != nil {
			return err
		}
		d.say("started the node of %s again", name)
	}
	if d.opt.Mounts && !s.mount.running() {
		return d.startMount(ctx, s)
	}
	return nil
}
