package drilling_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/drilling"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/drill"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
)

const lease = time.Second

// world is a cluster of three sites with a commander.
type world struct {
	t         *testing.T
	ctx       context.Context
	c         *servertest.Cluster
	file      contact.File
	commander *contact.Cluster
	spoils    atomic.Bool // what the probe's clients read is wrong
}

// spoiled is a client that reads what is not there, while its world says so.
type spoiled struct {
	drilling.Files
	w *world
}

// Read implements drilling.Files.
func (f spoiled) Read(ctx context.Context, c mount.Caller, node mount.Inode, h mount.Handle, offset int64, buf []byte) (int, error) {
	n, err := f.Files.Read(ctx, c, node, h, offset, buf)
	if n > 0 && f.w.spoils.Load() {
		buf[0] ^= 1
	}
	return n, err
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	w := &world{t: t, ctx: ctx, c: servertest.Start(t, servertest.Options{Log: testing.Verbose(),
		Configure: func(_ int, c *server.Config) { c.Lease, c.Session = lease, lease }})}
	key := filepath.Join(t.TempDir(), "user.key")
	encoded, err := w.c.Users["root"].Marshal()
	if err == nil {
		err = os.WriteFile(key, encoded, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.file = contact.File{Cluster: servertest.ClusterID, UserKey: key}
	for _, n := range w.c.Nodes {
		w.file.Nodes = append(w.file.Nodes, n.Address()+"/p2p/"+string(n.ID()))
	}
	if w.commander, err = contact.New(contact.Options{File: w.file, Name: "commander"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.commander.Close() }) // nothing waits for it
	if err := w.commander.Connect(ctx); err != nil {
		t.Fatal(err)
	}
	return w
}

// open makes a client at a site.
func (w *world) open(ctx context.Context, site ids.Site) (drilling.Files, error) {
	c, err := cartwheel.Open(ctx, cartwheel.Options{Contact: w.file, Site: site, Name: "probe"})
	return spoiled{c, w}, err
}

// conductor returns one whose cluster is whole by now.
func (w *world) conductor(change func(*drilling.Options)) *drilling.Conductor {
	w.t.Helper()
	o := drilling.Options{Cluster: w.commander, Open: w.open, Kind: drill.KillActive, For: 4 * lease, Path: "/", StopAfter: 30 * time.Second, Wall: time.Now}
	change(&o)
	c := drilling.New(o)
	servertest.Await(w.ctx, w.t, "a whole cluster", func() error {
		if why, err := c.Check(w.ctx); err != nil || len(why) > 0 {
			return fault.Errorf(fault.Busy, "", "", "%v, %v", why, err)
		}
		return nil
	})
	return c
}

// run conducts a drill, after which nothing of it may be left.
func (w *world) run(ctx context.Context, change func(*drilling.Options)) *drill.Record {
	w.t.Helper()
	r, err := w.conductor(change).Run(ctx, w.ctx)
	if err != nil {
		w.t.Fatalf("got %+v, %v", r, err)
	}
	if r.Lost != 0 || r.Acknowledged == 0 || len(r.Streams) != 3 {
		w.t.Errorf("got %+v, want three streams and nothing lost", r)
	}
	list, err := drilling.History(w.ctx, w.commander, nil)
	if err != nil || len(list) == 0 || list[len(list)-1].ID != r.ID || list[len(list)-1].By != "root" {
		w.t.Errorf("the history is %+v, %v, want the drill as root's", list, err)
	}
	w.isEmpty()
	return r
}

// names collects what a directory has.
type names []string

func (n *names) Add(e mount.DirEntry) bool                     { *n = append(*n, e.Name); return true }
func (n *names) AddPlus(e mount.DirEntry, _ *mount.Entry) bool { return n.Add(e) }

// isEmpty checks that the probe left nothing in the root.
func (w *world) isEmpty() {
	w.t.Helper()
	c, err := cartwheel.Open(w.ctx, cartwheel.Options{Contact: w.file, Name: "lister"})
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	var got names
	o, err := c.OpenDir(w.ctx, mount.Caller{}, mount.Root)
	if err == nil {
		err = c.ReadDir(w.ctx, mount.Caller{}, mount.Root, o.Handle, 0, false, &got)
	}
	if err != nil || strings.Trim(strings.Join(got, ""), ".") != "" {
		w.t.Errorf("the root has %q, %v, want nothing", got, err)
	}
}

// TestRun_MeasuresATakeover kills the active of the root for some leases.
func TestRun_MeasuresATakeover(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	active := w.c.Active(ids.RootSlice).ID()
	r := w.run(w.ctx, func(*drilling.Options) {})
	if r.Stopped != drill.Time || r.Node != active || r.Slice != ids.RootSlice || r.WholeMS < 0 {
		t.Errorf("got %+v, want a whole drill of the active", r)
	}
	for _, s := range r.Streams {
		if s.UsualMS <= 0 || s.Reads == 0 {
			t.Errorf("got %+v, want what is usual, and reads", s)
		}
	}
	if r.WritePauseMS < (lease / 2).Milliseconds() { // a standby waits for longer
		t.Errorf("writes paused for %d ms, want most of a lease", r.WritePauseMS)
	}
}

// TestRun_GoesOnWithoutGeoConfig takes geo-config away: nobody notices.
func TestRun_GoesOnWithoutGeoConfig(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.run(w.ctx, func(o *drilling.Options) { o.Kind, o.For = drill.GeoConfig, 2*lease })
	if r.Stopped != drill.Time || r.LastedMS < (2*lease).Milliseconds() {
		t.Errorf("got %+v, want a whole drill", r)
	}
}

// TestRun_CutsASiteOff cuts off the site of the root's active: clients there wait until the
// end.
func TestRun_CutsASiteOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	site := []ids.Site{"a", "b", "c"}[w.c.Active(ids.RootSlice).Index]
	r := w.run(w.ctx, func(o *drilling.Options) { o.Kind, o.Site, o.For = drill.Cut, site, 5*lease })
	if r.Stopped != drill.Time || r.Streams[0].Site != site {
		t.Fatalf("got %+v, want a whole drill, with %s first", r, site)
	}
	if r.Streams[0].WritePauseMS < (4 * lease).Milliseconds() {
		t.Errorf("writes at the cut site paused for %d ms, want nearly all of 5 leases", r.Streams[0].WritePauseMS)
	}
}

// TestRun_StopsByItself has each stop condition come true in the middle of a long drill.
func TestRun_StopsByItself(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name   string
		change func(*drilling.Options)
		during func(w *world, cancel func()) // while the drill is under way
		want   drill.Stop
	}{
		{"a pause is too long", func(o *drilling.Options) { o.StopAfter = lease / 2 }, nil, drill.Pause},
		{"its commander ends it", nil, func(_ *world, cancel func()) { cancel() }, drill.Interrupted},
		{"a read is wrong", func(o *drilling.Options) { o.Kind = drill.GeoConfig }, func(w *world, _ func()) { w.spoils.Store(true) }, drill.Wrong},
		{"another node fails", func(o *drilling.Options) { o.Kind = drill.GeoConfig }, func(w *world, _ func()) { w.c.Nodes[1].Kill() }, drill.Failing},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			ctx, cancel := context.WithCancel(w.ctx)
			defer cancel()
			var beside sync.WaitGroup
			r := w.run(ctx, func(o *drilling.Options) {
				if x.change != nil {
					x.change(o)
				}
				o.For = drill.Longest
				o.Say = func(text string) {
					switch {
					case x.during == nil:
					case strings.Contains(text, "under way"):
						beside.Go(func() { x.during(w, cancel) })
					case strings.Contains(text, "over"):
						beside.Wait()
						w.spoils.Store(false)
						if w.c.Nodes[1].Server() == nil {
							w.c.Nodes[1].Start()
						}
					}
				}
			})
			if r.Stopped != x.want || r.Why == "" || r.LastedMS > time.Minute.Milliseconds() {
				t.Errorf("got %q (%s) after %d ms, want %q", r.Stopped, r.Why, r.LastedMS, x.want)
			}
			w.conductor(func(*drilling.Options) {}) // no node takes part any more
		})
	}
}

