package server

import (
	"context"
	"crypto/rand"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/ticket"
)

// registerAgain is the pause before a new node asks again to be registered.
const registerAgain = 250 * time.Millisecond

// register brings the node's row up to date. With the store away, a node that
// it knows goes on, and the row follows later; one that is new waits for the
// store until ctx ends.
func (s *Server) register(ctx context.Context) error {
	s.meet()
	if _, known := s.directory.Node(s.id); known && !s.directory.Away().IsZero() {
		return nil // the store is away: the row follows with the maintenance
	}
	for {
		err := s.putNode(ctx)
		if err == nil && s.directory.Cluster().Secret == "" {
			return s.directory.Refresh(ctx) // this node has just made it
		}
		if !fault.Is(err, fault.Unreachable) && !fault.Is(err, fault.TimedOut) {
			return err
		}
		if _, known := s.directory.Node(s.id); known {
			return nil
		}
		t := time.NewTimer(registerAgain)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return err
		}
	}
}

// putNode writes the site's and the node's rows where they differ.
func (s *Server) putNode(ctx context.Context) error {
	const op fault.Op = "server.register"
	for try := 0; ; try++ {
		rows, err := s.geo.Read(ctx, geoconfig.Query{Sites: true, Nodes: true})
		if err != nil {
			return fault.Wrap(fault.Unreachable, op, "geo-config", err)
		}
		b := geoconfig.Batch{Key: s.batchKey("register")}
		site := ids.Site(s.config.Site)
		known := false
		for _, x := range rows.Sites {
			known = known || x.Name == site
		}
		if !known {
			b.Sites = append(b.Sites, geoconfig.Site{Name: site})
		}
		b.Nodes = append(b.Nodes, s.nodeRow(rows.Nodes))
		if c := rows.Cluster; c != nil && c.Secret == "" {
			made := *c
			made.Secret = newSecret()
			b.Cluster = &made
		}
		_, err = s.geo.Apply(ctx, b)
		if err == nil || !fault.Is(err, fault.Conflict) || try > 20 {
			return fault.Wrap(fault.Unreachable, op, "geo-config", err)
		}
	}
}

// refreshRow tells the configuration store how full the node is.
func (s *Server) refreshRow(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := s.putNode(call); err != nil && ctx.Err() == nil {
		s.log.Debug("the node's row could not be refreshed", "error", err)
	}
}

// newSecret returns a secret for a cluster that has none.
func newSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return ticket.NewSecret(b)
}

// nodeRow is this node's row, on top of the one that the store has.
func (s *Server) nodeRow(rows []geoconfig.Node) geoconfig.Node {
	n := geoconfig.Node{ID: s.id}
	for _, x := range rows {
		if x.ID == s.id {
			n = x
		}
	}
	usage := s.store.Usage()
	n.Site = ids.Site(s.config.Site)
	n.Addresses = s.advertised()
	n.Incarnation, n.Version = s.store.Incarnation(), s.deps.Version
	n.CapacityBytes = s.space.Capacity(usage)
	n.UsedBytes = n.CapacityBytes - max(s.space.Free(usage), 0)
	s.survey.FillRow(&n)
	return n
}
