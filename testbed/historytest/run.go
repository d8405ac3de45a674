package historytest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/mount"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// Bounds. They allow for a loaded machine: nothing is promised about speed.
const (
	lease   = 1200 * time.Millisecond
	session = 1500 * time.Millisecond
	// callBound is the longest that a call may take; every fault is over long
	// before.
	callBound = 40 * time.Second
	// wholeBound is how long replicas may take to be normal and equal (CONV).
	wholeBound = 60 * time.Second
	maxSlices  = 256
)

// Options are one run.
type Options struct {
	Seed    uint64
	Nodes   int           // 3 to 5
	Clients int           // at work, one operation at a time each
	Length  time.Duration // of the work and the faults
	Log     bool          // the nodes' logs go to the test's
	// Calm runs have no faults, and what is made counts from when it is open:
	// its active may not have heard of it. With faults, it counts when closed.
	Calm bool
	// Once has half of the operations make, read and remove files of a write-once
	// directory, and sends creates to all normal members at once. The log is late, so
	// that there are creates that are done before it has them everywhere.
	Once bool

	faults []aFault // nil: drawn from the seed
	plant  plant
}

// plant is a mistake made on purpose, to show that the checkers find it.
type plant struct {
	// special clients make it; so many, the last ones.
	special int
	// work is what they do instead of the mix.
	work func(context.Context, *actor)
	// clock is that of their leases.
	clock boottime.Func
	// depend changes what nodes are given.
	depend func(i int, d *server.Deps)
	// joined gets their connections.
	joined func(*wire.Host)
	// patience makes them give up early and repeat operations as new ones.
	patience time.Duration
	// faults are drawn once everything stands.
	faults func(*world) []aFault
	// unsettled runs are judged by their history alone.
	unsettled bool
}

// isSpecial reports whether a client makes the planted mistake.
func (o *Options) isSpecial(i int) bool { return i < o.Clients && i >= o.Clients-o.plant.special }

// Verdict is what came of a run.
type Verdict struct {
	Seed     uint64
	Faults   string
	Events   int
	Unknown  int
	Problems []string
	// Unjudged objects took too long to judge.
	Unjudged []string
	Longest  time.Duration // of all calls
	Which    string
	Whole    time.Duration // until all replicas were normal and equal
}

// Run runs one seed. What goes wrong with the machine ends the test; what the
// file system does wrong is in the verdict.
func Run(t testing.TB, o Options) Verdict {
	t.Helper()
	w := begin(t, o)
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	faults := o.faults
	if faults == nil {
		faults = schedule(rand.New(rand.NewPCG(o.Seed, 1)), o.Nodes, o.Clients, o.Length)
	}
	if o.Calm {
		faults = nil
	}
	if o.plant.faults != nil {
		faults = o.plant.faults(w)
	}
	w.v.Faults = describe(faults)
	w.work(ctx, faults)
	if !o.plant.unsettled {
		w.settle(ctx)
		w.final(ctx)
	}
	w.end()
	return w.judge()
}

// world is a run under way.
type world struct {
	t      testing.TB
	o      Options
	c      *servertest.Cluster
	net    *network
	log    *recorder
	fs     []*cartwheel.Client
	actors []*actor
	harm   harm
	key    string
	v      Verdict
}

