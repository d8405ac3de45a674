package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/version"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// TestUpgrade_RaisesTheLevelOnceAllNodesKnowIt upgrades three nodes one after the
// other while a client writes, to a program with one feature level more.
func TestUpgrade_RaisesTheLevelOnceAllNodesKnowIt(t *testing.T) {
	t.Parallel()
	const older, newer = version.Feature, version.Feature + 1
	knows := map[int]int{0: older, 1: older, 2: older}
	c := servertest.Start(t, servertest.Options{Log: testing.Verbose(), Depend: func(i int, d *server.Deps) { d.Feature = knows[i] }})
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	level := func() int {
		t.Helper()
		rows, err := c.Store.Read(ctx, geoconfig.Query{})
		if err != nil {
			t.Fatal(err)
		}
		return rows.Cluster.Feature
	}
	await := func(want int) {
		t.Helper()
		servertest.Await(ctx, t, fmt.Sprintf("feature level %d", want), func() error {
			if got := level(); got != want {
				return fmt.Errorf("it is %d", got)
			}
			return nil
		})
	}
	await(older)
	cl := c.Connect("root")
	var names []string
	for i, n := range c.Nodes {
		n.Stop()
		knows[n.Index] = newer
		n.Start()
		made, _ := makeFiles(ctx, t, cl, fmt.Sprintf("during%d", i), 5)
		names = append(names, made...)
		if i < len(c.Nodes)-1 && level() != older {
			t.Errorf("the level is %d while a node knows only %d", level(), older)
		}
		awaitWhole(ctx, t, c)
	}
	await(newer)
	checkFiles(ctx, t, c, cl, names)

	old := c.Nodes[0]
	old.Stop()
	config := server.DefaultConfig()
	config.Data, config.Site, config.Listen = t.TempDir(), "a", []string{old.Address()}
	s, err := server.Open(ctx, config, server.Deps{Key: old.Key, Feature: older, Version: "old", Logger: slog.New(slog.DiscardHandler),
		Store: func(*wire.Host) (geoconfig.Store, error) { return keptOpen{c.Store}, nil }})
	if !fault.Is(err, fault.NewerVersion) || s != nil {
		t.Errorf("an old program got %v, want that a newer one is needed", err)
	}
}

// keptOpen is a store that others use on.
type keptOpen struct{ geoconfig.Store }

func (keptOpen) Close() error { return nil }
