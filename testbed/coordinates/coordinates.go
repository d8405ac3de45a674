// Package coordinates simulates many nodes that find their coordinates with
// node/vivaldi, in virtual time: how accurate they become and when, against the
// plain algorithm, with liars among them, after a partition, with drift, and at
// a hundred thousand nodes. No packet is sent and nobody waits; a run is
// determined by its Options, but for what it says of its own cost.
//
// Run is the experiment; Space is where true round-trip times come from. A run
// uses one goroutine; its results are plain values.
package coordinates

import (
	"context"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/vivaldi"
	"cartwheel.dev/node/wire/framing"
	"golang.org/x/sys/unix"
)

// Options say what to simulate. The zero value simulates synthetic cities only.
type Options struct {
	Seed uint64
	// PlanetLab is the path of a matrix to compare all configurations on, as
	// OpenMatrix reads it; empty: synthetic cities instead.
	PlanetLab string
	// Clouds are paths of further matrices, for example of cloud regions.
	Clouds []string
	// Rounds is how many probes each node makes; 0: 1000.
	Rounds int
	// Period is the time between two probes of a node; 0: 5 s.
	Period time.Duration
	// Large is how many nodes the large synthetic case has; 0: no such case.
	Large int
	// Only names the cases to run; empty: all.
	Only []string
	// Nodes is how many nodes synthetic cities have in place of PlanetLab; 0: 400.
	Nodes int
}

// Result is what a run found.
type Result struct {
	Seed  uint64 `json:"seed"`
	Cases []Case `json:"cases"`
}

// Case is one simulated network.
type Case struct {
	Name  string `json:"name"`
	Space string `json:"space"`
	Nodes int    `json:"nodes"`
	// Final is the accuracy at the end.
	Final Accuracy `json:"final"`
	// Series is the accuracy over time.
	Series []Point `json:"series"`
	// Lie is what Liars, a share of the nodes, tell; empty: nobody lies.
	Lie   Lie     `json:"lie,omitempty"`
	Liars float64 `json:"liars,omitempty"`
	// Apart is for how many seconds two halves did not hear each other.
	Apart float64 `json:"apart_s,omitempty"`
	Cost  Cost    `json:"cost"`
}

// Point is one moment of a series.
type Point struct {
	Seconds     float64 `json:"time_s"` // of virtual time
	Round       int     `json:"round"`  // probes that each node made
	MedianError float64 `json:"median_relative_error"`
	P90Error    float64 `json:"p90_relative_error"`
	Closest3    float64 `json:"closest_of_3"` // by coordinates
	Centre      float64 `json:"centre_ms"`    // how far the middle of all nodes is from the origin
}

// Cost is what the coordinates cost. Times and sizes are of this machine.
type Cost struct {
	Samples    uint64  `json:"samples"`
	NsSample   float64 `json:"cpu_ns_per_sample"`     // the simulator's work included
	NodeBytes  float64 `json:"memory_bytes_per_node"` // heap that stays
	FrameBytes int     `json:"coordinate_bytes_per_frame"`
	TrafficBps float64 `json:"traffic_bytes_per_s_node"` // sent by a node, see probeBytes
	Seconds    float64 `json:"cpu_s"`
}

// frameBytes is how long a coordinate is in a frame.
func frameBytes(dimensions int) int {
	var f framing.Frame
	f.Carry(&framing.Coordinate{Dimensions: dimensions})
	return f.CoordinateSize()
}

// probeBytes is what a node sends for one probe that it makes and one that it
// answers: two frames, each with a coordinate, and in one of them a third node's
// ID of 39 bytes and its coordinate in the binary form.
func probeBytes(dimensions int) float64 {
	return float64(2*(framing.FixedSize+frameBytes(dimensions)) + 39 + 1 + 4*(dimensions+2))
}

// Run simulates every case, one after another. It returns when ctx ends, with
// ctx's cause. A matrix that cannot be read is the error of OpenMatrix.
func Run(ctx context.Context, o Options) (Result, error) {
	r := Result{Seed: o.Seed}
	cases, err := o.cases()
	if err != nil {
		return r, err
	}
	for _, c := range cases {
		if len(o.Only) > 0 && !slices.Contains(o.Only, c.name) {
			continue
		}
		got, err := c.run(ctx)
		if err != nil {
			return r, fault.Wrap(fault.Invalid, "coordinates.Run", c.name, err)
		}
		r.Cases = append(r.Cases, got)
	}
	return r, nil
}

// kase is a case to run.
type kase struct {
	name, space string
	setting
}

