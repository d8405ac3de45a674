package servertest

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/store"
	"cartwheel.dev/node/store/disk"
	"cartwheel.dev/node/wire"
)

// Node is one node of a cluster, running or stopped.
type Node struct {
	c      *Cluster
	Index  int
	Key    wire.Key
	Dir    string
	disk   storage
	mu     sync.Mutex     // guards below
	listen string         // where it listens, or listened last
	server *server.Server // nil: stopped
	seat   *far           // of the server
}

// Start starts a stopped node, on the address that it had.
func (n *Node) Start() {
	n.c.t.Helper()
	c := server.DefaultConfig()
	c.Data, c.Site, c.Listen, c.ExpectedNodes = n.Dir, n.c.o.Sites[n.Index], []string{n.Address()}, n.c.o.Expected
	c.ScrubPeriod = 0 // what a test counts is not read beside it
	if n.c.o.Configure != nil {
		n.c.o.Configure(n.Index, &c)
	}
	var logger *slog.Logger
	if n.c.o.Log {
		logger = slog.New(slog.NewTextHandler(testWriter{n.c.t}, &slog.HandlerOptions{Level: slog.LevelDebug})).With(slog.Int("index", n.Index))
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	seat := &far{c: n.c}
	d := server.Deps{
		Key: n.Key, Store: func(*wire.Host) (geoconfig.Store, error) { return seat, nil },
		Version: "test", Logger: logger, Random: rand.New(rand.NewPCG(uint64(n.Index), uint64(time.Now().UnixNano()))),
	}
	if n.c.o.Depend != nil {
		n.c.o.Depend(n.Index, &d)
	}
	change, storage := d.Disk, n.disk
	d.Disk = func(o *store.Options) {
		storage.provide(o)
		if change != nil {
			change(o)
		}
	}
	s, err := server.Open(ctx, c, d)
	if err != nil {
		n.c.t.Fatalf("node %d: %v", n.Index, err)
	}
	n.mu.Lock()
	n.server, n.seat, n.listen = s, seat, s.Addresses()[0]
	n.mu.Unlock()
}

// Files are the node's packs and journal in memory, for tests that damage them. A node that
// keeps its data in a folder has none.
func (n *Node) Files() *disk.Memory { return n.disk.files }

// Move has a stopped node start at another address.
func (n *Node) Move() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listen = freeAddress(n.c.t)
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(string(p))
	return len(p), nil
}

// Stop stops a node as SIGTERM does; a stopped one stays so.
func (n *Node) Stop() {
	if s, _ := n.take(); s != nil {
		n.ended(s.Close())
	}
}

// Kill stops a node without a word to anybody, and its disk keeps only what was
// synced, as when its machine loses power.
func (n *Node) Kill() {
	s, seat := n.take()
	if s == nil {
		return
	}
	// Whatever anybody heard of the node came before the disk is looked at.
	seat.leave()
	err := s.Host().Close()
	n.disk = n.disk.synced()
	n.ended(errors.Join(err, s.Abort()))
}

// take marks a node as stopped, and returns what is to be stopped.
func (n *Node) take() (*server.Server, *far) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s, seat := n.server, n.seat
	n.server, n.seat = nil, nil
	return s, seat
}

func (n *Node) ended(err error) {
	if err != nil {
		n.c.t.Errorf("node %d: closing: %v", n.Index, err)
	}
}

// Server returns the running server, nil while it is stopped.
func (n *Node) Server() *server.Server {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.server
}

// ID names the node.
func (n *Node) ID() ids.Node { return ids.Node(n.Key.KeyID()) }

// Address is where the node listens, or listened before it was stopped.
func (n *Node) Address() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.listen
}
