package simulation

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/inmem"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/testbed/historytest"
)

// Options are one run.
type Options struct {
	Seed  uint64
	Nodes int // of the cluster at first; 0: drawn
	// Length is how long faults come and go, in virtual time; 0: drawn.
	Length time.Duration
	Trace  io.Writer // nil: nobody reads it
	Level  slog.Level
	// Dir is a folder for what is not state.
	Dir string
	// Faults are the kinds that there are; nil: Kinds.
	Faults []Kind
}

// Result is what came of a run.
type Result struct {
	Seed       uint64
	Limits     Limits
	Operations int
	Problems   []string
	Sum        uint64 // of the trace
	Lines      int
	Virtual    time.Duration
	Faults     map[Kind]int
}

// Bounds, in virtual time.
const (
	callBound  = 60 * time.Second
	startBound = 60 * time.Second
	wholeBound = 120 * time.Second
)

// clusterID names every simulated cluster.
const clusterID ids.Cluster = "simulated"

// Run runs one seed.
func Run(t *testing.T, o Options) (r Result) {
	var w *world
	synctest.Test(t, func(*testing.T) {
		w = newWorld(o)
		if err := w.begin(); err != nil {
			w.problem("BEGIN: %v", err)
		} else {
			w.live()
			w.settle()
		}
		w.end()
		r = w.result()
	})
	// The search for an order has a limit, which only real time reaches.
	n, wrong, open := w.load.Judge()
	r.Operations, r.Problems = n, append(r.Problems, wrong...)
	for _, o := range open {
		r.Problems = append(r.Problems, "UNDECIDED: "+o)
	}
	return r
}

// world is a run under way.
type world struct {
	o       Options
	chance  *rand.Rand // of the run's own goroutine
	trace   *trace
	limits  Limits
	net     *network
	config  *configuration
	user    wire.Key
	joined  atomic.Pointer[[]*machine] // what machines returns
	clients []*client
	load    *historytest.Workload
	burst   *burst
	beats   []*pulse
	diary   *diary
	work    sync.WaitGroup  // of machines and faults
	faults  map[Kind]int    // so many were there
	spoilt  *machine        // the one whose disk loses what it had
	resizes int             // so many slices got another level
	slices  int             // so many are watched
	noted   map[string]bool // kinds of problems, by the watch
	over    bool            // nothing starts any more

	filled atomic.Bool // a disk was full

	mu       sync.Mutex // guards below
	problems []string
}

func newWorld(o Options) *world {
	w := &world{o: o, chance: rand.New(rand.NewPCG(o.Seed, 1)), trace: newTrace(o.Trace), net: newNetwork(o.Seed), faults: map[Kind]int{}, noted: map[string]bool{}}
	w.limits = drawLimits(rand.New(rand.NewPCG(o.Seed, 2)))
	if w.o.Faults == nil {
		w.o.Faults = Kinds()
	}
	if o.Level <= slog.LevelDebug {
		w.net.note = func(c *conn, bytes int) {
			w.trace.say(c.local.name, "sends %s %d bytes on %x", c.remote.name, bytes, c.number)
		}
	}
	if w.o.Nodes == 0 {
		w.o.Nodes = 3 + w.chance.IntN(3)
	}
	if w.o.Length == 0 {
		w.o.Length = time.Duration(10+w.chance.IntN(20)) * time.Second
	}
	w.config = &configuration{store: inmem.New()}
	w.load = historytest.NewWorkload(func() time.Duration { return time.Since(w.trace.began) }, callBound)
	w.load.Allow(w.allowed)
	w.trace.say("world", "seed %d: %d nodes, %v; %v", o.Seed, w.o.Nodes, w.o.Length, w.limits)
	return w
}

// problem notes something that must not be.
func (w *world) problem(format string, args ...any) {
	s := fmt.Sprintf("%11.6f ", time.Since(w.trace.began).Seconds()) + fmt.Sprintf(format, args...)
	w.trace.say("PROBLEM", format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.problems) < 20 {
		w.problems = append(w.problems, s)
	}
}

// allowed reports whether a program may be told an error: that there is no
// room, once a disk was full.
func (w *world) allowed(err error) bool { return w.filled.Load() && fault.Is(err, fault.NoSpace) }

// drawnKey makes a key from chance.
func (w *world) drawnKey() (wire.Key, error) { return wire.NewKey(source{w.chance}) }

// newChance returns chance that nothing else draws from.
func newChance(seed, stream uint64) source { return source{rand.New(rand.NewPCG(seed, stream))} }

// source makes chance readable.
type source struct{ r *rand.Rand }

// Read implements io.Reader.
func (s source) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(s.r.Uint32())
	}
	return len(p), nil
}

