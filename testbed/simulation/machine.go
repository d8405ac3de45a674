package simulation

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/store"
	"cartwheel.dev/node/wire"
)

// machine is a node: its host, disk and clocks, and the process if it runs.
type machine struct {
	run    *run
	index  int
	name   string
	site   string
	dir    string // for what is not state
	key    wire.Key
	host   *host
	clock  *clock
	wall   *wall
	chance *rand.Rand
	gate   gate // of the disk

	line line // to geo-config

	mu      sync.Mutex // guards below
	disk    storage
	server  *server.Server
	over    chan struct{} // closed when the process is gone
	running bool          // or about to
	erring  bool          // a write of it is to fail
	spoilt  bool          // the disk lost what it had
	begun   bool          // it has started before
	leaving bool          // it was told to stop, and
	again   bool          // is to start when it has
	older   *storage      // the disk as it once was
}

// id names the node.
func (m *machine) id() ids.Node { return ids.Node(m.key.KeyID()) }

// now returns the server, nil while there is none.
func (m *machine) now() *server.Server {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.server
}

// start starts the process; it goes on by itself.
func (m *machine) start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.again = m.leaving
	if m.running || m.run.over {
		return
	}
	m.running = true
	if m.older == nil || m.chance.IntN(2) == 0 {
		was := m.disk.afterKill()
		m.older = &was
	}
	late := m.odd(time.Millisecond)
	m.over = make(chan struct{})
	over, d, net := m.over, m.disk, m.host.begin()
	m.run.trace.say(m.name, "starts")
	m.run.work.Go(func() {
		pass(late)
		m.live(over, d, net)
	})
}

// live is one life of the process.
func (m *machine) live(over chan struct{}, d storage, net *life) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	go func() {
		select {
		case <-over:
			cancel()
		case <-ctx.Done():
		}
	}()
	s, err := server.Open(ctx, m.configuration(), m.depend(over, d, net))
	if err != nil {
		if !ended(over) {
			m.unstartable(over, err)
		}
		return
	}
	m.mu.Lock()
	if m.over == over && m.running {
		m.server, m.begun = s, true
	}
	m.mu.Unlock()
	select {
	case <-over:
	case err := <-s.Failed():
		if !ended(over) {
			m.failed(over, err)
		}
	}
	_ = s.Abort() // its disk is nobody's any more
}

// failed hears that the process cannot go on. After a failed write that is as
// it should be: it is started again.
func (m *machine) failed(over chan struct{}, err error) {
	expected := m.erred()
	m.stop(over)
	if !expected {
		m.run.problem("FATAL: %s ended: %v", m.name, err)
		return
	}
	m.run.trace.say(m.name, "ends: %v", err)
	m.later()
}

// erred reports whether a write was to fail, and has none fail any more.
func (m *machine) erred() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.erring
	m.erring = false
	m.disk.files.Heal()
	return was
}

// unstartable hears that the process did not start. Where the disk is spoilt
// and says so, whoever operates it empties it.
func (m *machine) unstartable(over chan struct{}, err error) {
	m.stop(over)
	m.mu.Lock()
	spoilt, erring, begun := m.spoilt, m.erring, m.begun
	m.erring = false
	m.disk.files.Heal()
	m.mu.Unlock()
	switch {
	case erring:
	case !begun && fault.Is(err, fault.Unreachable): // nobody knows it yet, so it cannot do without geo-config
	case spoilt && fault.Is(err, fault.Corrupt) && m.run.config.spare(m.id()):
		m.mu.Lock()
		m.disk = newStorage()
		m.mu.Unlock()
	default:
		m.run.problem("START: %s: %v", m.name, err)
		return
	}
	m.run.trace.say(m.name, "does not start: %v", err)
	m.later()
}

// later starts the process again after a while.
func (m *machine) later() {
	m.run.work.Go(func() {
		pass(m.odd(time.Second))
		m.start()
	})
}

