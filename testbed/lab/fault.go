package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/topology"
	"cartwheel.dev/testbed/wan"
)

// Verb says what a Fault does.
type Verb string

// The verbs. Those of the network name sites, the others hosts.
const (
	Cut      Verb = "cut"      // nothing passes from A to B, nor back unless OneWay
	Heal     Verb = "heal"     // the network is as the topology has it; with A and B: what lies between them, with A: what is of it
	Off      Verb = "off"      // site A reaches no other site
	Blackout Verb = "blackout" // site A is off for Down of every Every, from now on
	Set      Verb = "set"      // the path from A to B is changed, and back unless OneWay
	Unplug   Verb = "unplug"   // host A has no carrier
	Plug     Verb = "plug"     // it has one again
	Kill     Verb = "kill"     // processes of host A are killed
	Stop     Verb = "stop"     // they end in order, as when a machine is shut down
	Pause    Verb = "pause"    // they halt without ending
	Start    Verb = "start"    // they go on, and those that do not run are started
)

// Verbs are all of them.
func Verbs() []Verb {
	return []Verb{Cut, Heal, Off, Blackout, Set, Unplug, Plug, Kill, Stop, Pause, Start}
}

// Fault is one thing done to a lab that is up.
type Fault struct {
	Do     Verb          `json:"do"`
	A      string        `json:"a,omitempty"`
	B      string        `json:"b,omitempty"`
	OneWay bool          `json:"one_way,omitempty"`
	Down   time.Duration `json:"down_ns,omitempty"`
	Every  time.Duration `json:"every_ns,omitempty"`
	Change Change        `json:"change,omitzero"`
	// Which processes of a host; none: its node, or its mount if it has none.
	Which []Process `json:"which,omitempty"`
}

// Change is what Set changes of a path; nil leaves as it is.
type Change struct {
	Delay     *time.Duration `json:"delay_ns,omitempty"` // one way
	Jitter    *time.Duration `json:"jitter_ns,omitempty"`
	Rate      *topology.Rate `json:"rate_bps,omitempty"` // 0: no limit
	Queue     *int64         `json:"queue_bytes,omitempty"`
	Loss      *float64       `json:"loss,omitempty"`
	Burst     *float64       `json:"burst,omitempty"`
	Duplicate *float64       `json:"duplicate,omitempty"`
	Reorder   *float64       `json:"reorder,omitempty"`
	Corrupt   *float64       `json:"corrupt,omitempty"`
}

// String says the fault in the command's words.
func (f Fault) String() string {
	words := []string{string(f.Do)}
	for _, w := range []string{f.A, f.B} {
		if w != "" {
			words = append(words, w)
		}
	}
	if f.OneWay {
		words = append(words, "one way")
	}
	if f.Do == Blackout {
		words = append(words, fmt.Sprintf("%v of every %v", f.Down, f.Every))
	}
	for _, p := range f.Which {
		words = append(words, string(p))
	}
	return strings.Join(append(words, f.Change.words()...), " ")
}

func (c Change) words() []string {
	var out []string
	say := func(name string, given bool, value any) {
		if given {
			out = append(out, fmt.Sprintf("%s %v", name, value))
		}
	}
	say("delay", c.Delay != nil, value(c.Delay))
	say("jitter", c.Jitter != nil, value(c.Jitter))
	say("rate", c.Rate != nil, value(c.Rate))
	say("queue", c.Queue != nil, value(c.Queue))
	say("loss", c.Loss != nil, value(c.Loss))
	say("burst", c.Burst != nil, value(c.Burst))
	say("duplicate", c.Duplicate != nil, value(c.Duplicate))
	say("reorder", c.Reorder != nil, value(c.Reorder))
	say("corrupt", c.Corrupt != nil, value(c.Corrupt))
	return out
}

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// put stores a value that was given.
func put[T, U any](into *T, from *U, convert func(U) T) {
	if from != nil {
		*into = convert(*from)
	}
}

func (c Change) apply(p *wan.Path) {
	same := func(d time.Duration) time.Duration { return d }
	share := func(v float64) float64 { return v }
	put(&p.Delay, c.Delay, same)
	put(&p.Jitter, c.Jitter, same)
	put(&p.Rate, c.Rate, rate)
	put(&p.Queue, c.Queue, func(n int64) int { return int(n) })
	put(&p.Loss, c.Loss, share)
	put(&p.Burst, c.Burst, share)
	put(&p.Duplicate, c.Duplicate, share)
	put(&p.Reorder, c.Reorder, share)
	put(&p.Corrupt, c.Corrupt, share)
}

