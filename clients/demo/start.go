package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cartwheel.dev/clients/bootstrap"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/supervisor"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

const maxSites = 9

func checkSites(sites []string) error {
	const op fault.Op = "demo.checkSites"
	if len(sites) < 1 || len(sites) > maxSites {
		return fault.Errorf(fault.Usage, op, "--sites", "names %d sites; between 1 and %d", len(sites), maxSites)
	}
	seen := map[string]bool{GeoConfigName: true, ConsoleName: true}
	for _, s := range sites {
		if s == "" || strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" || seen[s] {
			return fault.Errorf(fault.Usage, op, s, "is no site name, or is named twice: letters, digits, '-' and '_'")
		}
		seen[s] = true
	}
	return nil
}

// prepare makes the folders, and takes away what a demo that was killed left.
func prepare(opt Options) error {
	const op fault.Op = "demo.prepare"
	if err := checkFolder(opt.Dir); err != nil { // before anything in it is believed
		return err
	}
	if s, err := Load(opt.Dir); err == nil {
		if answers(s.Control) {
			return fault.Errorf(fault.Busy, op, opt.Dir, "a demo runs there already, process %d; stop it or name another directory with --dir", s.PID)
		}
		fmt.Fprintf(opt.Out, "a demo that ran in %s was killed; cleaning up after it\n", opt.Dir)
		for _, site := range s.Sites {
			if site.Mount != "" {
				_ = supervisor.Detach(site.Mount) // it may be gone already
			}
		}
	}
	if err := os.MkdirAll(opt.Dir, 0o755); err != nil {
		return fault.Wrap(fault.IO, op, opt.Dir, err)
	}
	if !opt.Keep {
		if err := os.RemoveAll(filepath.Join(opt.Dir, ".state")); err != nil {
			return fault.Wrap(fault.IO, op, opt.Dir, err)
		}
	}
	if err := os.MkdirAll(filepath.Join(opt.Dir, ".state"), 0o700); err != nil {
		return fault.Wrap(fault.IO, op, opt.Dir, err)
	}
	for _, name := range opt.Sites {
		point := filepath.Join(opt.Dir, name)
		if !opt.Mounts {
			continue
		}
		_ = supervisor.Detach(point) // nothing is mounted there, mostly
		if err := os.MkdirAll(point, 0o755); err != nil {
			return fault.Wrap(fault.IO, op, point, err)
		}
		left, err := os.ReadDir(point)
		if err != nil {
			return fault.Wrap(fault.IO, op, point, err)
		}
		if len(left) > 0 {
			return fault.E(fault.Busy, op, point, "is not empty, and a mount would hide what is in it; move it away or name another directory with --dir")
		}
	}
	return nil
}

