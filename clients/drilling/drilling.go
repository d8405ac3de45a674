// Package drilling conducts drills on a running cluster: it checks that the cluster is
// whole, has the nodes fail a part of it (package outage), and measures with a probe of
// its own how long writes and reads pause, and that nothing acknowledged is lost. It ends
// a drill early where that does harm, and adds it to the history. It knows nothing of
// command lines. A Conductor is for one goroutine.
package drilling

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"cartwheel.dev/clients/contact"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/drill"
)

const (
	// mostStreams is from how many sites the probe writes.
	mostStreams = 3
	// warmUp is for how long the probe measures what is usual.
	warmUp = time.Second
	// setUpLimit bounds what comes before a drill, and tidyLimit what comes after the
	// slices are whole: reading back and taking the probe's files away.
	setUpLimit, tidyLimit = 30 * time.Second, time.Minute
	// wholeLimit is for how long the commander waits until all slices are whole, and
	// wholeLook how often it looks.
	wholeLimit, wholeLook = 2 * time.Minute, 250 * time.Millisecond
)

// Options are what a Conductor is made of. Every field but Say is needed.
type Options struct {
	// Cluster is the commander's own connection, which gets through to nodes that are
	// played dead.
	Cluster *contact.Cluster
	// Open makes the clients of the probe, each with an identity of its own.
	Open Opener
	// Kind, Site and For are those of the plan. The node follows from Path.
	Kind drill.Kind
	Site ids.Site
	For  time.Duration
	// Path is a directory of the tree. The probe writes below it, in its slice, and of
	// KillActive its slice's active is the one.
	Path string
	// StopAfter is the longest pause that the probe bears.
	StopAfter time.Duration
	// AcceptPause allows slices to stop that nobody can take over.
	AcceptPause bool
	// Wall names the drill. Say tells people what goes on.
	Wall func() time.Time
	Say  func(string)
}

// Conductor conducts one drill.
type Conductor struct {
	o     Options
	plan  drill.Plan
	slice ids.Slice // of Path
}

// New returns a Conductor.
func New(o Options) *Conductor {
	if o.Say == nil {
		o.Say = func(string) {}
	}
	id := fmt.Sprintf("%s-%04x", o.Wall().UTC().Format("20060102T150405Z"), rand.Uint32N(1<<16))
	return &Conductor{o: o, plan: drill.Plan{ID: id, Kind: o.Kind, Site: o.Site, For: o.For}}
}

// Plan is what the nodes are to do, complete after Check.
func (c *Conductor) Plan() drill.Plan { return c.plan }

// Check says for people why the drill must not begin now; none: it may. Errors: Invalid
// and NotSupported (of the plan), NotFound (the path or the site), Permission, and those
// of asking.
func (c *Conductor) Check(ctx context.Context) ([]string, error) {
	const op fault.Op = "drilling.Check"
	ctx, cancel := context.WithTimeout(ctx, setUpLimit)
	defer cancel()
	if err := c.locate(ctx); err != nil {
		return nil, err
	}
	if err := c.plan.Check(); err != nil {
		return nil, err
	}
	sites := c.sites()
	if c.plan.Kind == drill.Cut && (!slices.Contains(sites, c.plan.Site) || len(sites) < 2) {
		return nil, fault.E(fault.NotFound, op, string(c.plan.Site), "is no site with nodes, or the only one: `cartwheel site ls` lists them")
	}
	seen := look(ctx, c.o.Cluster)
	seen.check(ctx, c.o.Cluster, c.plan)
	for i := range seen.Nodes { // such a refusal is of the order, and not of the cluster
		if err := seen.Nodes[i].Refuses; fault.Is(err, fault.Permission) || fault.Is(err, fault.Invalid) {
			return nil, err
		}
	}
	return seen.Obstacles(c.plan, c.o.AcceptPause), nil
}

// locate finds out which slice the path is in, and its active.
func (c *Conductor) locate(ctx context.Context) error {
	f, err := c.o.Open(ctx, "")
	if err != nil {
		return err
	}
	at, err := Where(ctx, f, c.o.Path)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	c.slice = at.Slice
	if c.plan.Kind == drill.KillActive {
		c.plan.Node = at.Active.Node
	}
	return nil
}

// sites are those that have nodes, by name; the one that is cut off comes first.
func (c *Conductor) sites() []ids.Site {
	var out []ids.Site
	for _, n := range c.o.Cluster.Nodes() {
		if n.Site != "" && !slices.Contains(out, n.Site) {
			out = append(out, n.Site)
		}
	}
	slices.SortFunc(out, func(a, b ids.Site) int {
		switch {
		case a == c.plan.Site:
			return -1
		case b == c.plan.Site || a > b:
			return 1
		}
		return -1
	})
	return out
}

