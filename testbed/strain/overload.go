package strain

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/testbed/trial"
	"golang.org/x/sync/errgroup"
)

// Overload is many clients at one slice, who ask for more than its active can
// do.
type Overload struct {
	Options
	Clients int
	Ramp    time.Duration // of each step that looks for the best throughput
	For     time.Duration // the overload itself
	Factor  float64       // what is asked for, as a multiple of the best
	Bytes   int           // of each file
}

// outstanding bounds what one client has under way: a program has so many
// threads. All of them together are more than a node lets in at once.
const outstanding = 256

// sustained is the part of the overload's length for which the best work is done
// once more after it. The steps before it are too short for the store to compact
// what they write.
const sustained = 5

// Run looks for the best throughput, asks for more, and looks at the nodes
// meanwhile. Clients make small files and delete them; each is one operation.
func (o Overload) Run(ctx context.Context) (figures []Figure, err error) {
	err = trial.Run(ctx, trial.Options{Bin: o.Bin, In: o.In, Progress: o.Progress, Words: []string{"--no-mounts"}}, func(d *trial.Demo) error {
		figures, err = o.measure(ctx, d)
		return err
	})
	return figures, err
}

func (o Overload) measure(ctx context.Context, d *trial.Demo) ([]Figure, error) {
	l, err := openCrowd(ctx, d, o.Clients, o.Bytes)
	if err != nil {
		return nil, err
	}
	defer l.close()
	best, width, err := o.best(ctx, l)
	if err != nil {
		return nil, err
	}
	before, err := sliceRows(ctx, d)
	if err != nil {
		return nil, err
	}
	w := watch(d)
	self, err := trial.Look(os.Getpid())
	if err != nil {
		return nil, err
	}
	o.say("best is %.0f/s; %d clients ask for %.0f/s, for %v", best, o.Clients, o.Factor*best, o.For)
	r := l.offer(ctx, o.Factor*best, o.For, o.say)
	if r.refused != nil {
		o.say("the first that failed: %v", r.refused)
	}
	seen, err := w.end()
	if err != nil {
		return nil, err // a node is gone
	}
	took := time.Since(r.began)
	us, err := trial.Look(os.Getpid())
	if err != nil {
		return nil, err
	}
	after, err := sliceRows(ctx, d)
	if err != nil {
		return nil, err
	}
	again := l.keepBusy(ctx, width, max(o.Ramp, o.For/sustained))
	o.say("%d at once, after it: %.0f/s, %d failed", width, again.done, again.failed)
	figures := []Figure{
		{"best throughput", best, "operations/s"}, {"the same work after the overload", again.done, "operations/s"}, {"asked for", r.asked, "operations/s"}, {"done under overload", r.done, "operations/s"},
		{"of the best", 100 * r.done / best, "%"}, {"of the same work after it", 100 * r.done / again.done, "%"}, {"worst ten seconds of it", 100 * r.worst / best, "% of the best"},
		{"refused to programs", float64(r.failed), "operations"}, {"median", milliseconds(r.percentile(0.5)), "ms"},
		{"99th percentile", milliseconds(r.percentile(0.99)), "ms"}, {"changes of slices' rows", float64(changes(before, after)), ""},
	}
	busy := func(of string, cpu time.Duration) {
		figures = append(figures, Figure{"processor of " + of, 100 * float64(cpu) / float64(took), "% of one"})
	}
	busy("all clients", us.CPU-self.CPU)
	for i, n := range seen {
		of := "the node at " + d.Sites[i].Name
		busy(of, n.last.CPU-n.first.CPU)
		figures = append(figures, Figure{"most memory of " + of, mib(n.most), "MiB"})
	}
	return figures, ctx.Err()
}

// best lets more and more work go on at once, and returns the most that was
// done in a second, and with how much at once.
func (o Overload) best(ctx context.Context, l *crowd) (best float64, width int, err error) {
	for at := 1; at <= 8*o.Clients; at *= 2 {
		r := l.keepBusy(ctx, at, o.Ramp)
		if ctx.Err() != nil {
			return 0, 0, ctx.Err()
		}
		o.say("%d at once: %.0f/s, %d failed", at, r.done, r.failed)
		if r.done > best {
			best, width = r.done, at
		}
	}
	if best == 0 {
		return 0, 0, fault.E(fault.Other, "strain.Overload", "", "nothing was done")
	}
	return best, width, nil
}

// row is what may not change: members, their states, and who is active.
type row struct {
	ID      int             `json:"id"`
	Epoch   uint64          `json:"epoch"`
	Members json.RawMessage `json:"members"`
}

// sliceRows asks the nodes for the rows of all slices.
func sliceRows(ctx context.Context, d *trial.Demo) (rows []row, err error) {
	out, err := exec.CommandContext(ctx, d.Program, "slice", "ls", "--json", "--contact", d.Contact).Output()
	if err == nil {
		err = json.Unmarshal(out, &rows)
	}
	return rows, fault.Wrap(fault.Other, "strain.sliceRows", d.Contact, err)
}

