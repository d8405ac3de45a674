// Package emulator is the process that a wide area's packets cross: it holds
// the TUN devices of all sites, reads what hosts send, asks package link what
// becomes of it, and writes it to the site it goes to when it is due. One
// thread does all of that, at real-time priority where that is permitted, with
// its memory locked; it allocates nothing, so that no collection stops it.
// Another goroutine answers what package wan asks.
//
// Run is called by a process of its own, by nothing else, since it changes the
// process as a whole.
package emulator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/wan"
)

const (
	priority  = 20 // real-time; the kernel's own threads for interrupts are above
	collect   = 400
	processes = 4 // so that the thread never waits for a turn of Go's scheduler
	patience  = 10 * time.Second
	// mostThreads is how many threads settle raises; Go starts ten or so.
	mostThreads = 1000
)

// Emulator answers for one network.
type Emulator struct {
	warn io.Writer
	rank int    // real-time priority that was permitted
	end  func() // ends Run

	mu      sync.Mutex // one question at a time; guards what follows
	config  wan.Config
	version uint64
	loop    *loop
	tuns    []*tun
	ended   chan error
}

// Run is the emulator's process: it answers on the socket that it was started
// with until it is told to end. warn takes its warnings.
func Run(ctx context.Context, warn io.Writer) error {
	const op fault.Op = "emulator.Run"
	file := os.NewFile(wan.Listener, "listener")
	listener, err := net.FileListener(file)
	if err != nil {
		return fault.E(fault.Usage, op, "", "this command is started by the testbed, not by hand")
	}
	file.Close()
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if os.Getenv(wan.LifelineEnv) != "" {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // it ends when whoever started this does
			cancel()
		}()
	}
	e := &Emulator{warn: warn, end: cancel, ended: make(chan error, 1)}
	e.settle()
	context.AfterFunc(ctx, func() { _ = listener.Close() }) // which ends serve
	err = e.serve(ctx, listener)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.loop != nil {
		_ = e.loop.stop() // which fails where it has ended by itself
		err = errors.Join(err, <-e.ended)
	}
	for _, t := range e.tuns {
		t.close()
	}
	return err
}

// settle makes the process one that is punctual, as far as it is permitted.
func (e *Emulator) settle() {
	runtime.GOMAXPROCS(max(processes, runtime.NumCPU()))
	// No collection runs while some threads are raised and others are not: see
	// prioritizeAll.
	debug.SetGCPercent(-1)
	defer debug.SetGCPercent(collect)
	runtime.GC() // which ends one that is under way
	if err := unix.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE | unix.MCL_ONFAULT); err != nil {
		fmt.Fprintf(e.warn, "warning: the emulator's memory is not locked: %v\n", err)
	}
	if err := prioritizeAll(); err != nil {
		fmt.Fprintf(e.warn, "warning: the emulator runs without real-time priority (%v): runs may be void\n", err)
		return
	}
	e.rank = priority
}

// prioritizeAll gives every thread of this process real-time priority, so that the
// one that moves packets waits for none of lower rank. Threads to come inherit it.
// One left behind would stop the process: Go's collector has threads spin until
// another is done, and on a busy machine that other one would not get to run.
func prioritizeAll() error {
	return raiseAll(func() ([]int, error) {
		entries, err := os.ReadDir("/proc/self/task")
		var threads []int
		for _, e := range entries {
			tid, _ := strconv.Atoi(e.Name()) // the kernel's names are numbers
			threads = append(threads, tid)
		}
		return threads, err
	}, prioritize)
}

// raiseAll raises what list has until it finds all raised, twice: a thread that was
// not may have started another meanwhile. raise tells whether there was need.
func raiseAll(list func() ([]int, error), raise func(tid int) (bool, error)) error {
	for raised, quiet := 0, 0; quiet < 2; {
		threads, err := list()
		if err != nil {
			return err
		}
		quiet++
		for _, tid := range threads {
			did, err := raise(tid)
			if err != nil && !errors.Is(err, unix.ESRCH) { // it has ended
				return err
			}
			if did {
				raised, quiet = raised+1, 0
			}
		}
		if raised > mostThreads {
			return fmt.Errorf("%d threads were raised, and there are more", raised)
		}
	}
	return nil
}

// prioritize raises a thread, and tells whether there was need. It takes turns with
// others of its rank: several emulators may run on a machine, and their threads are
// more than its processors.
func prioritize(tid int) (did bool, err error) {
	if a, err := unix.SchedGetAttr(tid, 0); err != nil || a.Policy == unix.SCHED_RR && a.Priority == priority {
		return false, err
	}
	return true, unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: priority}, 0)
}

