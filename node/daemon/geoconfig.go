package daemon

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"path/filepath"
	"sync"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/embedded"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	geoserver "cartwheel.dev/node/geo/serve"
	"cartwheel.dev/node/wire"
)

// geoConfigCmd runs the embedded store's server.
type geoConfigCmd struct {
	Data   string   `help:"Directory of the store." required:"" type:"path"`
	Listen []string `help:"Addresses to listen on, such as /ip4/127.0.0.1/tcp/7300." required:"" sep:"none"`
	Admin  []string `help:"Identity (peer ID) of a key that may change everything. A node of the roster may change slices and its own row." sep:"none"`
}

// keyFile is the private key in a data directory.
const keyFile = "node.key"

// run serves until ctx ends or the store fails.
func (c *geoConfigCmd) run(ctx context.Context, stdio Stdio) (err error) {
	const op fault.Op = "daemon.geo-config"
	store, err := embedded.Open(ctx, c.Data)
	if err != nil {
		return fault.Wrap(fault.IO, op, c.Data, err)
	}
	defer store.Close()
	key, err := wire.MakeKey(filepath.Join(c.Data, keyFile))
	if err != nil {
		return fault.Wrap(fault.IO, op, c.Data, err)
	}
	cluster, err := found(ctx, store)
	if err != nil {
		return fault.Wrap(fault.IO, op, c.Data, err)
	}
	r := newRoster(c.Admin)
	rows, err := store.Read(ctx, geoconfig.Query{Nodes: true})
	if err != nil {
		return fault.Wrap(fault.IO, op, c.Data, err)
	}
	r.take(rows)
	host, err := wire.New(wire.Options{Key: key, Listen: c.Listen, Gater: func(peer string) error { return r.allow(peer, false) }})
	if err != nil {
		return fault.Wrap(fault.Invalid, op, "--listen", err)
	}
	defer host.Close()
	server := geoserver.Serve(host, store, geoserver.Options{Allow: r.allow, MayChange: r.mayChange})
	defer server.Close()
	if err := host.Listen(); err != nil {
		return fault.Wrap(fault.Busy, op, "--listen", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var following sync.WaitGroup
	following.Add(1)
	go func() {
		defer following.Done()
		if err := r.follow(ctx, store, rows.Revision, host); err != nil {
			cancel(err)
		}
	}()
	defer following.Wait()
	defer cancel(nil)
	if err := stdio.ready(host, string(cluster.ID)); err != nil {
		return fault.Wrap(fault.IO, op, "standard output", err)
	}
	<-ctx.Done()
	if cause := context.Cause(ctx); !fault.Is(cause, fault.Canceled) {
		return fault.Wrap(fault.IO, op, c.Data, cause)
	}
	return nil
}

// found returns the cluster's row, which the first start makes.
func found(ctx context.Context, store geoconfig.Store) (geoconfig.Cluster, error) {
	rows, err := store.Read(ctx, geoconfig.Query{})
	if err != nil || rows.Cluster != nil {
		if err != nil {
			return geoconfig.Cluster{}, err
		}
		return *rows.Cluster, nil
	}
	cluster := geoconfig.Cluster{ID: ids.Cluster(randomName()), Generation: 1, CreatedNS: time.Now().UnixNano()}
	_, err = store.Apply(ctx, geoconfig.Batch{Key: "found-" + string(cluster.ID), Cluster: &cluster,
		Audit: []geoconfig.AuditRecord{{AtNS: cluster.CreatedNS, Who: "geo-config", Action: "cluster.found", Subject: geoconfig.ClusterKey().String()}}})
	return cluster, err
}

func randomName() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
