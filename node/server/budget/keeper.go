package budget

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// divideEvery is how often nodes tell each other what they want, and divide.
const divideEvery = time.Second

// Roster is what a Keeper asks of the node's copy of the configuration.
type Roster interface {
	Sites() []geoconfig.Site
	Nodes() []geoconfig.Node
}

// Host is what a Keeper asks of the node's connections.
type Host interface {
	Send(peer string, class wire.Class, m wire.Method, payload ...[]byte) error
	Status() []wire.Status
}

// Options are what a Keeper is made of. Every field is needed.
type Options struct {
	Self   ids.Node
	Site   ids.Site
	Roster Roster
	Host   Host
	// SignLife tells a peer that what it asked for in class Chunk comes, and returns
	// how many bytes that took.
	SignLife func(peer string) int
	// SiteOf says where a peer stands, node or client; empty: that is not known.
	SiteOf func(peer string) ids.Site
	Clock  func() time.Duration
	Wall   func() time.Time
	Logger *slog.Logger
}

// Keeper keeps a node within the budgets of its site.
type Keeper struct {
	o     Options
	signs signs
	moved atomic.Int64

	mu    sync.Mutex // guards below; taken before a line's
	pairs map[ids.Site]*pair
	sent  map[connection]uint64 // bytes of connections that are not for chunks, as of the last division
	at    time.Duration         // of the last division
}

// connection names one of wire's.
type connection struct {
	peer  string
	class wire.Class
	since int64
}

// New returns a Keeper under which no budget holds before Run.
func New(o Options) *Keeper {
	k := &Keeper{o: o, pairs: map[ids.Site]*pair{}, sent: map[connection]uint64{}, at: o.Clock()}
	k.signs = signs{tellPeer: o.SignLife, sent: k.signed}
	return k
}

