// Package outage has a node take part in a drill: for a bounded time it behaves as if
// its process were dead, its site cut off, or geo-config away (docs/design.md, section
// 4.14). It fails nothing for real. It refuses connections and cuts those that there are,
// so that replication, leases and clients meet what they meet in the real case. Nothing
// of it is on the disk: a restart ends it. A Stage is safe for concurrent use.
package outage

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/drill"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/status"
)

// Options are what a Stage is made of. Every field is needed, and none changes.
type Options struct {
	Self ids.Node
	Site ids.Site
	// SiteOf returns where a connected peer stands, node or client; empty: unknown.
	SiteOf func(peer string) ids.Site
	// Recheck cuts the connections of the peers that Admit refuses now.
	Recheck func()
	Clock   boottime.Func
	Logger  *slog.Logger
}

// Stage is a node's part in drills, one at a time.
type Stage struct {
	o   Options
	now atomic.Pointer[act] // nil: there is no drill

	mu sync.Mutex // guards below
	// present ends when a drill takes geo-config away from this node; then a new one
	// is made.
	present context.Context
	away    context.CancelFunc
}

// act is a drill that is under way.
type act struct {
	plan  drill.Plan
	until time.Duration // by the node's clock
	// commander is the number of the client that ordered it, which always gets through.
	commander uint64
}

// New returns a Stage without a drill.
func New(o Options) *Stage {
	s := &Stage{o: o}
	s.present, s.away = context.WithCancel(context.Background())
	return s
}

// Busy answers Busy while a drill is under way.
func (s *Stage) Busy() error {
	if a := s.now.Load(); a != nil {
		return busy(a)
	}
	return nil
}

// Report tells of the drill that is under way; nil: there is none.
func (s *Stage) Report() *status.Drill {
	a := s.now.Load()
	if a == nil {
		return nil
	}
	return &status.Drill{ID: a.plan.ID, Kind: string(a.plan.Kind), LeftNS: max(a.until-s.o.Clock(), 0)}
}

func busy(a *act) error {
	return fault.E(fault.Busy, "outage.Busy", a.plan.ID, "this drill is under way: wait until it is over")
}

// Run takes part in a drill until its time is over, or ctx ends. The commander is the
// number of the client whose call this is: it alone gets through to a node that is
// played dead, and ctx ends with its connection. Run returns how long the drill lasted
// here and whether it lasted as long as it was to. Errors: Busy.
func (s *Stage) Run(ctx context.Context, p drill.Plan, commander uint64) (lasted time.Duration, whole bool, err error) {
	began := s.o.Clock()
	a := &act{p, began + p.For, commander}
	for !s.now.CompareAndSwap(nil, a) {
		if other := s.now.Load(); other != nil {
			return 0, false, busy(other)
		}
	}
	log := s.o.Logger.With(slog.String("drill", p.ID), slog.String("kind", string(p.Kind)))
	timer := time.NewTimer(p.For)
	defer timer.Stop()
	if s.losesGeoConfig(a) {
		s.leaveGeoConfig()
	}
	log.Warn("a drill began", slog.Duration("for", p.For))
	s.o.Recheck()
	select {
	case <-timer.C:
		whole = true
	case <-ctx.Done():
	}
	s.now.Store(nil)
	s.mu.Lock()
	if s.present.Err() != nil {
		s.present, s.away = context.WithCancel(context.Background())
	}
	s.mu.Unlock()
	lasted = s.o.Clock() - began
	log.Warn("a drill ended", slog.Duration("lasted", lasted), slog.Bool("whole", whole))
	return lasted, whole, nil
}

// leaveGeoConfig cuts the calls to geo-config that are under way.
func (s *Stage) leaveGeoConfig() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away()
}

// losesGeoConfig reports whether a drill takes geo-config away from this node. One
// that cuts a site off leaves geo-config with the other sites.
func (s *Stage) losesGeoConfig(a *act) bool {
	switch a.plan.Kind {
	case drill.KillActive:
		return a.plan.Node == s.o.Self
	case drill.Cut:
		return a.plan.Site == s.o.Site
	}
	return true
}

// Admit refuses a peer that a drill keeps from this node; nil: it may connect. The
// error is Unreachable. It does not block.
func (s *Stage) Admit(peer string) error {
	a := s.now.Load()
	if a == nil || !s.keeps(a, peer) || method.ClientNumber(peer) == a.commander {
		return nil
	}
	return unreachable(a, peer)
}

func unreachable(a *act, subject string) error {
	return fault.E(fault.Unreachable, "outage.Admit", subject, "a drill is under way, which this connection is not to survive: "+a.plan.ID)
}

// keeps reports whether a drill keeps a peer from this node.
func (s *Stage) keeps(a *act, peer string) bool {
	switch a.plan.Kind {
	case drill.KillActive:
		return a.plan.Node == s.o.Self
	case drill.Cut:
		return s.isAcross(a, s.o.SiteOf(peer))
	}
	return false
}

// isAcross reports whether a cut lies between this node and a site. Who names no
// site is on both sides.
func (s *Stage) isAcross(a *act, site ids.Site) bool {
	return site != "" && (site == a.plan.Site) != (s.o.Site == a.plan.Site)
}

// Greet refuses a client that names a site from which a drill cuts this node off: who a
// client is, a node knows by its hello. The error is Unreachable.
func (s *Stage) Greet(site ids.Site) error {
	if a := s.now.Load(); a != nil && a.plan.Kind == drill.Cut && s.isAcross(a, site) {
		return unreachable(a, string(site))
	}
	return nil
}
