package demo

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"

	"cartwheel.dev/clients/bootstrap"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/supervisor"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// freeAddress is the multiaddress of a free port. A node keeps its ports when it
// is started again, so that the others find it without geo-config, and people
// its API.
func (d *Demo) freeAddress() (string, error) {
	port, err := d.ports.Take()
	return fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", port), err
}

func (d *Demo) startGeoConfig(ctx context.Context) (err error) {
	admin, err := bootstrap.Identity(d.path("admin.key"))
	if err != nil {
		return err
	}
	if d.geoListen == "" {
		if d.geoListen, err = d.freeAddress(); err != nil {
			return err
		}
	}
	d.geo, err = d.spawn(GeoConfigName, GeoConfigName, d.path("geo-config.log"), "", d.opt.Cartwheeld,
		"geo-config", "--data", d.path("geo-config"), "--listen", d.geoListen, "--admin", admin)
	if err != nil {
		return err
	}
	r, err := d.geo.Ready(ctx)
	if err != nil {
		return err
	}
	if len(r.Addresses) == 0 {
		return fault.E(fault.Other, "demo.start", GeoConfigName, "says no address")
	}
	d.geoAddress = r.Addresses[0]
	if r.Cluster != "" {
		d.cluster = ids.Cluster(r.Cluster)
	}
	return nil
}

// runsName is the directory beside the demo's into which cartwheel-testbed writes
// its runs, unless it is told of another one.
const runsName = "cartwheel-testbed"

// userName is the user as whom the demo's own machine acts.
const userName = "demo"

// register writes the sites, nodes and users that the demo consists of.
func (d *Demo) register(ctx context.Context) error {
	others, err := d.consoleUsers()
	if err != nil {
		return err
	}
	plan := bootstrap.Plan{GeoConfig: d.geoAddress, AdminKey: d.path("admin.key"), UserKey: d.path("user.key"), User: userName, Others: others}
	for _, s := range d.sites {
		plan.Nodes = append(plan.Nodes, geoconfig.Node{ID: ids.Node(s.id), Site: ids.Site(s.name), Addresses: []string{s.listen}})
	}
	return bootstrap.Register(ctx, plan)
}

// spawn starts one of the demo's processes.
func (d *Demo) spawn(name, owner, log, mount, program string, words ...string) (*supervisor.Child, error) {
	return d.family.Spawn(supervisor.Spec{Name: name, Owner: owner, Log: log, Mount: mount, Gone: d.gone, Command: exec.Command(program, words...)})
}

func (d *Demo) spawnNode(s *siteOf) (err error) {
	s.node, err = d.spawn("node at "+s.name, s.name, d.path(s.name, "node.log"), "", d.opt.Cartwheeld,
		"node", "--data", d.path(s.name), "--site", s.name, "--listen", s.listen, "--geo-config", d.geoAddress,
		"--expected-nodes", strconv.Itoa(len(d.opt.Sites)), "--lease", d.opt.Lease.String(),
		"--api", s.api, "--api-key", d.path("user.key"),
		"--experiments", filepath.Join(filepath.Dir(d.opt.Dir), runsName))
	return err
}

// writeContact writes how to reach the cluster, and how to administer it.
func (d *Demo) writeContact(nodes []string) error {
	admin := bootstrap.Admin{Cluster: d.cluster, GeoConfig: []string{d.geoAddress}, Key: d.path("user.key")}
	if d.console.listen != "" {
		admin.Console = d.console.url()
	}
	return errors.Join(admin.Save(d.adminFile()),
		contact.File{Cluster: d.cluster, Nodes: nodes, UserKey: d.path("user.key"), Demo: true}.Save(d.contact))
}