// changes counts the rows that are others than before, or new.
func changes(before, after []row) (n int) {
	for _, a := range after {
		if !slices.ContainsFunc(before, func(b row) bool {
			return a.ID == b.ID && a.Epoch == b.Epoch && string(a.Members) == string(b.Members)
		}) {
			n++
		}
	}
	return n
}

// watcher looks at the nodes of a demo until it is ended.
type watcher struct {
	stop chan struct{}
	done chan struct{}
	seen []seen // by site
	err  error
}

// seen is what one node took.
type seen struct {
	first, last trial.Usage
	most        int64 // resident bytes
}

// look notes what the node takes now.
func (s *seen) look(pid int) (err error) {
	if s.last, err = trial.Look(pid); s.first == (trial.Usage{}) {
		s.first = s.last
	}
	s.most = max(s.most, s.last.Resident)
	return err
}

func watch(d *trial.Demo) *watcher {
	w := &watcher{stop: make(chan struct{}), done: make(chan struct{}), seen: make([]seen, len(d.Sites))}
	go func() {
		defer close(w.done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			for i, s := range d.Sites {
				if w.err = w.seen[i].look(s.NodePID); w.err != nil {
					return
				}
			}
			select {
			case <-w.stop:
				return
			case <-tick.C:
			}
		}
	}()
	return w
}

// end returns what each node took, or that one has ended.
func (w *watcher) end() ([]seen, error) {
	close(w.stop)
	<-w.done
	return w.seen, w.err
}

// crowd is the clients of an overload, each with a session, connections and a
// folder of its own. All folders are in one slice.
type crowd struct {
	clients []*cartwheel.Client
	objects []*cartwheel.Objects
	content []byte
	next    atomic.Int64
}

func openCrowd(ctx context.Context, d *trial.Demo, clients, bytes int) (*crowd, error) {
	where, err := contact.Load(d.Contact)
	if err != nil {
		return nil, err
	}
	l := &crowd{content: make([]byte, bytes)}
	for i := range clients {
		c, err := cartwheel.Open(ctx, cartwheel.Options{Contact: where, Site: ids.Site(d.Sites[0].Name), Name: fmt.Sprint("client ", i)})
		if err != nil {
			l.close()
			return nil, err
		}
		l.clients = append(l.clients, c)
		name := fmt.Sprint("client", i)
		_, err = c.Mkdir(ctx, mount.Caller{}, mount.Root, name, 0o755)
		if err == nil {
			var b *cartwheel.Objects
			b, err = c.Objects(ctx, mount.Caller{}, name)
			l.objects = append(l.objects, b)
		}
		if err != nil {
			l.close()
			return nil, err
		}
	}
	return l, nil
}

func (l *crowd) close() {
	var all errgroup.Group
	for _, c := range l.clients {
		all.Go(c.Close)
	}
	_ = all.Wait() // every write was waited for
}

// pair makes a file and deletes it, and notes both.
func (l *crowd) pair(ctx context.Context, client int, n *notes) {
	name := fmt.Sprint("f", l.next.Add(1))
	b := l.objects[client]
	for _, do := range []func() error{
		func() error { return b.Put(ctx, name, l.content) },
		func() error { return b.Delete(ctx, name) },
	} {
		began := time.Now()
		err := do()
		n.note(began, err)
		if err != nil {
			return
		}
	}
}

// keepBusy has so many pairs under way at once, spread over the clients.
func (l *crowd) keepBusy(ctx context.Context, at int, length time.Duration) result {
	n := newNotes(length)
	var all sync.WaitGroup
	for i := range at {
		all.Go(func() {
			for ctx.Err() == nil && !n.over() {
				l.pair(ctx, i%len(l.clients), n)
			}
		})
	}
	all.Wait()
	return n.result()
}

// offer starts pairs at a rate, whether earlier ones have ended or not. Where a
// client has as many under way as it may, its next one is not started.
func (l *crowd) offer(ctx context.Context, rate float64, length time.Duration, say func(string, ...any)) result {
	n := newNotes(length)
	every := time.Duration(2 * float64(len(l.clients)) / rate * float64(time.Second)) // two operations each
	var all sync.WaitGroup
	for i := range l.clients {
		all.Go(func() {
			under := make(chan struct{}, outstanding)
			next := time.NewTimer(0)
			defer next.Stop()
			due := n.began.Add(every * time.Duration(i) / time.Duration(len(l.clients)))
			for ; ctx.Err() == nil && !n.over(); due = due.Add(every) {
				next.Reset(time.Until(due))
				select {
				case <-next.C:
				case <-ctx.Done():
					return
				}
				n.asked.Add(2)
				select {
				case under <- struct{}{}:
					all.Go(func() { l.pair(ctx, i, n); <-under })
				default:
				}
			}
		})
	}
	minute := time.NewTicker(time.Minute)
	defer minute.Stop()
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }()
	for {
		select {
		case <-minute.C:
			say("%v: %d done, %d failed", time.Since(n.began).Round(time.Second), n.done.Load(), n.failed.Load())
		case <-ended:
			return n.result()
		}
	}
}
