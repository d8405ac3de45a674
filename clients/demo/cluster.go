package demo

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"os/user"
	"strconv"

	"cartwheel.dev/clients/contact"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/geo/remote"
	"cartwheel.dev/node/wire"
)

// identity makes a key file if there is none and returns whom it names.
func identity(path string) (string, error) {
	key, err := wire.LoadKey(path)
	if err != nil {
		return "", err
	}
	return key.KeyID(), nil
}

// freeAddress finds a loopback port that nobody listens on. A node keeps its
// address when it is started again, so that the others find it without
// geo-config.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fault.FromOS("demo.freeAddress", "", err)
	}
	defer func() { _ = l.Close() }() // it took no connection
	return fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", l.Addr().(*net.TCPAddr).Port), nil
}

func (d *Demo) startGeoConfig(ctx context.Context) (err error) {
	admin, err := identity(d.path("admin.key"))
	if err != nil {
		return err
	}
	if d.geoListen == "" {
		if d.geoListen, err = freeAddress(); err != nil {
			return err
		}
	}
	d.geo, err = d.family.spawn(GeoConfigName, GeoConfigName, d.path("geo-config.log"), d.gone, d.opt.Cartwheeld,
		"geo-config", "--data", d.path("geo-config"), "--listen", d.geoListen, "--admin", admin)
	if err != nil {
		return err
	}
	r, err := d.geo.ready(ctx)
	if err != nil {
		return err
	}
	if len(r.Addresses) == 0 {
		return fault.E(fault.Other, "demo.start", GeoConfigName, "says no address")
	}
	d.geoAddress = r.Addresses[0]
	if r.Cluster != "" {
		d.cluster = geoconfig.ClusterID(r.Cluster)
	}
	return nil
}

// register writes the sites, nodes and the user that the demo consists of.
func (d *Demo) register(ctx context.Context) error {
	const op fault.Op = "demo.register"
	ctx, cancel := context.WithTimeout(ctx, registerLimit)
	defer cancel()
	admin, err := wire.LoadKey(d.path("admin.key"))
	if err != nil {
		return err
	}
	host, err := wire.New(wire.Options{Key: admin})
	if err != nil {
		return fault.Wrap(fault.IO, op, "", err)
	}
	defer func() { _ = host.Close() }() // everything was answered
	where, id, err := contact.SplitAddress(d.geoAddress)
	if err == nil {
		err = host.AddPeer(string(id), []string{where})
	}
	if err != nil {
		return fault.Wrap(fault.IO, op, d.geoAddress, err)
	}
	store := remote.Open(host, remote.Options{Peer: string(id)})
	defer func() { _ = store.Close() }() // likewise
	rows, err := store.Read(ctx, geoconfig.Query{Sites: true, Nodes: true, Users: true})
	if err != nil {
		return fault.Wrap(fault.Unreachable, op, GeoConfigName, err)
	}
	batch, err := d.missing(rows)
	if err != nil || batch.Len() == 0 {
		return err
	}
	_, err = store.Apply(ctx, batch)
	return fault.Wrap(fault.Conflict, op, GeoConfigName, err)
}

// missing is what the configuration lacks: everything at the first start,
// nothing where the data were kept.
func (d *Demo) missing(rows geoconfig.Rows) (geoconfig.Batch, error) {
	var key [16]byte
	_, _ = rand.Read(key[:]) // never fails
	b := geoconfig.Batch{Key: "demo-" + hex.EncodeToString(key[:])}
	sites, nodes := map[geoconfig.SiteName]bool{}, map[geoconfig.NodeID]bool{}
	for _, s := range rows.Sites {
		sites[s.Name] = true
	}
	for _, n := range rows.Nodes {
		nodes[n.ID] = true
	}
	for _, s := range d.sites {
		if name := geoconfig.SiteName(s.name); !sites[name] {
			b.Sites = append(b.Sites, geoconfig.Site{Name: name})
		}
		if id := geoconfig.NodeID(s.id); !nodes[id] {
			b.Nodes = append(b.Nodes, geoconfig.Node{ID: id, Site: geoconfig.SiteName(s.name), Addresses: []string{s.listen}})
		}
	}
	if len(rows.Users) > 0 {
		return b, nil
	}
	id, err := identity(d.path("user.key"))
	if err != nil {
		return b, err
	}
	u := geoconfig.User{Name: "demo", Key: id, UID: uint32(max(os.Getuid(), 0)), TrustedHost: true}
	if me, err := user.Current(); err == nil {
		if gid, err := strconv.ParseUint(me.Gid, 10, 32); err == nil {
			u.GIDs = []uint32{uint32(gid)}
		}
	}
	b.Users = []geoconfig.User{u}
	return b, nil
}

func (d *Demo) spawnNode(s *siteOf) (err error) {
	s.node, err = d.family.spawn("node at "+s.name, s.name, d.path(s.name, "node.log"), d.gone, d.opt.Cartwheeld,
		"node", "--data", d.path(s.name), "--site", s.name, "--listen", s.listen, "--geo-config", d.geoAddress,
		"--expected-nodes", strconv.Itoa(len(d.opt.Sites)), "--lease", d.opt.Lease.String())
	return err
}

func (d *Demo) writeContact(nodes []string) error {
	return contact.File{Cluster: d.cluster, Nodes: nodes, UserKey: d.path("user.key")}.Save(d.contact)
}
