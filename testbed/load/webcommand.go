package load

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"time"

	"cartwheel.dev/clients/supervisor"
	"cartwheel.dev/geo-config/fault"
)

type webFlags struct {
	Origin string        `arg:"" help:"HOST:PORT of the web site."`
	Proxy  []string      `help:"HOST:PORT of a proxy." required:""`
	Client int           `help:"Number of this client, which fixes its pages." default:"0"`
	Pages  int           `help:"Pages of the web site." default:"100"`
	Bytes  int           `help:"Bytes of each page." default:"41000"`
	AtOnce int           `help:"Requests in flight." default:"5"`
	For    time.Duration `help:"How long." default:"10s"`
	Limit  time.Duration `help:"How long one request may take." default:"30s"`
	Seed   uint64        `help:"Seed of the pages." default:"1"`
	Events string        `help:"File of the events." type:"path" required:""`
}

func (f webFlags) run(ctx context.Context) error {
	o := WebOptions{
		WebPages: WebPages{Count: f.Pages, Bytes: f.Bytes, Seed: f.Seed}, Client: f.Client, Origin: f.Origin, Proxies: f.Proxy, AtOnce: f.AtOnce, For: f.For, Limit: f.Limit,
	}
	return into(f.Events, func(out io.Writer) error { return Web(ctx, o, out) })
}

type fetchFlags struct {
	Origin string `arg:"" help:"HOST:PORT of the web site."`
	Page   int    `help:"The page." default:"0"`
	Bytes  int    `help:"Its bytes." default:"41000"`
	Seed   uint64 `help:"Seed of the pages." default:"1"`
}

func (f fetchFlags) run(ctx context.Context) (any, error) {
	return orNothing(Fetch(ctx, FetchOptions{WebPages: WebPages{Count: f.Page + 1, Bytes: f.Bytes, Seed: f.Seed}, Origin: f.Origin, Page: f.Page}))
}

type originFlags struct {
	Listen string        `arg:"" help:"HOST:PORT to listen at."`
	Pages  int           `help:"Pages." default:"100"`
	Bytes  int           `help:"Bytes of each page." default:"41000"`
	Age    time.Duration `help:"How long caches may keep a page." default:"1h"`
	Seed   uint64        `help:"Seed of the pages." default:"1"`
	Events string        `help:"File of the events." type:"path" required:""`
}

// run serves until it is told to end. It says to out when it listens.
func (f originFlags) run(ctx context.Context, out io.Writer) error {
	const op fault.Op = "load.run"
	var config net.ListenConfig
	at, err := config.Listen(ctx, "tcp", f.Listen)
	if err != nil {
		return fault.Wrap(fault.Unreachable, op, f.Listen, err)
	}
	if err := json.NewEncoder(out).Encode(supervisor.Readiness{Ready: true, Addresses: []string{at.Addr().String()}}); err != nil {
		at.Close()
		return fault.Wrap(fault.IO, op, f.Listen, err)
	}
	o := OriginOptions{WebPages: WebPages{Count: f.Pages, Bytes: f.Bytes, Seed: f.Seed}, Age: f.Age}
	return into(f.Events, func(events io.Writer) error { return Origin(ctx, at, o, events) })
}
