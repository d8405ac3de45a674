package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"syscall"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile" // also the adapter, and the directives below
	_ "github.com/caddyserver/caddy/v2/modules/caddyevents"
	_ "github.com/caddyserver/caddy/v2/modules/caddyfs"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/encode"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/encode/gzip"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/encode/zstd"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/fileserver"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/headers"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/logging"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/requestbody"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy/forwardauth"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/rewrite"
	_ "github.com/caddyserver/caddy/v2/modules/caddypki"
	_ "github.com/caddyserver/caddy/v2/modules/caddytls"
	_ "github.com/caddyserver/caddy/v2/modules/caddytls/standardstek"
	_ "github.com/caddyserver/caddy/v2/modules/filestorage"
	_ "github.com/caddyserver/caddy/v2/modules/logging"
	"github.com/caddyserver/certmagic"
	"go.uber.org/zap/exp/zapslog"

	"cartwheel.dev/console/gateway/treefs"
	"cartwheel.dev/console/gateway/upstreams"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/logattr"
)

// register tells Caddy of our modules. Nothing of ours runs at import.
var register = sync.OnceFunc(func() {
	caddy.RegisterModule(new(upstreams.Source))
	caddy.RegisterModule(new(treefs.FS))
	for _, d := range treefs.Directives() {
		caddy.RegisterModule(d.New())
		httpcaddyfile.RegisterHandlerDirective(d.Name, d.Parse)
		httpcaddyfile.RegisterDirectiveOrder(d.Name, httpcaddyfile.Before, "file_server")
	}
})

// logger writes where Caddy's logger writes, in its form. A new configuration makes
// a new logger.
func logger() *slog.Logger {
	return slog.New(zapslog.NewHandler(caddy.Log().Core(), zapslog.WithName("gateway")))
}

// adapt makes Caddy's configuration from a Caddyfile.
func adapt(name string, caddyfile []byte) ([]byte, error) {
	const op fault.Op = "gateway.adapt"
	register()
	config, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt(caddyfile, map[string]any{"filename": name})
	if err != nil {
		return nil, fault.Wrap(fault.Usage, op, name, err)
	}
	for _, w := range warnings {
		logger().Warn("the Caddyfile has a weakness", logattr.Err(errors.New(w.String())))
	}
	return config, nil
}

// load puts a configuration in force. Where it fails, the one before stays.
func load(name string, read func() ([]byte, error)) error {
	const op fault.Op = "gateway.load"
	text, err := read()
	if err != nil {
		return err
	}
	config, err := adapt(name, text)
	if err != nil {
		return err
	}
	err = caddy.Load(config, true)
	if err != nil && strings.Contains(err.Error(), syscall.EADDRINUSE.Error()) {
		return fault.Wrap(fault.Busy, op, name, err) // Caddy keeps of a cause only its text
	}
	return fault.Wrap(fault.Other, op, name, err)
}

// readyLine is what a supervisor waits for, as of every process of Cartwheel.
const readyLine = `{"ready":true}`

// serve runs Caddy until ctx ends, and then lets requests in flight end within the
// configuration's grace period. It reads the configuration again at each signal.
// Whoever started the process learns from readyLine that it serves.
func serve(ctx context.Context, name string, read func() ([]byte, error), stdio Stdio) error {
	const op fault.Op = "gateway.serve"
	if err := load(name, read); err != nil {
		return err
	}
	logger().Info("the gateway serves", logattr.Path(name))
	fmt.Fprintln(stdio.Out, readyLine) // whoever started it may not listen
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-stdio.Again:
			if err := load(name, read); err != nil {
				logger().Error("the new configuration was refused, the old one stays", logattr.Path(name), logattr.Err(err))
				continue
			}
			logger().Info("a new configuration is in force", logattr.Path(name))
		}
	}
	err := caddy.Stop()
	certmagic.CleanUpOwnLocks(context.WithoutCancel(ctx), caddy.Log())
	return fault.Wrap(fault.IO, op, name, err)
}