func begin(t testing.TB, o Options) *world {
	t.Helper()
	w := &world{t: t, o: o, net: newNetwork(), v: Verdict{Seed: o.Seed}}
	if o.Once {
		w.net.entries = 40 * time.Millisecond
	}
	began := time.Now()
	w.log = newRecorder(func() int64 { return int64(time.Since(began)) })
	sites := make([]string, o.Nodes)
	for i := range sites {
		sites[i] = string(rune('a' + i))
	}
	w.c = servertest.Start(t, servertest.Options{Sites: sites, Log: o.Log,
		Configure: func(_ int, c *server.Config) {
			c.Lease, c.Session, c.Shared = lease, session, 20*time.Millisecond
			if o.Once {
				c.Socket = "none" // what a socket leads to is never far
			}
		},
		Depend: o.plant.depend})
	w.key = filepath.Join(t.TempDir(), "user.key")
	encoded, err := w.c.Users["root"].Marshal()
	if err == nil {
		err = os.WriteFile(w.key, encoded, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for i := range o.Clients {
		w.join(ctx, i)
	}
	if err := prepare(ctx, w.actors[:o.Clients-o.plant.special], ids.Site(sites[1])); err != nil {
		t.Fatal(err)
	}
	if o.Once {
		if err := prepareOnce(ctx, w.fs[0]); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range w.actors {
		err := a.meet(ctx)
		if err == nil && o.Once {
			err = a.meetOnce(ctx)
		}
		for a.anew && fault.Is(err, fault.TimedOut) && ctx.Err() == nil {
			err = a.meet(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range w.c.Nodes {
		w.net.join(n.Server().Host())
	}
	w.harm = harm{c: w.c, net: w.net, order: w.c.Connect("root")}
	for _, fs := range w.fs {
		w.harm.clients = append(w.harm.clients, fs.Host().KeyID())
	}
	return w
}

// join opens one more client.
func (w *world) join(ctx context.Context, i int) *actor {
	w.t.Helper()
	file := contact.File{Cluster: servertest.ClusterID, UserKey: w.key}
	for _, n := range w.c.Nodes {
		file.Nodes = append(file.Nodes, n.Address()+"/p2p/"+string(n.ID()))
	}
	o := cartwheel.Options{Contact: file, Site: ids.Site(rune('a' + i%w.o.Nodes)), Name: fmt.Sprint("client ", i), OpTimeout: callBound - 5*time.Second}
	if w.o.Once {
		o.HoldFrom = 1
	}
	special := w.o.isSpecial(i)
	if special {
		o.Clock = w.o.plant.clock
	}
	anew := special && w.o.plant.patience > 0
	if anew {
		o.OpTimeout = w.o.plant.patience
	}
	if w.o.Log {
		o.Logger = slog.New(slog.NewTextHandler(testLog{w.t}, &slog.HandlerOptions{Level: slog.LevelDebug})).With(slog.Int("client", i))
	}
	fs, err := cartwheel.Open(ctx, o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = fs.Close() }) // judged in end
	w.net.join(fs.Host())
	if special && w.o.plant.joined != nil {
		w.o.plant.joined(fs.Host())
	}
	a := &actor{id: i, fs: fs, log: w.log, rand: rand.New(rand.NewPCG(w.o.Seed, uint64(100+i))), limit: callBound, anew: anew, calm: w.o.Calm}
	if !anew {
		a.stuck = w.standing
	}
	w.fs, w.actors = append(w.fs, fs), append(w.actors, a)
	return a
}

type testLog struct{ t testing.TB }

// Write implements io.Writer.
func (l testLog) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimRight(string(p), "\n"))
	return len(p), nil
}

// maxWork bounds an actor's operations, so that a history can be judged; it
// rests between them, so that they last as long as the faults.
const maxWork = 300

// work has the actors work while the faults come and go.
func (w *world) work(ctx context.Context, faults []aFault) {
	stop := make(chan struct{})
	var working sync.WaitGroup
	for i, a := range w.actors {
		one := w.o.plant.work
		if one == nil || !w.o.isSpecial(i) {
			one = func(ctx context.Context, a *actor) { a.one(ctx) }
		}
		working.Go(func() {
			for range maxWork {
				one(ctx, a)
				t := time.NewTimer(time.Duration(a.rand.Int64N(int64(2 * w.o.Length / maxWork))))
				select {
				case <-stop:
					t.Stop()
					return
				case <-t.C:
				}
			}
		})
	}
	w.harm.inflict(ctx, faults, w.o.Length)
	close(stop)
	working.Wait() // each call ends within callBound
}

// settle waits until all replicas are normal and equal.
func (w *world) settle(ctx context.Context) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, wholeBound)
	defer cancel()
	for {
		err := w.whole(ctx)
		if err == nil {
			w.v.Whole = time.Since(began)
			return
		}
		t := time.NewTimer(20 * time.Millisecond)
		select {
		case <-t.C:
		case <-ctx.Done():
			w.log.problem("CONV: %v after the last fault: %v", wholeBound, err)
			return
		}
	}
}

// whole answers what keeps the replicas from being normal and equal.
func (w *world) whole(ctx context.Context) error {
	rows, err := w.c.Store.Read(ctx, geoconfig.Query{Slices: maxSlices})
	if err != nil {
		return err
	}
	for _, row := range rows.Slices {
		if n := len(row.Normals()); n != len(row.Members) || n < min(row.Policy.Level, w.o.Nodes) {
			return fmt.Errorf("slice %d: %d normal members of %d, want %d: %+v; %s", row.ID, n, len(row.Members), row.Policy.Level, row, w.views(ctx, row))
		}
		if err := w.equal(row); err != nil {
			return err
		}
	}
	return nil
}

// equal compares the members' copies.
func (w *world) equal(row geoconfig.SliceRow) error {
	first, serial := "", ids.Serial(0)
	for _, n := range w.c.Nodes {
		if _, member := row.Member(n.ID()); !member {
			continue
		}
		at, sum, err := n.Server().CopySum(row.ID)
		switch {
		case err != nil:
			return err
		case first == "":
			first, serial = sum, at
		case at != serial || sum != first:
			return fmt.Errorf("slice %d: node %d has %s at serial %d, another %s at %d", row.ID, n.Index, sum, at, first, serial)
		}
	}
	return nil
}

// standing tells how each node sees each slice.
func (w *world) standing() string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	rows, err := w.c.Store.Read(ctx, geoconfig.Query{Slices: maxSlices})
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, row := range rows.Slices {
		fmt.Fprintf(&b, "\n    slice %d in epoch %d at %s: %s", row.ID, row.Epoch, row.Active, w.views(ctx, row))
	}
	return b.String()
}

