package daemon

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/founding"
	"cartwheel.dev/geo-config/ids"
	geoserver "cartwheel.dev/node/geo/serve"
	"cartwheel.dev/node/wire"
)

// geoConfigCmd runs the server of a configuration store.
type geoConfigCmd struct {
	databaseFlags `embed:""`

	Data   string   `help:"Directory of the server's key, and of the embedded store." required:"" type:"path"`
	Listen []string `help:"Addresses to listen on, such as /ip4/127.0.0.1/tcp/7300." required:"" sep:"none"`
	Admin  []string `help:"Identity (peer ID) of a further key that may change everything, as users that are administrators may. A node of the roster may change slices and its own row." sep:"none"`
}

// superseded is why a server ends whose store was rebuilt elsewhere.
func superseded(data, peer string, by ids.Generation) error {
	return fault.Errorf(fault.WrongCluster, "daemon.geoConfig", data,
		"this configuration was rebuilt: node %s obeys generation %d and later, which this store is not. Move this store away, and start the rebuilt one",
		ids.Node(peer).Short(), by)
}

// run serves until ctx ends or the store fails.
func (c *geoConfigCmd) run(ctx context.Context, stdio Stdio) (err error) {
	const op fault.Op = "daemon.run"
	store, err := c.openStore(ctx, c.Data, stdio.Environ)
	if err != nil {
		return err
	}
	defer store.Close()
	key, err := wire.MakeKey(filepath.Join(c.Data, keyFile))
	if err != nil {
		return fault.Wrap(fault.IO, op, c.Data, err)
	}
	first, err := founding.Load(filepath.Join(c.Data, founding.Name), time.Now())
	if err != nil {
		return err
	}
	cluster, err := founding.Found(ctx, store, first)
	if err != nil {
		return fault.Wrap(fault.IO, op, c.Data, err)
	}
	r := newRoster(c.Admin, time.Now)
	rows, err := store.Read(ctx, geoconfig.Query{Nodes: true, Users: true})
	if err != nil {
		return fault.Wrap(fault.IO, op, c.Data, err)
	}
	r.take(rows)
	host, err := wire.New(wire.Options{Key: key, Listen: c.Listen, Gater: r.admit})
	if err != nil {
		return fault.Wrap(fault.Invalid, op, "--listen", err)
	}
	defer host.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	server := geoserver.Serve(host, rostered{store, r}, geoserver.Options{Allow: r.allow, MayChange: r.mayChange,
		Superseded: func(peer string, by ids.Generation) {
			if r.isTrusted(peer) {
				cancel(superseded(c.Data, peer, by))
			}
		}})
	defer server.Close()
	if err := host.Listen(); err != nil {
		return fault.Wrap(fault.Busy, op, "--listen", err)
	}
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
