package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/testbed/historytest"
)

// world is a run under way: the cluster, and all that work on it, disturb it
// and look at it.
type world struct {
	*cluster
	clients []*client
	load    *historytest.Workload
	burst   *burst
	beats   []*pulse
	diary   *diary // nil: there is none
	faults  *faults
}

func newWorld(o Options) *world {
	w := &world{cluster: &cluster{run: newRun(o)}}
	w.load = historytest.NewWorkload(w.since, callBound)
	w.load.Allow(w.allowed)
	w.faults = &faults{cluster: w.cluster, seen: map[Kind]int{}}
	return w
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
		m, err := w.add(i)
		if err != nil {
			return err
		}
		m.start()
	}
	if err := await(ctx, "the root", w.rooted); err != nil {
		return err
	}
	for i := range 3 + w.chance.IntN(2) {
		c, err := newClient(ctx, w.cluster, w.load, i)
		if err != nil {
			return err
		}
		w.clients = append(w.clients, c)
	}
	w.faults.clients = w.clients
	w.burst = &burst{findings: w.findings}
	if err := w.burst.prepare(ctx, w.clients[0].fs, w.sites()); err != nil {
		return err
	}
	if w.beats, err = newPulses(ctx, w.burst, w.clients); err != nil {
		return err
	}
	if slices.Contains(w.o.Faults, Diary) {
		w.diary = newDiary(w.cluster, w.clients[0])
		if err := w.diary.open(ctx); err != nil {
			return err
		}
	}
	return w.load.Prepare(ctx, ids.Site(w.machines()[1].site))
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
	checks := &watch{cluster: w.cluster}
	working.Go(func() { checks.look(stop) })
	w.faults.disturb()
	close(stop)
	w.faults.heal()
	working.Wait()
}

// labour has one of the workload work until stop.
func (w *world) labour(c *client, stop chan struct{}) {
	chance := rand.New(rand.NewPCG(w.o.Seed, uint64(500+c.actor)))
	has, _ := c.now()
	for range 200 {
		if now, _ := c.now(); now != nil && now == has {
			w.load.Once(context.Background(), c.actor)
		} else if now != nil && c.restarted() {
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
	return Result{Seed: w.o.Seed, Limits: w.limits, Problems: w.problems, Sum: sum, Lines: lines, Virtual: w.since(), Faults: w.faults.seen}
}