func (d *Demo) start(ctx context.Context) error {
	d.say("starting geo-config")
	if err := d.startGeoConfig(ctx); err != nil {
		return err
	}
	d.say("starting %d nodes", len(d.opt.Sites))
	for _, name := range d.opt.Sites {
		if err := d.prepareSite(name); err != nil {
			return err
		}
	}
	if err := d.chooseConsole(); err != nil {
		return err
	}
	if err := d.register(ctx); err != nil {
		return err
	}
	if err := d.startNodes(ctx); err != nil {
		return err
	}
	if uid := os.Getuid(); uid > 0 { // else nobody could make anything in it
		if err := bootstrap.Own(ctx, d.contact, uint32(uid), uint32(os.Getgid())); err != nil {
			return err
		}
	}
	if d.console.listen != "" {
		d.say("starting the console")
		if err := errors.Join(d.makeFolder(ctx), d.startConsole(ctx), d.makeLink(ctx)); err != nil {
			return err
		}
	}
	if !d.opt.Mounts {
		return nil
	}
	d.say("mounting")
	for _, s := range d.sites {
		if err := d.startMount(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// prepareSite chooses a site's key and addresses.
func (d *Demo) prepareSite(name string) error {
	s := &siteOf{name: name, mountPoint: filepath.Join(d.opt.Dir, name)}
	d.sites = append(d.sites, s)
	if err := os.MkdirAll(d.path(name), 0o700); err != nil {
		return fault.Wrap(fault.IO, "demo.prepareSite", name, err)
	}
	id, err := bootstrap.Identity(d.path(name, "node.key"))
	if err != nil {
		return err
	}
	s.id = id
	if s.listen, err = d.freeAddress(); err != nil {
		return err
	}
	port, err := d.ports.Take()
	if err != nil {
		return err
	}
	s.api = fmt.Sprintf("127.0.0.1:%d", port)
	return nil
}

// startNodes starts a node at each site, and waits until one leads the root.
func (d *Demo) startNodes(ctx context.Context) error {
	var list []ids.Node
	for _, s := range d.sites {
		if err := d.spawnNode(s); err != nil {
			return err
		}
		list = append(list, ids.Node(s.id))
	}
	var addresses []string
	for _, s := range d.sites {
		r, err := s.node.Ready(ctx)
		if err != nil {
			return err
		}
		addresses = append(addresses, r.Addresses...)
	}
	if err := d.writeContact(addresses); err != nil {
		return err
	}
	return bootstrap.AwaitRoot(ctx, d.contact, list)
}

func (d *Demo) startNode(ctx context.Context, s *siteOf) error {
	if err := d.spawnNode(s); err != nil {
		return err
	}
	_, err := s.node.Ready(ctx)
	return err
}

func (d *Demo) startMount(ctx context.Context, s *siteOf) (err error) {
	_ = supervisor.Detach(s.mountPoint) // of a mount that was killed
	s.mount, err = d.spawn("mount at "+s.name, s.name, d.path(s.name, "mount.log"), s.mountPoint, d.opt.Cartwheel,
		"mount", d.contact, s.mountPoint, "--site", s.name, "--report-ready")
	if err != nil {
		return err
	}
	_, err = s.mount.Ready(ctx)
	return err
}

// stop ends everything, the mounts first, so that they can flush, and with them
// the gateway, so that nobody looks at what ends.
func (d *Demo) stop() error {
	var errs []error
	var mounts, nodes []*supervisor.Child
	for _, s := range d.sites {
		mounts, nodes = append(mounts, s.mount), append(nodes, s.node)
	}
	errs = append(errs, supervisor.EndAll(append(mounts, d.console.gateway), d.opt.Force))
	for _, s := range d.sites {
		if s.mount != nil {
			_ = supervisor.Detach(s.mountPoint) // the mount has done it, mostly
		}
		_ = os.Remove(s.mountPoint) // only if empty
	}
	errs = append(errs, supervisor.EndAll(nodes, d.opt.Force), supervisor.EndAll([]*supervisor.Child{d.geo}, d.opt.Force))
	d.family.Close()
	_ = d.ports.Close()                                  // it listened for nobody
	_ = os.Remove(filepath.Join(d.opt.Dir, "demo.json")) // never written, if the start failed
	if err := errors.Join(errs...); err != nil {
		d.say("not everything stopped in order; logs are left in %s", d.path())
		return err
	}
	if !d.opt.Keep {
		_ = os.Remove(d.contact)
		_ = os.Remove(d.adminFile())
		if err := os.RemoveAll(d.path()); err != nil {
			return fault.Wrap(fault.IO, "demo.stop", d.path(), err)
		}
		_ = os.Remove(d.opt.Dir) // only if empty
	}
	d.say("everything has stopped")
	return nil
}

// answers reports whether a demo listens on its socket. A process number could
// be another process's by now.
func answers(socket string) bool {
	conn, err := dial(socket)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

func dial(socket string) (net.Conn, error) { return net.DialTimeout("unix", socket, time.Second) }

// writeJSON replaces a file in one step.
func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return contact.WriteFile(path, append(data, '\n'))
}
