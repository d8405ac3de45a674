package simulation

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/testbed/historytest"
)

// client is one mount: its host, its clock and cache folder, and the process if
// it runs.
type client struct {
	run    *run
	to     *cluster
	load   *historytest.Workload
	index  int
	name   string
	site   ids.Site
	host   *host
	clock  *clock
	actor  int // of the workload
	chance *rand.Rand

	mu     sync.Mutex // guards below
	fs     *cartwheel.Client
	over   chan struct{} // closed when the process is gone
	folder string        // the cache and the write journal, as the process has them
	lives  int
}

// newClient opens one more mount, and has it work in the workload.
func newClient(ctx context.Context, to *cluster, load *historytest.Workload, i int) (*client, error) {
	c := &client{run: to.run, to: to, load: load, index: i, name: fmt.Sprint("c", i), site: ids.Site(to.machines()[i%len(to.machines())].site),
		clock: newClock(drift(to.chance, 0.005)), chance: rand.New(rand.NewPCG(to.o.Seed, uint64(200+i)))}
	c.host = to.net.clientHost(c.name)
	c.folder = filepath.Join(to.o.Dir, c.name+".0")
	if err := c.open(ctx); err != nil {
		return nil, err
	}
	c.actor = load.Add(c.fs, rand.New(rand.NewPCG(to.o.Seed, uint64(300+i))))
	return c, nil
}

// open begins a life of the process.
func (c *client) open(ctx context.Context) error {
	file, err := c.to.contact()
	if err != nil {
		return err
	}
	key, err := wire.NewKey(source{c.chance})
	if err != nil {
		return err
	}
	level := c.run.o.Level
	if level == slog.LevelInfo {
		level = slog.LevelWarn
	}
	over := make(chan struct{})
	mounted, err := cartwheel.Open(ctx, cartwheel.Options{Contact: file, Site: c.site, Name: c.name, CacheDir: c.folder,
		OpTimeout: callBound - 5*time.Second, Clock: c.clock.read,
		Simulated: cartwheel.Simulated{Network: c.host.begin(), Key: key, Random: rand.New(rand.NewPCG(c.chance.Uint64(), 1))},
		Logger:    slog.New(handler{t: c.run.trace, who: c.name, least: level, over: over})})
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fs, c.over = mounted, over
	c.lives++
	return nil
}

// now returns the mount and what is closed at its end; nil while there is none.
func (c *client) now() (*cartwheel.Client, chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fs, c.over
}

// crash ends the process without a word. What it wrote to its folder is there
// for the next one.
func (c *client) crash() bool {
	c.mu.Lock()
	mounted := c.fs
	if mounted == nil {
		c.mu.Unlock()
		return false
	}
	c.load.Lose(c.actor)
	c.fs = nil
	close(c.over)
	c.mu.Unlock()
	c.host.end(c.chance.IntN(2) == 0)
	next := filepath.Join(c.run.o.Dir, fmt.Sprintf("%s.%d", c.name, c.lives))
	if err := duplicate(os.DirFS(c.folder), next); err != nil {
		c.run.problem("FOLDER: %s: %v", c.name, err)
	}
	c.folder = next
	c.run.trace.say(c.name, "crashes")
	c.run.work.Go(mounted.Abort)
	return true
}

// start begins the next life of the process, trying until it can.
func (c *client) start() {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), startBound)
		err := c.open(ctx)
		cancel()
		if err == nil {
			c.run.trace.say(c.name, "starts")
			return
		}
		c.run.trace.say(c.name, "does not start: %v", err)
		c.host.end(false)
		pass(time.Duration(500_000_000 + c.chance.IntN(500_000_000)))
	}
}

// restarted gives the workload the client's new process.
func (c *client) restarted() bool {
	now, over := c.now()
	if now == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), callBound)
	defer cancel()
	err := c.load.Restart(ctx, c.actor, now)
	if err != nil && !ended(over) {
		c.run.problem("RESTART: %s: %v", c.name, err)
	}
	return err == nil
}
