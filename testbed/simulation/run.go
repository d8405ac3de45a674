package simulation

import (
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"cartwheel.dev/geo-config/inmem"
	"cartwheel.dev/node/wire"
)

// run is what all parts of one run have in common: what was drawn for it, the
// network and geo-config below the cluster, and what was found.
type run struct {
	*findings
	o      Options
	limits Limits
	chance *rand.Rand // of the run's own goroutine
	net    *network
	config *configuration
	work   sync.WaitGroup // of machines and faults
	over   bool           // nothing starts any more
}

// newRun draws what the options leave open.
func newRun(o Options) *run {
	r := &run{o: o, chance: rand.New(rand.NewPCG(o.Seed, 1)), findings: newFindings(o.Trace), net: newNetwork(o.Seed),
		limits: drawLimits(rand.New(rand.NewPCG(o.Seed, 2))), config: &configuration{store: inmem.New()}}
	r.config.note = r.once
	if r.o.Faults == nil {
		r.o.Faults = Kinds()
	}
	if o.Level <= slog.LevelDebug {
		r.net.note = func(c *conn, bytes int) {
			r.trace.say(c.local.name, "sends %s %d bytes on %x", c.remote.name, bytes, c.number)
		}
	}
	if r.o.Nodes == 0 {
		r.o.Nodes = 3 + r.chance.IntN(3)
	}
	if r.o.Length == 0 {
		r.o.Length = time.Duration(10+r.chance.IntN(20)) * time.Second
	}
	r.trace.say("world", "seed %d: %d nodes, %v; %v", o.Seed, r.o.Nodes, r.o.Length, r.limits)
	return r
}

// drawnKey makes a key from chance.
func (r *run) drawnKey() (wire.Key, error) { return wire.NewKey(source{r.chance}) }