// Run conducts the drill after Check, and returns its record, which is in the history
// then. It ends the drill when ctx ends; what is left to do afterwards has until hurry
// ends. The probe's files stay where something was lost. With a record and an error, the drill took place and something afterwards failed.
// Otherwise there was no drill.
func (c *Conductor) Run(ctx, hurry context.Context) (*drill.Record, error) {
	probe, err := c.openProbe(ctx)
	if err != nil {
		return nil, errors.Join(err, c.tidy(hurry, probe, true))
	}
	probe.Start(hurry)
	c.o.Say("measuring what is usual")
	if err := c.settle(ctx, probe); err != nil {
		return nil, errors.Join(err, c.tidy(hurry, probe, true))
	}
	r := &drill.Record{ID: c.plan.ID, Kind: c.plan.Kind, Path: c.o.Path, Slice: c.slice, Node: c.plan.Node, Site: c.plan.Site,
		AtNS: c.o.Wall().UnixNano(), ForMS: c.plan.For.Milliseconds(), WholeMS: -1}
	began := c.o.Cluster.Now()
	probe.Mark()
	c.o.Say("the drill is under way")
	if r.Stopped, r.Why, err = c.conduct(ctx, probe); err != nil {
		return nil, errors.Join(err, c.tidy(hurry, probe, true))
	}
	ended := c.o.Cluster.Now()
	r.LastedMS = (ended - began).Milliseconds()
	c.o.Say("the drill is over; waiting until all is whole")
	c.recover(hurry, probe, r)
	if r.Stopped != drill.Interrupted && c.awaitWhole(hurry) {
		r.WholeMS = (c.o.Cluster.Now() - ended).Milliseconds()
	}
	r.Streams = probe.Stop()
	c.o.Say("reading back what was acknowledged")
	verified := c.verify(hurry, probe, r)
	return r, errors.Join(verified, c.tidy(hurry, probe, verified == nil && r.Lost == 0), c.keep(hurry, r))
}

// openProbe makes the probe, and checks that it is where the drill takes place.
func (c *Conductor) openProbe(ctx context.Context) (*Probe, error) {
	ctx, cancel := context.WithTimeout(ctx, setUpLimit)
	defer cancel()
	sites := c.sites()
	p, err := OpenProbe(ctx, c.o.Open, c.o.Cluster.Now, c.plan.ID, c.o.Path, sites[:min(len(sites), mostStreams)])
	if err != nil {
		return p, err
	}
	at, err := Where(ctx, p.clients[0], p.streams[0].path)
	if err == nil && (at.Slice != c.slice || c.plan.Kind == drill.KillActive && at.Active.Node != c.plan.Node) {
		err = fault.Errorf(fault.Again, "drilling.openProbe", c.o.Path, "slice %d has another active by now, or takes no new files: try again", c.slice)
	}
	return p, err
}

// settle waits until every stream goes on, and measures for a while.
func (c *Conductor) settle(ctx context.Context, p *Probe) error {
	const op fault.Op = "drilling.settle"
	limited, cancel := context.WithTimeout(ctx, setUpLimit)
	defer cancel()
	went := p.Recover(limited) && contact.Pause(limited, warmUp)
	switch err := p.Wrong(); {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return fault.E(fault.Canceled, op, "", "interrupted before the drill began")
	case !went:
		return fault.E(fault.TimedOut, op, c.o.Path, "the probe's reads and writes are not answered, without any drill")
	}
	return nil
}

// recover waits until every stream was answered after the drill's end. One that is not
// is another reason than time for the end.
func (c *Conductor) recover(ctx context.Context, p *Probe, r *drill.Record) {
	ctx, cancel := context.WithTimeout(ctx, c.o.StopAfter+setUpLimit)
	defer cancel()
	if p.Recover(ctx) || r.Stopped != drill.Time {
		return
	}
	if err := p.Wrong(); err != nil {
		r.Stopped, r.Why = drill.Wrong, err.Error()
		return
	}
	r.Stopped, r.Why = drill.Pause, "a stream of the probe did not go on after the drill"
}

// awaitWhole waits until all nodes answer and no slice lacks anything.
func (c *Conductor) awaitWhole(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, wholeLimit)
	defer cancel()
	for {
		seen := look(ctx, c.o.Cluster)
		whole := len(seen.Slices) > 0
		for i := range seen.Nodes {
			whole = whole && seen.Nodes[i].Err == nil
		}
		for i := range seen.Slices {
			whole = whole && lacks(&seen.Slices[i]) == ""
		}
		if whole {
			return true
		}
		if !contact.Pause(ctx, wholeLook) {
			return false
		}
	}
}

// verify reads everything back and sums the streams up.
func (c *Conductor) verify(ctx context.Context, p *Probe, r *drill.Record) error {
	ctx, cancel := context.WithTimeout(ctx, tidyLimit)
	defer cancel()
	err := p.Verify(ctx, r.Streams)
	for _, s := range r.Streams {
		r.Acknowledged, r.Lost = r.Acknowledged+s.Acknowledged, r.Lost+s.Lost
		r.WritePauseMS, r.ReadPauseMS = max(r.WritePauseMS, s.WritePauseMS), max(r.ReadPauseMS, s.ReadPauseMS)
	}
	if r.Lost > 0 {
		r.Stopped, r.Why = drill.Wrong, fmt.Sprintf("%d of %d acknowledged writes are missing or wrong", r.Lost, r.Acknowledged)
	}
	if err != nil && r.Stopped == drill.Time {
		r.Stopped, r.Why = drill.Wrong, err.Error()
	}
	return err
}

// tidy ends the probe, and takes its files away unless people are to look at them.
func (c *Conductor) tidy(ctx context.Context, p *Probe, remove bool) error {
	ctx, cancel := context.WithTimeout(ctx, tidyLimit)
	defer cancel()
	p.Stop()
	if !remove {
		return p.Close()
	}
	return errors.Join(p.Remove(ctx), p.Close())
}

// keep adds the drill to the history, at the first node that does so.
func (c *Conductor) keep(ctx context.Context, r *drill.Record) error {
	const op fault.Op = "drilling.keep"
	ctx, cancel := context.WithTimeout(ctx, setUpLimit)
	defer cancel()
	body, err := json.Marshal(r)
	if err != nil {
		return fault.Wrap(fault.Invalid, op, r.ID, err)
	}
	_, err = History(ctx, c.o.Cluster, body)
	return fault.Wrap(fault.Unreachable, op, r.ID, err)
}