// views tells how each node sees a slice.
func (w *world) views(ctx context.Context, row geoconfig.SliceRow) string {
	var b strings.Builder
	for _, n := range w.c.Nodes {
		var answer pb.SliceListResponse
		call, cancel := context.WithTimeout(ctx, time.Second)
		_, err := w.harm.order.Call(call, n.ID(), wire.Operation, method.SliceList, &pb.SliceListRequest{}, nil, &answer)
		cancel()
		if err != nil {
			fmt.Fprintf(&b, "node %d: %v; ", n.Index, err)
			continue
		}
		for _, encoded := range answer.Slices {
			var s status.Slice
			if json.Unmarshal(encoded, &s) == nil && s.ID == row.ID {
				fmt.Fprintf(&b, "node %d (%s) in epoch %d is %s, commit %d, applied %d, serving %v; ", n.Index, n.ID(), s.Epoch, s.Role, s.Commit, s.Applied, s.Serving)
			}
		}
	}
	return b.String()
}

// final has everybody, and a client that came later, read everything (DUR: the
// reads are part of the history).
func (w *world) final(ctx context.Context) {
	late := w.join(ctx, len(w.actors))
	err := late.meet(ctx)
	if err == nil && w.o.Once {
		err = late.meetOnce(ctx)
	}
	if err != nil {
		w.log.problem("DUR: %v", err)
		return
	}
	var reading sync.WaitGroup
	for _, a := range w.actors {
		reading.Go(func() { a.everything(ctx) })
	}
	reading.Wait()
}

// end closes the clients; the cluster ends with the test.
func (w *world) end() {
	errs := make([]error, len(w.fs))
	var closing sync.WaitGroup
	for i, fs := range w.fs {
		closing.Go(func() { errs[i] = fs.Close() })
	}
	closing.Wait()
	if err := errors.Join(errs...); err != nil && !w.o.plant.unsettled {
		w.log.problem("closing: %v", err)
	}
}

// judge checks the history.
func (w *world) judge() Verdict {
	r, v := w.log, &w.v
	v.Problems, v.Longest, v.Which, v.Events = r.problems, r.longest, r.which, len(r.events)
	for _, e := range r.events {
		if e.result == unknown {
			v.Unknown++
		}
	}
	wrong, open := check(r.events)
	v.Problems, v.Unjudged = append(v.Problems, wrong...), open
	v.Problems = append(v.Problems, durable(r.events)...)
	return *v
}

// durable checks that every acknowledged append is in each client's last
// reading of the log, once (DUR, ONE); LIN says the same of registers and names.
func durable(events []*event) (wrong []string) {
	last := map[int]*event{}
	for _, e := range events {
		if e.object == logName && e.what == read && e.result == done {
			last[e.client] = e
		}
	}
	for _, e := range events {
		if e.what != add {
			continue
		}
		for client, seen := range last {
			n := strings.Count(seen.value, e.value)
			if n > 1 || n == 0 && e.result == done && seen.call > e.ret {
				wrong = append(wrong, fmt.Sprintf("DUR: client %d saw %d of %v", client, n, e))
			}
		}
	}
	return wrong
}

var _ mount.DirSink = (*listing)(nil)