func (e *Emulator) serve(ctx context.Context, l net.Listener) error {
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fault.Wrap(fault.IO, "emulator.serve", "", err)
		}
		_ = conn.SetDeadline(time.Now().Add(patience)) // an error shows in what follows
		var r wan.Request
		if err := json.NewDecoder(conn).Decode(&r); err == nil {
			_ = json.NewEncoder(conn).Encode(e.answer(&r)) // who asked may have gone
		}
		conn.Close()
	}
}

func (e *Emulator) answer(r *wan.Request) *wan.Reply {
	e.mu.Lock()
	defer e.mu.Unlock()
	var reply wan.Reply
	var err error
	if e.loop == nil && r.Do != wan.AskStart {
		err = fault.E(fault.Again, "emulator.answer", "", "the emulator has not been started yet")
	} else {
		switch r.Do {
		case wan.AskStart:
			err = e.start(r.Config)
		case wan.AskChange:
			err = e.change(r.Config, r.Version)
		case wan.AskConfig:
			reply.Config, reply.Version = &e.config, e.version
		case wan.AskStats:
			reply.Stats, err = e.stats()
		default:
			err = fault.Errorf(fault.NotSupported, "emulator.answer", string(r.Do), "unknown question")
		}
	}
	if err != nil {
		return &wan.Reply{Kind: kind(err), Subject: fault.SubjectOf(err), Error: err.Error()}
	}
	return &reply
}

func kind(err error) fault.Kind {
	if k := fault.KindOf(err); k != fault.None {
		return k
	}
	return fault.Other
}

func (e *Emulator) start(c *wan.Config) error {
	const op fault.Op = "emulator.start"
	if e.loop != nil || c == nil {
		return fault.E(fault.Duplicate, op, "", "the emulator runs already, or was given no network")
	}
	if err := c.Check(); err != nil {
		return err
	}
	base := time.Now()
	fillSchedules(c, base)
	for _, s := range c.Sites {
		t, err := openTun(wan.SiteNamespace(*c, s.Name))
		if err != nil {
			return fault.Wrap(fault.IO, op, s.Name, err)
		}
		e.tuns = append(e.tuns, t)
	}
	l, err := newLoop(c, e.tuns, base)
	if err != nil {
		return fault.Wrap(fault.IO, op, "", err)
	}
	e.config, e.version, e.loop = *c, 1, l
	go func() { // joined by Run
		e.ended <- l.run()
		e.end() // nothing passes any more: whoever started this is to know
	}()
	return nil
}

// change puts a configuration in force, if it was made from the one in force.
func (e *Emulator) change(c *wan.Config, version uint64) error {
	const op fault.Op = "emulator.change"
	if version != e.version {
		return fault.E(fault.Conflict, op, "", "the network was changed meanwhile")
	}
	if c == nil {
		return fault.E(fault.Invalid, op, "", "no network was given")
	}
	if err := c.Check(); err != nil {
		return err
	}
	if err := sameShape(&e.config, c); err != nil {
		return err
	}
	fillSchedules(c, time.Now())
	state := compile(c, e.loop.base)
	if err := e.loop.do(func(now int64) { e.loop.net.Set(now, state) }); err != nil {
		return err
	}
	e.config = *c
	e.version++
	return nil
}

// sameShape refuses what cannot change while packets are under way.
func sameShape(old, c *wan.Config) error {
	const op fault.Op = "emulator.sameShape"
	if old.Prefix != c.Prefix || old.Run != c.Run || old.Seed != c.Seed || old.TCP != c.TCP || len(old.Sites) != len(c.Sites) {
		return fault.E(fault.NotSupported, op, c.Run, "prefix, run, seed, congestion control and the number of sites stay as they are: start another network")
	}
	for i, s := range c.Sites {
		o := old.Sites[i]
		if o.Name != s.Name || o.Prefix != s.Prefix || o.LAN != s.LAN || fmt.Sprint(o.Hosts) != fmt.Sprint(s.Hosts) {
			return fault.E(fault.NotSupported, op, s.Name, "a site's name, prefix, hosts and LAN rate stay as they are: start another network")
		}
	}
	return nil
}

func (e *Emulator) stats() (*wan.Stats, error) {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return nil, fault.Wrap(fault.IO, "emulator.stats", "", err)
	}
	s := &wan.Stats{
		Elapsed: time.Since(e.loop.base), CPU: time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), Priority: e.rank,
		Pairs: map[wan.Pair]wan.Counters{}, Sites: map[string]wan.Lost{},
	}
	if err := e.loop.do(func(int64) { e.loop.report(s) }); err != nil {
		return nil, err
	}
	for i, site := range e.config.Sites {
		l := e.loop.lost[i]
		var err error
		if l.Unread, err = e.tuns[i].unread(); err != nil {
			return nil, fault.Wrap(fault.IO, "emulator.stats", site.Name, err)
		}
		s.Sites[site.Name] = l
	}
	return s, nil
}
