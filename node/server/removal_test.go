package server_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// stoppable is the configuration store as one node reaches it: while it is
// stopped, calls and their answers wait, as they do in a process that is.
type stoppable struct {
	geoconfig.Store
	mu      sync.Mutex    // guards below
	resumed chan struct{} // nil: not stopped
}

func (s *stoppable) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resumed = make(chan struct{})
}

func (s *stoppable) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.resumed)
	s.resumed = nil
}

// wait returns once the node is not stopped.
func (s *stoppable) wait(ctx context.Context) error {
	s.mu.Lock()
	resumed := s.resumed
	s.mu.Unlock()
	if resumed == nil {
		return nil
	}
	select {
	case <-resumed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Read implements geoconfig.Store.
func (s *stoppable) Read(ctx context.Context, q geoconfig.Query) (geoconfig.Rows, error) {
	rows, err := s.Store.Read(ctx, q)
	if gone := s.wait(ctx); gone != nil {
		return geoconfig.Rows{}, gone
	}
	return rows, err
}

// Apply implements geoconfig.Store.
func (s *stoppable) Apply(ctx context.Context, b geoconfig.Batch) (ids.Revision, error) {
	if err := s.wait(ctx); err != nil {
		return 0, err
	}
	return s.Store.Apply(ctx, b)
}

// Follow implements geoconfig.Store.
func (s *stoppable) Follow(ctx context.Context, since ids.Revision, limit int) (geoconfig.Rows, error) {
	rows, err := s.Store.Follow(ctx, since, limit)
	if gone := s.wait(ctx); gone != nil {
		return geoconfig.Rows{}, gone
	}
	return rows, err
}

// removal is a cluster of four nodes whose root slice is on three of them, and
// which replaces a failed member within seconds.
type removal struct {
	t      *testing.T
	ctx    context.Context
	c      *servertest.Cluster
	stores []*stoppable
	cl     *servertest.Client
	names  []string
}

func startRemoval(t *testing.T, configure func(*server.Config)) *removal {
	r := &removal{t: t, stores: make([]*stoppable, 4)}
	var cancel context.CancelFunc
	r.ctx, cancel = context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	r.c = servertest.Start(t, servertest.Options{
		Sites: []string{"a", "b", "c", "d"}, Log: testing.Verbose(),
		Configure: func(i int, c *server.Config) {
			quick(i, c)
			c.FailedAfter = 2 * time.Second
			configure(c)
		},
		Depend: func(i int, d *server.Deps) {
			open := d.Store
			d.Store = func(h *wire.Host) (geoconfig.Store, error) {
				s, err := open(h)
				r.stores[i] = &stoppable{Store: s}
				return r.stores[i], err
			}
		},
	})
	r.cl = r.c.Connect("root")
	r.make("before", 100)
	return r
}

func (r *removal) make(prefix string, n int) {
	r.t.Helper()
	made, _ := makeFiles(r.ctx, r.t, r.cl, prefix, n)
	r.names = append(r.names, made...)
}

// member returns the first node but those given that is, or is not, a normal
// standby of the root slice, once there is one.
func (r *removal) member(normal bool, except ...*servertest.Node) (found *servertest.Node) {
	r.t.Helper()
	servertest.Await(r.ctx, r.t, "a node with that part", func() error {
		row, err := r.c.Row(r.ctx, ids.RootSlice)
		if err != nil {
			return err
		}
		for _, n := range r.c.Nodes {
			other := n.ID() != row.Active
			for _, x := range except {
				other = other && n != x
			}
			if m, in := row.Member(n.ID()); other && in == normal && (!in || m.State == geoconfig.Normal) {
				found = n
				return nil
			}
		}
		return fmt.Errorf("none in %+v", row)
	})
	return found
}

// stop makes a node as deaf and mute as a stopped process is.
func (r *removal) stop(n *servertest.Node) {
	r.stores[n.Index].stop()
	for _, other := range r.c.Nodes {
		cut := string(n.ID())
		if s := other.Server(); s != nil {
			s.Host().SetFilter(func(peer string, _ wire.Class, _ wire.Method) wire.Verdict {
				return wire.Verdict{Drop: other == n || peer == cut}
			})
		}
	}
}

func (r *removal) resume(n *servertest.Node) {
	for _, other := range r.c.Nodes {
		if s := other.Server(); s != nil {
			s.Host().SetFilter(nil)
		}
	}
	r.stores[n.Index].resume()
}

// awaitReplaced waits until a node is not in the row any more.
func (r *removal) awaitReplaced(n *servertest.Node) {
	r.t.Helper()
	servertest.Await(r.ctx, r.t, fmt.Sprintf("node %d to be replaced", n.Index), func() error {
		row, err := r.c.Row(r.ctx, ids.RootSlice)
		if _, in := row.Member(n.ID()); err == nil && (in || len(row.Normals()) < 3) {
			err = fmt.Errorf("the row is %+v", row)
		}
		return err
	})
}

// awaitDropped waits until a node has thrown its copy away.
func (r *removal) awaitDropped(n *servertest.Node) {
	r.t.Helper()
	servertest.Await(r.ctx, r.t, fmt.Sprintf("node %d to drop its copy", n.Index), func() error {
		if n.Server().CheckCopy(ids.RootObject, []byte(r.names[0])) == nil {
			return fmt.Errorf("it still has %s", r.names[0])
		}
		return nil
	})
}

// checkTakenAgain loses another member, waits until the first takes its place,
// and wants all files there, in its copy and when it leads.
func (r *removal) checkTakenAgain(back *servertest.Node) {
	r.t.Helper()
	lost := r.member(true, back)
	lost.Kill()
	awaitState(r.ctx, r.t, r.c, back, geoconfig.Normal)
	checkCopy(r.ctx, r.t, back, r.names)
	servertest.Await(r.ctx, r.t, "a hand-over to the one that is back", func() error {
		active := r.c.Active(ids.RootSlice)
		if active == back {
			return r.c.Nodes[back.Index].Server().CheckRoot()
		}
		_, err := r.c.Connect("root").Call(r.ctx, active.ID(), wire.Operation, method.HandOver,
			&pb.HandOverRequest{Slice: uint32(ids.RootSlice), To: string(back.ID())}, nil, &pb.HandOverResponse{})
		if err == nil {
			err = fmt.Errorf("it has only begun")
		}
		return err
	})
	checkFiles(r.ctx, r.t, r.c, r.cl, r.names)
	r.make("after", 5)
	checkFiles(r.ctx, r.t, r.c, r.cl, r.names)
}

func TestRemoval_ReplacedMemberComesBack(t *testing.T) {
	t.Parallel()
	r := startRemoval(t, func(*server.Config) {})
	back := r.member(true)
	r.stop(back)
	r.make("meanwhile", 5)
	r.awaitReplaced(back)
	r.resume(back)
	r.awaitDropped(back)
	r.checkTakenAgain(back)
}

func TestRemoval_ReplacedMemberRestartsAndComesBack(t *testing.T) {
	t.Parallel()
	r := startRemoval(t, func(c *server.Config) { c.CheckpointBytes = 256 << 10 })
	back := r.member(true)
	servertest.Await(r.ctx, t, "a checkpoint", func() error {
		if left := back.Server().JournalBytes(); left > 700<<10 {
			return fmt.Errorf("%d bytes of journal", left)
		}
		return nil
	})
	r.make("more", 20)
	r.stop(back)
	r.make("meanwhile", 5)
	r.awaitReplaced(back)
	r.resume(back)
	r.awaitDropped(back)
	for range 2 {
		back.Stop()
		back.Start()
	}
	r.checkTakenAgain(back)
}