// Check refuses a fault that a topology has no sites or hosts for, or that
// lacks something. The errors name it.
func (f Fault) Check(t *topology.Topology) error {
	const op fault.Op = "lab.Check"
	known := false
	var verbs []string
	for _, v := range Verbs() {
		known = known || v == f.Do
		verbs = append(verbs, string(v))
	}
	if !known {
		return fault.E(fault.Usage, op, string(f.Do), "is no fault"+topology.SuggestOf(string(f.Do), verbs))
	}
	switch f.Do {
	case Unplug, Plug, Kill, Stop, Pause, Start:
		if _, ok := t.Host(f.A); !ok {
			return unknownHost(t, f.A)
		}
		return nil
	}
	want := map[Verb]int{Cut: 2, Set: 2, Off: 1, Blackout: 1}[f.Do]
	for i, name := range []string{f.A, f.B} {
		if name == "" && i >= want {
			continue
		}
		if name == "" {
			return fault.Errorf(fault.Usage, op, string(f.Do), "names %d sites", want)
		}
		if _, ok := t.Site(name); !ok {
			return unknownSite(t, name)
		}
	}
	if f.A == f.B && f.A != "" {
		return fault.E(fault.Usage, op, f.A, "is one site; what lies between two is meant")
	}
	if f.Do == Blackout && (f.Down <= 0 || f.Every < f.Down) {
		return fault.Errorf(fault.Usage, op, f.A, "a blackout of %v of every %v: it must be above none and at most the whole", f.Down, f.Every)
	}
	if f.Do == Set && f.Change == (Change{}) {
		return fault.E(fault.Usage, op, f.A, "nothing is changed: name a delay, jitter, rate, queue, loss, burst, duplicate, reorder or corrupt")
	}
	return nil
}

// unknownSite says that a name is no site, and what it may be instead.
func unknownSite(t *topology.Topology, name string) error {
	if h, ok := t.Host(name); ok {
		return fault.Errorf(fault.NotFound, "lab.Do", name, "is a host; what lies between sites is changed, and its site is %s (unplug takes a host off)", h.Site)
	}
	var names []string
	for _, s := range t.Sites {
		names = append(names, s.Name)
	}
	return fault.E(fault.NotFound, "lab.Do", name, "is no site of this lab"+topology.SuggestOf(name, names))
}

// Do does something to the lab; when it returns it is in force. Everything that
// was done is in the lab's events.
func (l *Lab) Do(ctx context.Context, f Fault) error {
	if err := f.Check(l.opt.Topology); err != nil {
		return err
	}
	err := l.do(ctx, f)
	if err != nil {
		l.events.add("failed", f.A, fmt.Sprintf("%v: %v", f, err))
		return err
	}
	l.events.add("fault", f.A, f.String())
	return nil
}

func (l *Lab) do(ctx context.Context, f Fault) error {
	switch f.Do {
	case Cut:
		return l.network.Cut(ctx, f.A, f.B, f.OneWay, true)
	case Off:
		return l.network.Off(ctx, f.A, true)
	case Blackout:
		return l.network.Blackout(ctx, f.A, f.Every, f.Down)
	case Set:
		return l.network.ChangePath(ctx, f.A, f.B, f.OneWay, f.Change.apply)
	case Heal:
		return l.heal(ctx, f)
	}
	h, err := l.find(f.A)
	if err != nil {
		return err
	}
	switch f.Do {
	case Unplug, Plug:
		return l.network.HostLink(h.Name, f.Do == Plug)
	case Kill:
		return h.kill(l.which(h, f))
	case Stop:
		return h.stop(l.which(h, f))
	case Pause:
		return h.pause(l.which(h, f))
	}
	return l.resume(ctx, h, l.which(h, f))
}

// which says which processes of a host are meant.
func (l *Lab) which(h *host, f Fault) []Process {
	if len(f.Which) > 0 {
		var out []Process
		for _, p := range processes() {
			for _, w := range f.Which {
				if w == p && l.has(h, p) {
					out = append(out, p)
				}
			}
		}
		return out
	}
	if f.Do == Start {
		var out []Process
		for _, p := range processes() {
			if l.has(h, p) {
				out = append(out, p)
			}
		}
		return out
	}
	if h.Node {
		return []Process{NodeProcess}
	}
	return []Process{MountProcess}
}

// heal makes the network what the topology says: the whole, what is of one
// site, or what lies between two.
func (l *Lab) heal(ctx context.Context, f Fault) error {
	was := Config(l.opt.Topology, l.opt.Name)
	err := l.network.Change(ctx, func(c *wan.Config) error {
		for pair, p := range was.Pairs {
			of := pair.From == f.A || pair.To == f.A
			between := of && (pair.From == f.B || pair.To == f.B)
			if f.A == "" || f.B == "" && of || between {
				c.Pairs[pair] = p
			}
		}
		if f.B != "" {
			return nil
		}
		for _, s := range was.Sites {
			now := c.Site(s.Name)
			if now == nil || f.A != "" && s.Name != f.A {
				continue
			}
			now.Up, now.Down, now.UpQueue, now.DownQueue, now.Off, now.Blackouts = s.Up, s.Down, s.UpQueue, s.DownQueue, false, nil
		}
		return nil
	})
	if f.B != "" {
		return err
	}
	for _, h := range l.hosts {
		if f.A == "" || h.Site == f.A {
			err = errors.Join(err, l.network.HostLink(h.Name, true))
		}
	}
	return err
}
