package daemon

import (
	"context"
	"io"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/version"
	"cartwheel.dev/node/collector"
	"cartwheel.dev/node/geo/join"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/timerslack"
	"cartwheel.dev/node/wire"
)

// startPatience is how long a start waits for geo-config.
const startPatience = 30 * time.Second

// timerSlack is how late a node's timers may be. What it measures it measures by
// clocks, and the intervals that it acts at are thirty times this and more.
const timerSlack = time.Millisecond

// nodeCmd runs a storage node.
type nodeCmd struct {
	nodeFlags `embed:""`
}

// Run implements the command.
func (c nodeCmd) Run(ctx context.Context, stdio Stdio) error {
	config, err := LoadConfig(c.Config, stdio.Environ, c.values())
	if err != nil {
		return err
	}
	if err := config.Validate(); err != nil {
		return err
	}
	if len(config.GeoConfig) == 0 {
		return fault.E(fault.Invalid, "daemon.node", "geo_config", "is missing: give the geo-config server's address, ending in /p2p/ID")
	}
	log, err := logger(stdio.Err, config.LogLevel, config.LogFormat)
	if err != nil {
		return err
	}
	defer collector.Start(config.MemoryBytes)()
	if err := timerslack.Allow(timerSlack); err != nil {
		log.Debug("timers stay exact, at some cost", logattr.Err(err))
	}
	key, err := loadKey(config.Data)
	if err != nil {
		return err
	}
	stop, err := profile(config.Pprof, log)
	if err != nil {
		return err
	}
	defer stop()
	tracer, flush, err := sendTraces(config, key, log)
	if err != nil {
		return err
	}
	defer flush()
	shown, err := listenFigures(config.Metrics)
	if err != nil {
		return err
	}
	administered, err := listenAPI(&config)
	if err != nil {
		shown.drop()
		return err
	}
	start, cancel := context.WithTimeout(ctx, startPatience)
	s, err := server.Open(start, config, server.Deps{
		Key: key, Version: version.String(), Logger: log, Metrics: shown.registry, Tracer: tracer,
		Store: func(h *wire.Host) (geoconfig.Store, error) { return join.Dial(h, config.GeoConfig) },
	})
	cancel()
	if err != nil {
		shown.drop()
		return first(err, administered.drop())
	}
	hide := both(administered.show(s, &config, key, log), shown.show(s, log))
	if err := stdio.ready(s.Host(), string(s.Cluster())); err != nil {
		hide()
		return first(err, s.Close())
	}
	var failed error
	select {
	case <-ctx.Done():
		log.Info("stopping")
		if err := stdio.notify(isEnding); err != nil {
			log.Debug("the service manager was not told", logattr.Err(err))
		}
	case failed = <-s.Failed():
	}
	hide()
	return first(failed, closeWithin(s, failed))
}

// both returns what calls one function and then the other.
func both(a, b func()) func() {
	return func() {
		a()
		b()
	}
}

// closePatience bounds the close of a node that failed: its disk may never
// answer again.
const closePatience = 5 * time.Second

// closeWithin closes the node. One that failed is left to the end of the process
// where closing takes too long.
func closeWithin(s io.Closer, failed error) error {
	if failed == nil {
		return s.Close()
	}
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	timer := time.NewTimer(closePatience)
	defer timer.Stop()
	select {
	case err := <-closed:
		return err
	case <-timer.C:
		return failed
	}
}