// begin makes the cluster and its clients, and what they work on.
func (w *world) begin() error {
	ctx, cancel := context.WithTimeout(context.Background(), startBound)
	defer cancel()
	var err error
	if w.user, err = w.drawnKey(); err != nil {
		return err
	}
	_, err = w.config.store.Apply(ctx, geoconfig.Batch{Key: "cluster", Cluster: &geoconfig.Cluster{ID: clusterID, Generation: 1},
		Users: []geoconfig.User{{Name: "root", Key: w.user.KeyID(), TrustedHost: true}}})
	if err != nil {
		return err
	}
	for i := range w.o.Nodes {
		m, err := w.machine(i)
		if err != nil {
			return err
		}
		m.start()
	}
	if err := w.await(ctx, "the root", w.rooted); err != nil {
		return err
	}
	for i := range 3 + w.chance.IntN(2) {
		if err := w.client(ctx, i); err != nil {
			return err
		}
	}
	w.burst = &burst{w: w}
	if err := w.burst.prepare(ctx, w.clients[0].fs); err != nil {
		return err
	}
	if err := w.pulses(ctx); err != nil {
		return err
	}
	if slices.Contains(w.o.Faults, Diary) {
		if err := w.keepDiary(ctx); err != nil {
			return err
		}
	}
	return w.load.Prepare(ctx, ids.Site(w.machines()[1].site))
}

// machine adds a node to the cluster.
func (w *world) machine(i int) (*machine, error) {
	m := &machine{w: w, index: i, name: fmt.Sprint("n", i), site: string(rune('a' + i)), dir: filepath.Join(w.o.Dir, fmt.Sprint("n", i)),
		clock: newClock(drift(w.chance, 0.05)), wall: &wall{}, disk: newStorage(),
		chance: rand.New(rand.NewPCG(w.o.Seed, uint64(100+i)))}
	m.wall.set(time.Duration(w.chance.Int64N(int64(300 * time.Millisecond))))
	m.host = w.net.host(m.name)
	var err error
	if m.key, err = w.drawnKey(); err != nil {
		return nil, err
	}
	all := append(slices.Clone(w.machines()), m)
	w.joined.Store(&all)
	return m, nil
}

// machines returns those that are there by now; one that joins is not in it. The
// result must not be changed. The checks call it while a fault adds a machine.
func (w *world) machines() []*machine {
	if all := w.joined.Load(); all != nil {
		return *all
	}
	return nil
}

func (w *world) rooted() error {
	for _, m := range w.machines() {
		if s := m.now(); s != nil && s.CheckRoot() == nil {
			return nil
		}
	}
	return fmt.Errorf("no node leads it")
}

// await polls until check is content.
func (w *world) await(ctx context.Context, what string, check func() error) error {
	for {
		err := check()
		if err == nil {
			return nil
		}
		t := time.NewTimer(20_000_017)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
	}
}

// live has the clients work while faults come and go.
func (w *world) live() {
	stop := make(chan struct{})
	var working sync.WaitGroup
	for _, c := range w.clients {
		working.Go(func() { w.labour(c, stop) })
		workers, pause := 1+w.chance.IntN(8), time.Duration(20_000_000+w.chance.IntN(1_500_000_000))
		for i := range workers {
			k := w.burst.worker(c, fmt.Sprintf("%s.%d", c.name, i), rand.New(rand.NewPCG(w.o.Seed, uint64(1000*c.actor+i))))
			working.Go(func() { k.run(context.Background(), stop, pause) })
		}
	}
	for i, p := range w.beats {
		by, to := w.clients[i], w.clients[(i+1)%len(w.clients)]
		working.Go(func() { p.beat(by, newChance(w.o.Seed, uint64(700+i)).r, 500*time.Millisecond, p.raise, stop) })
		working.Go(func() { p.beat(to, newChance(w.o.Seed, uint64(800+i)).r, 150*time.Millisecond, p.read, stop) })
	}
	if w.diary != nil {
		working.Go(func() { w.diary.live(stop) })
	}
	working.Go(func() { w.watch(stop) })
	w.disturb()
	close(stop)
	w.heal()
	working.Wait()
}

// labour has one of the workload work until stop.
func (w *world) labour(c *client, stop chan struct{}) {
	chance := rand.New(rand.NewPCG(w.o.Seed, uint64(500+c.actor)))
	has, _ := c.now()
	for range 200 {
		if now, _ := c.now(); now != nil && now == has {
			w.load.Once(context.Background(), c.actor)
		} else if now != nil && w.restarted(c) {
			has = now
		}
		t := time.NewTimer(time.Duration(chance.Int64N(int64(w.o.Length / 75))))
		select {
		case <-stop:
			t.Stop()
			return
		case <-t.C:
		}
	}
}

// restarted gives the workload a client's new process.
func (w *world) restarted(c *client) bool {
	now, over := c.now()
	if now == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), callBound)
	defer cancel()
	err := w.load.Restart(ctx, c.actor, now)
	if err != nil && !ended(over) {
		w.problem("RESTART: %s: %v", c.name, err)
	}
	return err == nil
}

// end closes everything.
func (w *world) end() {
	var closing sync.WaitGroup
	for _, c := range w.clients {
		closing.Go(func() {
			if mounted, _ := c.now(); mounted != nil {
				if err := mounted.Close(); err != nil {
					w.problem("CLOSE: %s: %v", c.name, err)
				}
			}
		})
	}
	if w.diary != nil && w.diary.fs != nil {
		closing.Go(func() { _ = w.diary.fs.Close() }) // what it held was compared
	}
	closing.Wait()
	w.over = true
	for _, m := range w.machines() {
		m.crash(false)
	}
	w.work.Wait()
}

func (w *world) result() Result {
	sum, lines := w.trace.flush()
	return Result{Seed: w.o.Seed, Limits: w.limits, Problems: w.problems, Sum: sum, Lines: lines, Virtual: time.Since(w.trace.began), Faults: w.faults}
}