// refusesOthers checks that a user who is no administrator is told so.
func (w *world) refusesOthers() {
	w.t.Helper()
	file := w.file
	file.UserKey = filepath.Join(w.t.TempDir(), "host.key")
	encoded, err := w.c.Users["host"].Marshal()
	if err == nil {
		err = os.WriteFile(file.UserKey, encoded, 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	commander, err := contact.New(contact.Options{File: file, Name: "commander"})
	if err != nil {
		w.t.Fatal(err)
	}
	defer commander.Close()
	if err := commander.Connect(w.ctx); err != nil {
		w.t.Fatal(err)
	}
	o := drilling.Options{Cluster: commander, Open: w.open, Kind: drill.GeoConfig, For: time.Second, Path: "/", StopAfter: time.Second, Wall: time.Now}
	if _, err := drilling.New(o).Check(w.ctx); !fault.Is(err, fault.Permission) {
		w.t.Errorf("no administrator: got %v, want permission denied", err)
	}
}

// TestCheck_RefusesWhatIsNotThere asks for drills of what the cluster does not have.
func TestCheck_RefusesWhatIsNotThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, x := range map[string]struct {
		change func(*drilling.Options)
		want   fault.Kind
	}{
		"a path":   {func(o *drilling.Options) { o.Path = "/none" }, fault.NotFound},
		"a site":   {func(o *drilling.Options) { o.Kind, o.Site = drill.Cut, "none" }, fault.NotFound},
		"no time":  {func(o *drilling.Options) { o.For = 0 }, fault.Invalid},
		"too long": {func(o *drilling.Options) { o.For = drill.Longest + 1 }, fault.Invalid},
	} {
		o := drilling.Options{Cluster: w.commander, Open: w.open, Kind: drill.KillActive, For: time.Second, Path: "/", StopAfter: time.Second, Wall: time.Now}
		x.change(&o)
		if _, err := drilling.New(o).Check(w.ctx); !fault.Is(err, x.want) {
			t.Errorf("%s: got %v, want %v", name, err, x.want)
		}
	}
	w.refusesOthers()
	w.c.Nodes[2].Kill()
	servertest.Await(w.ctx, t, "obstacles", func() error {
		why, err := drilling.New(drilling.Options{Cluster: w.commander, Open: w.open, Kind: drill.GeoConfig, For: time.Second, Path: "/", StopAfter: time.Second, Wall: time.Now}).Check(w.ctx)
		if text := strings.Join(why, "; "); err != nil || !strings.Contains(text, "does not answer") || !strings.Contains(text, "has 2 of 3 copies") {
			return fault.Errorf(fault.Other, "", "", "got %q, %v", text, err)
		}
		return nil
	})
}