// configuration draws nothing: what differs between runs is in the limits.
func (m *machine) configuration() server.Config {
	l := &m.run.limits
	c := server.DefaultConfig()
	c.Data, c.Site, c.Listen, c.Socket, c.ExpectedNodes = m.dir, m.site, []string{m.host.address()}, "none", m.run.o.Nodes
	c.Lease, c.Session, c.Shared = l.Lease, l.Session, l.Shared
	c.FailedAfter, c.MissedBytes, c.CheckpointBytes = l.FailedAfter, l.MissedBytes, l.CheckpointBytes
	c.TransferPageBytes = l.PageBytes
	c.MemoryBytes, c.MaxSliceObjects = 64<<20, l.SliceObjects
	c.ReserveBytes = l.Reserve
	c.Retention, c.UploadGrace = l.Retention, l.UploadGrace
	return c
}

// drawn returns a source of chance of its own.
func (m *machine) drawn() *rand.Rand {
	return rand.New(rand.NewPCG(m.chance.Uint64(), m.chance.Uint64()))
}

// odd returns a time near d that nothing else happens at: what is due at one
// instant runs in no order that a seed decides.
func (m *machine) odd(d time.Duration) time.Duration {
	return d + time.Duration(m.chance.Int64N(int64(d/50)))
}

// depend gives the process its simulated surroundings.
func (m *machine) depend(over chan struct{}, d storage, net *life) server.Deps {
	l := &m.run.limits
	return server.Deps{
		Key: m.key, Version: "simulated", Network: net,
		Store: func(*wire.Host) (geoconfig.Store, error) { return &seat{m.run.config, &m.line, m.drawn(), over}, nil },
		Clock: m.clock.read, Wall: m.wall.now, Random: m.drawn(),
		Logger: slog.New(handler{t: m.run.trace, who: m.name, least: m.run.o.Level, over: over, wrong: m.run.problem}),
		Times: wire.Times{Dial: m.odd(time.Second), Redial: m.odd(100 * time.Millisecond), Probe: m.odd(300 * time.Millisecond),
			Heartbeat: m.odd(300 * time.Millisecond), Silence: m.odd(l.Silence)},
		Disk: func(o *store.Options) {
			o.Disk, o.MetaFS = &slow{d.files, m.drawn(), l.DiskDelay, &m.gate}, d.meta
			l.shrink(o)
		},
		Core: func(c *replica.Config) {
			c.Limits.UncommittedEntries, c.Limits.FlightBytes, c.Limits.MessageBytes = l.Uncommitted, l.FlightBytes, l.MessageBytes
		},
	}
}

// crash ends the process without a word. With power, what was not synced is
// lost, and peers are not told.
func (m *machine) crash(power bool) {
	m.mu.Lock()
	if !m.running {
		m.mu.Unlock()
		return
	}
	if power {
		m.disk = m.disk.afterPower(m.chance)
	} else {
		m.disk = m.disk.afterKill()
	}
	m.endLocked(power)
	m.mu.Unlock()
	m.run.trace.say(m.name, "crashes, power lost: %v", power)
}

// leave stops the process in order: it passes on what it leads first.
func (m *machine) leave() {
	m.mu.Lock()
	s, over := m.server, m.over
	m.leaving = s != nil
	m.mu.Unlock()
	if s == nil {
		return
	}
	m.run.trace.say(m.name, "is told to stop")
	m.run.work.Go(func() {
		if err := s.Close(); err != nil && !ended(over) && !m.erred() {
			m.run.problem("STOP: %s: %v", m.name, err)
		}
		m.stop(over)
		m.mu.Lock()
		again := m.again
		m.leaving, m.again = false, false
		m.mu.Unlock()
		if again {
			m.start()
		}
	})
}

// stop ends a process that ends by itself, if it is still that one.
func (m *machine) stop(over chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over == over && m.running {
		m.disk = m.disk.afterKill()
		m.endLocked(false)
	}
}

// endLocked has the process be gone. m.mu is held.
func (m *machine) endLocked(silent bool) {
	m.running, m.server = false, nil
	close(m.over)
	m.host.end(silent)
}

// stand asks a node how its copy stands.
func (m *machine) stand(s *server.Server, id ids.Slice) (server.Standing, bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	return s.Stand(ctx, id)
}
