// Package bootstrap makes a cluster out of processes that run: it registers
// sites, nodes and a user with geo-config, and waits until the nodes have found
// one another and serve the root. It starts no process. Its functions may be
// called by several goroutines, each for a cluster of its own.
package bootstrap

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"os"
	"os/user"
	"strconv"
	"time"

	"cartwheel.dev/clients/contact"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/geo/remote"
	"cartwheel.dev/node/wire"
)

// Plan is what a cluster is to consist of.
type Plan struct {
	GeoConfig string           `json:"geo_config"` // its address, ending in /p2p/ID
	AdminKey  string           `json:"admin_key"`  // file
	UserKey   string           `json:"user_key"`   // file; made if it is not there
	User      string           `json:"user"`       // its name
	Nodes     []geoconfig.Node `json:"nodes"`      // with their sites
	// Others are further users. Each is added unless one has its name.
	Others []geoconfig.User `json:"others,omitempty"`
}

// registerLimit bounds the first words with geo-config.
const registerLimit = 20 * time.Second

// Identity makes a key file if there is none and returns whom it names.
func Identity(path string) (string, error) {
	key, err := wire.MakeKey(path)
	if err != nil {
		return "", err
	}
	return key.KeyID(), nil
}

// Register writes what the configuration lacks of the plan: everything at the
// first start, nothing where the data were kept.
func Register(ctx context.Context, plan Plan) error {
	const op fault.Op = "bootstrap.Register"
	ctx, cancel := context.WithTimeout(ctx, registerLimit)
	defer cancel()
	admin, err := wire.LoadKey(plan.AdminKey)
	if err != nil {
		return err
	}
	host, err := wire.New(wire.Options{Key: admin})
	if err != nil {
		return fault.Wrap(fault.IO, op, "", err)
	}
	defer func() { _ = host.Close() }() // everything was answered
	where, id, err := contact.SplitAddress(plan.GeoConfig)
	if err == nil {
		err = host.AddPeer(string(id), []string{where})
	}
	if err != nil {
		return fault.Wrap(fault.IO, op, plan.GeoConfig, err)
	}
	store := remote.Open(host, remote.Options{Peer: string(id)})
	defer func() { _ = store.Close() }() // likewise
	rows, err := store.Read(ctx, geoconfig.Query{Sites: true, Nodes: true, Users: true})
	if err != nil {
		return fault.Wrap(fault.Unreachable, op, plan.GeoConfig, err)
	}
	batch, err := plan.missing(rows)
	if err != nil || batch.Len() == 0 {
		return err
	}
	_, err = store.Apply(ctx, batch)
	return fault.Wrap(fault.Conflict, op, plan.GeoConfig, err)
}

func (p Plan) missing(rows geoconfig.Rows) (geoconfig.Batch, error) {
	var key [16]byte
	_, _ = rand.Read(key[:]) // never fails
	b := geoconfig.Batch{Key: "found-" + hex.EncodeToString(key[:])}
	sites, nodes := map[ids.Site]bool{}, map[ids.Node]bool{}
	for _, s := range rows.Sites {
		sites[s.Name] = true
	}
	for _, n := range rows.Nodes {
		nodes[n.ID] = true
	}
	for _, n := range p.Nodes {
		if !sites[n.Site] {
			sites[n.Site] = true
			b.Sites = append(b.Sites, geoconfig.Site{Name: n.Site})
		}
		if !nodes[n.ID] {
			b.Nodes = append(b.Nodes, n)
		}
	}
	taken := map[ids.User]bool{}
	for _, u := range rows.Users {
		taken[u.Name] = true
	}
	for _, u := range p.Others {
		if !taken[u.Name] {
			b.Users = append(b.Users, u)
		}
	}
	if len(rows.Users) > 0 {
		return b, nil
	}
	first, err := p.first()
	b.Users = append(b.Users, first)
	return b, err
}

// first is the user of the plan, an administrator, who acts on a trusted host.
func (p Plan) first() (geoconfig.User, error) {
	id, err := Identity(p.UserKey)
	if err != nil {
		return geoconfig.User{}, err
	}
	u := geoconfig.User{Name: ids.User(p.User), Key: id, UID: uint32(max(os.Getuid(), 0)), TrustedHost: true, Admin: true}
	if me, err := user.Current(); err == nil {
		if gid, err := strconv.ParseUint(me.Gid, 10, 32); err == nil {
			u.GIDs = []uint32{uint32(gid)}
		}
	}
	return u, nil
}
