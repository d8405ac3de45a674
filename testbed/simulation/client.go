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
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/wire"
)

// client is one mount: its host, its clock and cache folder, and the process if
// it runs.
type client struct {
	w      *world
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

// client opens one more mount.
func (w *world) client(ctx context.Context, i int) error {
	c := &client{w: w, index: i, name: fmt.Sprint("c", i), site: ids.Site(w.machines()[i%len(w.machines())].site),
		clock: newClock(drift(w.chance, 0.005)), chance: rand.New(rand.NewPCG(w.o.Seed, uint64(200+i)))}
	c.host = w.net.host(c.name)
	c.folder = filepath.Join(w.o.Dir, c.name+".0")
	if err := c.open(ctx); err != nil {
		return err
	}
	w.clients = append(w.clients, c)
	c.actor = w.load.Add(c.fs, rand.New(rand.NewPCG(w.o.Seed, uint64(300+i))))
	return nil
}

// contact is what every client knows at its start.
func (w *world) contact() (contact.File, error) {
	path := filepath.Join(w.o.Dir, "user.key")
	encoded, err := w.user.Marshal()
	if err == nil {
		err = os.WriteFile(path, encoded, 0o600)
	}
	file := contact.File{Cluster: clusterID, UserKey: path}
	for _, m := range w.machines() {
		file.Nodes = append(file.Nodes, m.host.address()+"/p2p/"+string(m.id()))
	}
	return file, err
}

// open begins a life of the process.
func (c *client) open(ctx context.Context) error {
	file, err := c.w.contact()
	if err != nil {
		return err
	}
	key, err := wire.NewKey(source{c.chance})
	if err != nil {
		return err
	}
	level := c.w.o.Level
	if level == slog.LevelInfo {
		level = slog.LevelWarn
	}
	over := make(chan struct{})
	mounted, err := cartwheel.Open(ctx, cartwheel.Options{Contact: file, Site: c.site, Name: c.name, CacheDir: c.folder,
		OpTimeout: callBound - 5*time.Second, BootTime: c.clock.read,
		Simulated: cartwheel.Simulated{Network: c.host.begin(), Key: key, Random: rand.New(rand.NewPCG(c.chance.Uint64(), 1))},
		Logger:    slog.New(handler{t: c.w.trace, who: c.name, least: level, over: over})})
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
	c.w.load.Lose(c.actor)
	c.fs = nil
	close(c.over)
	c.mu.Unlock()
	c.host.end(c.chance.IntN(2) == 0)
	next := filepath.Join(c.w.o.Dir, fmt.Sprintf("%s.%d", c.name, c.lives))
	if err := duplicate(os.DirFS(c.folder), next); err != nil {
		c.w.problem("FOLDER: %s: %v", c.name, err)
	}
	c.folder = next
	c.w.trace.say(c.name, "crashes")
	c.w.work.Go(mounted.Abort)
	return true
}

// start begins the next life of the process, trying until it can.
func (c *client) start() {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), startBound)
		err := c.open(ctx)
		cancel()
		if err == nil {
			c.w.trace.say(c.name, "starts")
			return
		}
		c.w.trace.say(c.name, "does not start: %v", err)
		c.host.end(false)
		pass(time.Duration(500_000_000 + c.chance.IntN(500_000_000)))
	}
}

// crashes is the fault that a client's process dies.
func (w *world) crashing() harm {
	c := w.clients[w.chance.IntN(len(w.clients))]
	if mounted, _ := c.now(); mounted == nil {
		return harm{}
	}
	began := false
	return harm{about: c.name, length: time.Duration(10_000_000 + w.chance.IntN(3_000_000_000)),
		begin: func() { began = c.crash() },
		lift: func() {
			if began {
				c.start()
			}
		}}
}