// Run follows the configuration and divides the rates, until ctx ends. Then nothing
// waits any more.
func (k *Keeper) Run(ctx context.Context) {
	defer k.close()
	tick := time.NewTicker(divideEvery)
	defer tick.Stop()
	for {
		if report := k.apply(k.follow()); report != nil {
			k.tell(report)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (k *Keeper) close() {
	k.signs.stop()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.pairs {
		p.close()
	}
}

// follow takes in the sites, their budgets and their nodes, and reports whether
// there are budgets.
func (k *Keeper) follow() (bounded bool) {
	sites, nodes, now := k.o.Roster.Sites(), k.o.Roster.Nodes(), k.o.Clock()
	k.mu.Lock()
	defer k.mu.Unlock()
	there := map[ids.Site]bool{}
	for _, s := range sites {
		if s.Name == k.o.Site {
			continue
		}
		there[s.Name] = true
		if k.pairs[s.Name] == nil {
			k.pairs[s.Name] = newPair(k.o.Self, k.o.Clock)
		}
		p := k.pairs[s.Name]
		if err := p.follow(budgetOf(sites, k.o.Site, s.Name)); err != nil {
			k.o.Logger.Warn("the time zone of a budget is not known here, so its lower rate holds all day", slog.String("site", string(s.Name)), logattr.Err(err))
		}
		if p.budget == nil {
			continue
		}
		bounded = true
		var members []ids.Node
		for _, n := range nodes {
			if n.Site == s.Name || n.Site == k.o.Site {
				members = append(members, n.ID)
			}
		}
		p.out.group.update(members, now)
		p.in.group.update(members, now)
	}
	for name, p := range k.pairs {
		if !there[name] {
			p.release()
			delete(k.pairs, name)
		}
	}
	return bounded
}

// budgetOf returns what holds between two sites; nil: nothing.
func budgetOf(sites []geoconfig.Site, one, other ids.Site) *geoconfig.Budget {
	one, other = min(one, other), max(one, other)
	for _, s := range sites {
		for i := range s.Budgets {
			if s.Name == one && s.Budgets[i].Other == other {
				return &s.Budgets[i]
			}
		}
	}
	return nil
}

// apply gives each line the rate that it may keep to now. It returns what the other
// nodes are told; nil: nothing. Without any budget it only lets everything pass.
func (k *Keeper) apply(bounded bool) *pb.BudgetReport {
	var operations map[ids.Site]int64
	if bounded {
		operations = k.operations()
	}
	wall := k.o.Wall()
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.o.Clock()
	since := now - k.at
	k.at = now
	var report *pb.BudgetReport
	for _, site := range slices.Sorted(maps.Keys(k.pairs)) { // in order, for simulations
		p := k.pairs[site]
		p.look(since)
		p.out.line.charge(operations[site], since)
		if !p.apply(wall, now) {
			continue
		}
		if report == nil {
			report = &pb.BudgetReport{}
		}
		report.Lines = append(report.Lines, p.out.report(k.o.Site, site), p.in.report(site, k.o.Site))
	}
	return report
}

// operations returns what went to each site since it was last asked that never
// waits, in bytes.
func (k *Keeper) operations() map[ids.Site]int64 {
	out := map[ids.Site]int64{}
	now := map[connection]uint64{}
	for _, s := range k.o.Host.Status() {
		if s.Class == wire.Chunk {
			continue
		}
		c := connection{s.Peer, s.Class, s.Since.UnixNano()}
		now[c] = s.Sent
		k.mu.Lock()
		before := k.sent[c]
		k.mu.Unlock()
		if site := k.o.SiteOf(s.Peer); site != "" && site != k.o.Site {
			out[site] += int64(s.Sent - before)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sent = now
	return out
}

// tell sends a report to the nodes of its sites.
func (k *Keeper) tell(r *pb.BudgetReport) {
	at := map[ids.Site]bool{}
	for _, l := range r.Lines {
		at[ids.Site(l.From)], at[ids.Site(l.To)] = true, true
	}
	for _, n := range k.o.Roster.Nodes() {
		if n.ID == k.o.Self || !at[n.Site] {
			continue
		}
		mine := &pb.BudgetReport{}
		for _, l := range r.Lines {
			if n.Site == k.o.Site || string(n.Site) == l.From || string(n.Site) == l.To {
				mine.Lines = append(mine.Lines, l)
			}
		}
		if payload, err := proto.Marshal(mine); err == nil {
			_ = k.o.Host.Send(string(n.ID), wire.Beacon, method.Budget, payload) // the next report makes up for one that is lost
		}
	}
}

// Hear takes in another node's report.
func (k *Keeper) Hear(from ids.Node, r *pb.BudgetReport) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.o.Clock()
	for _, l := range r.Lines {
		switch string(k.o.Site) {
		case l.From:
			if p := k.pairs[ids.Site(l.To)]; p != nil {
				p.out.hear(from, l, now)
			}
		case l.To:
			if p := k.pairs[ids.Site(l.From)]; p != nil {
				p.in.hear(from, l, now)
			}
		}
	}
}

// between returns what this site and a peer's have; nil: the peer stands here, or
// its site is not known.
func (k *Keeper) between(peer string) *pair {
	site := k.o.SiteOf(peer)
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.pairs[site]
}

// Sent is what went to another site since the node's start.
type Sent struct {
	Counts [classes]Counts // by class
	// Rate is what the node keeps to now, in bytes per second; 0: no budget holds.
	Rate float64
}

// Passed returns what this node sent to each other site.
func (k *Keeper) Passed() map[ids.Site]Sent {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := make(map[ids.Site]Sent, len(k.pairs))
	for site, p := range k.pairs {
		out[site] = Sent{Counts: p.out.line.passed(), Rate: p.out.line.rate()}
	}
	return out
}

// Moved returns how many bytes of content this node sent, to its own site too, to
// members that were away, that replace lost ones or that take the place of others.
func (k *Keeper) Moved() int64 { return k.moved.Load() }