func (o Options) cases() ([]kase, error) {
	if o.Rounds == 0 {
		o.Rounds = 1000
	}
	if o.Period == 0 {
		o.Period = 5 * time.Second
	}
	if o.Nodes == 0 {
		o.Nodes = 400
	}
	var main Space = NewCities(o.Nodes, o.Seed)
	name := "cities"
	if o.PlanetLab != "" {
		m, err := OpenMatrix(o.PlanetLab)
		if err != nil {
			return nil, err
		}
		main, name = m, base(o.PlanetLab)
	}
	s := setting{space: main, config: vivaldi.Default(), rounds: o.Rounds, period: o.Period, join: 64, seed: o.Seed, measure: max(1, o.Rounds/20)}
	out := configurations(name, s)
	for _, l := range Lies() {
		c := s
		c.liars, c.lie = 0.1, l
		out = append(out, kase{"10 % lie: " + string(l), name, c})
		if l == Mixed {
			c.plain, c.config.Dimensions = true, 2
			out = append(out, kase{"10 % lie, plain: " + string(l), name, c})
		}
	}
	c := s
	c.apart = o.Rounds / 2
	out = append(out, kase{"partition", name, c})
	out = append(out, drifts(name, s)...)
	for _, path := range o.Clouds {
		m, err := OpenMatrix(path)
		if err != nil {
			return nil, err
		}
		c := s
		c.space = m
		out = append(out, cloud(base(path), c)...)
	}
	if o.Large > 0 {
		out = append(out, large(o))
	}
	return out, nil
}

// cloud lists the cases of one cloud: one host a region, or a LAN of many in each.
func cloud(name string, s setting) []kase {
	flat, plain, lan := s, s, s
	flat.config.Dimensions = 2
	plain.plain, plain.config.Dimensions = true, 2
	lan.space, lan.least = Sites{Wide: s.space, Hosts: 20}, 1
	return []kase{
		{"cloud, plain 2-D + height", name, plain}, {"cloud, 2-D + height", name, flat}, {"cloud, 8-D + height", name, s},
		{"cloud, 20 hosts a region", name, lan},
	}
}

// configurations are the rows of the table that compares algorithms. Default has
// eight dimensions and a height.
func configurations(name string, s setting) []kase {
	var out []kase
	add := func(title string, change func(*setting)) {
		c := s
		change(&c)
		out = append(out, kase{title, name, c})
	}
	add("plain 2-D", func(c *setting) { c.plain, c.config.Dimensions, c.config.NoHeight = true, 2, true })
	add("plain 2-D + height", func(c *setting) { c.plain, c.config.Dimensions = true, 2 })
	add("plain 8-D + height", func(c *setting) { c.plain = true })
	add("2-D", func(c *setting) { c.config.Dimensions, c.config.NoHeight = 2, true })
	add("2-D + height", func(c *setting) { c.config.Dimensions = 2 })
	add("4-D + height", func(c *setting) { c.config.Dimensions = 4 })
	add("8-D + height", func(*setting) {})
	add("8-D + height, 20 % of samples late", func(c *setting) { c.noise = 0.2 })
	add("plain 2-D + height, 20 % of samples late", func(c *setting) { c.plain, c.config.Dimensions, c.noise = true, 2, 0.2 })
	add("8-D + height, in steps of 10 ms", func(c *setting) { c.step = 10 })
	return out
}

// drifts show what gravity is for: liars drag everybody.
func drifts(name string, s setting) []kase {
	c := s
	c.config.GravityRadius = 0
	free := c
	free.liars, free.lie = 0.1, Drag
	return []kase{{"no gravity", name, c}, {"no gravity, 10 % lie: drag", name, free}}
}

// large is the case of very many nodes; each remembers few.
func large(o Options) kase {
	c := vivaldi.Default()
	c.Neighbours, c.Peers = 16, 32
	rounds := min(o.Rounds, 100)
	return kase{"large", "cities", setting{space: NewCities(o.Large, o.Seed), config: c, rounds: rounds, period: o.Period,
		join: 24, seed: o.Seed, measure: max(1, rounds/5)}}
}

func base(path string) string {
	return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
}

// run plays one case.
func (c kase) run(ctx context.Context) (Case, error) {
	out := Case{Name: c.name, Space: c.space, Nodes: c.setting.space.Size(), Lie: c.lie, Liars: c.liars,
		Apart: (c.period * time.Duration(c.apart)).Seconds()}
	heap := settledHeap()
	w, err := newWorld(c.setting)
	if err != nil {
		return out, err
	}
	var measuring time.Duration
	start := processor()
	err = w.run(ctx, func() {
		before := processor()
		a := w.accuracy(w.round == w.rounds)
		out.Series = append(out.Series, Point{
			Seconds: (c.period * time.Duration(w.round)).Seconds(), Round: w.round, MedianError: a.MedianError,
			P90Error: a.P90Error, Closest3: a.Coordinates.Of3, Centre: w.centre(),
		})
		out.Final = a
		measuring += processor() - before
	})
	if err != nil {
		return out, err
	}
	spent := processor() - start - measuring
	out.Cost = Cost{
		Samples: w.samples, NsSample: float64(spent.Nanoseconds()) / float64(max(w.samples, 1)), Seconds: spent.Seconds(),
		NodeBytes: (settledHeap() - heap) / float64(len(w.nodes)), FrameBytes: frameBytes(c.config.Dimensions),
		TrafficBps: probeBytes(c.config.Dimensions) / c.period.Seconds(),
	}
	runtime.KeepAlive(w)
	return out, nil
}

func settledHeap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// processor returns the processor time that this process has used, which other
// programs on the machine do not lengthen.
func processor() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0 // a cost of nothing shows that there is no such clock
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
