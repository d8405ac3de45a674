// Package route brings requests to the node that acts for a slice: it keeps the
// slice rows that were needed, goes where a refusal points, and tries again
// through failovers and broken links until the caller's limit. It never turns
// one operation into two: what is sent again is the same request. A Router is
// safe for use by many goroutines; Close joins those of its own.
package route

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"cartwheel.dev/clients/contact"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// Limits of patience.
const (
	// DefaultLimit ends a request whose context has no deadline.
	DefaultLimit = 60 * time.Second
	// suspicion is how long an answer may take before the other members are
	// asked whether somebody else acts for the slice by now.
	suspicion = time.Second
	// askAgain is the time between such questions.
	askAgain = 500 * time.Millisecond
	// rowsLimit bounds one such question to one node; after slowAnswer the next
	// one is asked too.
	rowsLimit  = 2 * time.Second
	slowAnswer = 150 * time.Millisecond
	// firstWait and lastWait bound the pause before the same node is asked again.
	firstWait = 20 * time.Millisecond
	lastWait  = 500 * time.Millisecond
)

// Router knows who acts for which slice.
type Router struct {
	cluster *contact.Cluster
	logger  *slog.Logger
	// onRow hears of every newer row; it must not block.
	onRow func(old, row geoconfig.SliceRow)

	mu   sync.Mutex // guards below
	rows map[ids.Slice]geoconfig.SliceRow
	// waits are attempts that end when another node acts for their slice.
	waits map[ids.Slice]map[*waiting]struct{}
	// asking are the questions under way after attempts that failed: one for
	// each slice, however many ask.
	asking map[ids.Slice]chan struct{}

	// sought says when the new active of a slice may be sought again, by the cluster's
	// clock, where the one that is known was away.
	sought map[ids.Slice]time.Duration
	// doubts are the slices whose active is slow to answer.
	doubts map[ids.Slice]*doubt
	// away are the nodes that are not asked first, because they did not answer a request
	// that takes what other members have.
	away map[ids.Node]absence
	took map[ids.Slice]took
	// lost are the slices for whose members nobody waits, because none answered an
	// eventual read.
	lost map[ids.Slice]absence

	watchers sync.WaitGroup
	life     context.Context // ends with Close
	end      context.CancelFunc
}

// New makes a Router. onRow, if not nil, hears of each row that is newer than
// the one before, which is the zero row at first.
func New(cluster *contact.Cluster, logger *slog.Logger, onRow func(old, row geoconfig.SliceRow)) *Router {
	life, end := context.WithCancel(context.Background())
	return &Router{life: life, end: end, cluster: cluster, logger: logger, onRow: onRow, rows: map[ids.Slice]geoconfig.SliceRow{},
		waits: map[ids.Slice]map[*waiting]struct{}{}, asking: map[ids.Slice]chan struct{}{}, sought: map[ids.Slice]time.Duration{}, doubts: map[ids.Slice]*doubt{}, away: map[ids.Node]absence{}}
}

// Learn keeps a row if it is newer than the known one, and reports whether it was.
func (r *Router) Learn(row geoconfig.SliceRow) bool {
	r.mu.Lock()
	old, known := r.rows[row.ID]
	if known && (row.Generation < old.Generation || row.Generation == old.Generation && row.Epoch <= old.Epoch) {
		r.mu.Unlock()
		return false
	}
	r.rows[row.ID] = row.Clone()
	for w := range r.waits[row.ID] {
		if w.active != row.Active {
			w.cancel()
		}
	}
	r.mu.Unlock()
	if r.onRow != nil {
		r.onRow(old, row)
	}
	return true
}

// Known returns a slice's row if it has been needed before.
func (r *Router) Known(id ids.Slice) (geoconfig.SliceRow, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	row, ok := r.rows[id]
	return row, ok
}

// Row returns a slice's row, asking the nodes if it is not known. A slice that no
// node knows is NotFound, but for the root's: a new cluster is about to make it,
// so that is Again.
func (r *Router) Row(ctx context.Context, id ids.Slice) (geoconfig.SliceRow, error) {
	if row, ok := r.Known(id); ok {
		return row, nil
	}
	err := r.ask(ctx, id, r.cluster.Nearest(), "")
	if row, ok := r.Known(id); ok {
		return row, nil
	}
	switch {
	case err != nil:
	case id == ids.RootSlice:
		err = fault.E(fault.Again, "route.Row", "", "the tree has no root yet: a new cluster makes it once its nodes have found one another")
	default:
		err = fault.Errorf(fault.NotFound, "route.Row", "", "no node knows slice %d", id)
	}
	return geoconfig.SliceRow{}, err
}

// ask learns a slice's row from the first of the nodes that has a newer one, or
// from those that answer. The next is asked when the one before has answered or
// is slow to, so that one behind a broken link holds nothing up; those that are
// still silent when all others have answered are not waited for. It fails if
// nobody answered.
func (r *Router) ask(ctx context.Context, id ids.Slice, nodes []ids.Node, except ids.Node) error {
	type reply struct {
		newer bool
		err   error
	}
	ctx, cancel := context.WithCancel(ctx)
	replies := make(chan reply, len(nodes))
	var running sync.WaitGroup
	defer running.Wait() // they end with the context
	defer cancel()
	var failed error
	answered := false
	timer := time.NewTimer(0)
	defer timer.Stop()
	for next, waiting := 0, 0; next < len(nodes) || waiting > 0; {
		select {
		case a := <-replies:
			waiting--
			if a.newer {
				return nil
			}
			if answered = answered || a.err == nil; a.err != nil {
				failed = a.err
			}
			timer.Reset(0)
			if waiting > 0 && next == len(nodes) {
				timer.Reset(slowAnswer)
			}
			continue
		case <-timer.C:
		}
		if next == len(nodes) && answered {
			return nil
		}
		pause := slowAnswer
		if next < len(nodes) {
			if n := nodes[next]; n == except {
				pause = 0
			} else {
				waiting++
				running.Go(func() {
					newer, err := r.askOne(ctx, id, n)
					replies <- reply{newer, err}
				})
			}
			next++
		}
		timer.Reset(pause)
	}
	if answered {
		return nil
	}
	return failed
}

func (r *Router) askOne(ctx context.Context, id ids.Slice, from ids.Node) (newer bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, rowsLimit)
	defer cancel()
	var rows pb.RowsResponse
	if _, err := r.cluster.Call(ctx, from, wire.Operation, method.Rows, &pb.RowsRequest{Slices: []uint32{uint32(id)}}, nil, &rows); err != nil {
		return false, err
	}
	for _, data := range rows.Slices {
		newer = r.learnJSON(data) || newer
	}
	return newer, nil
}

func (r *Router) learnJSON(data []byte) bool {
	var row geoconfig.SliceRow
	if err := json.Unmarshal(data, &row); err != nil {
		r.logger.Warn("a node sent a slice row that cannot be read", logattr.Err(err))
		return false
	}
	return r.Learn(row)
}

// Attempt sends the request once, to one node, as of an epoch. It is called
// again, with the same request, until it returns neither a refusal nor an
// error worth trying again.
type Attempt func(ctx context.Context, node ids.Node, epoch ids.Epoch) (*pb.Refusal, error)

// Active runs attempts at the node that acts for the slice until one is
// answered. Kinds besides the node's own answer: TimedOut and Canceled, after
// which the outcome is unknown if any attempt was sent, and NotFound for a
// slice that nobody knows.
func (r *Router) Active(ctx context.Context, id ids.Slice, attempt Attempt) error {
	return r.active(ctx, id, attempt, r.watched)
}

// runner runs one attempt.
type runner func(ctx context.Context, row geoconfig.SliceRow, attempt Attempt) (*pb.Refusal, error)

func (r *Router) active(ctx context.Context, id ids.Slice, attempt Attempt, run runner) error {
	const op fault.Op = "route.active"
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultLimit)
		defer cancel()
	}
	wait := firstWait
	var last error
	for {
		row, err := r.Row(ctx, id)
		if err == nil {
			var refusal *pb.Refusal
			refusal, err = run(ctx, row, attempt)
			if err == nil && refusal == nil {
				return nil
			}
			if err == nil {
				err = fault.E(fault.Kind(refusal.Kind), op, string(row.Active), refusal.Message)
				if len(refusal.Row) > 0 && r.learnJSON(refusal.Row) {
					continue // it points to somebody else: no need to wait
				}
			} else if !again(err) {
				return err
			}
		} else if fault.Is(err, fault.NotFound) {
			return err
		}
		if ctx.Err() != nil {
			return r.giveUp(ctx, id, err, last)
		}
		last = err
		if now, ok := r.Known(id); ok && now.Epoch != row.Epoch {
			continue // learned while waiting
		}
		if err := r.pause(ctx, wait); err != nil {
			return r.giveUp(ctx, id, err, last)
		}
		wait = min(2*wait, lastWait)
		if row.ID != 0 && !fault.Is(err, fault.Overloaded) { // who has too much to do still acts for it
			r.askTogether(ctx, row)
		}
	}
}

// again reports whether an attempt that failed so may be made again: nobody
// answered, or the answer asks for it.
func again(err error) bool {
	switch fault.KindOf(err) {
	case fault.Unreachable, fault.Overloaded, fault.Again, fault.NotActive, fault.WrongEpoch, fault.Closed:
		return true
	case fault.TimedOut, fault.Canceled:
		return true // by the watcher; the caller's own context is looked at apart
	}
	return false
}

func (r *Router) giveUp(ctx context.Context, id ids.Slice, err, last error) error {
	kind := fault.TimedOut
	if fault.Is(context.Cause(ctx), fault.Canceled) {
		kind = fault.Canceled
	}
	if last == nil {
		last = err
	}
	return &fault.Error{Kind: kind, Op: "route.Active", Subject: r.subject(id), Public: "no answer within the limit; whether it was done is not known", Cause: last}
}

func (r *Router) subject(id ids.Slice) string {
	row, _ := r.Known(id)
	return "slice " + geoconfig.SliceKey(row.ID).Name + " at " + string(row.Active)
}

// jitter draws a time around d.
func (r *Router) jitter(d time.Duration) time.Duration { return r.cluster.Jitter(d) }

// pause waits, with jitter, so that clients do not come back all at once.
func (r *Router) pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(r.jitter(d))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// others are the members besides the active, the nearest first, then the
// active itself.
func (r *Router) others(row geoconfig.SliceRow) []ids.Node {
	var out []ids.Node
	for _, m := range row.Members {
		if m.Node != row.Active {
			out = append(out, m.Node)
		}
	}
	r.cluster.Sort(out)
	return append(out, row.Active)
}

// Close waits for the goroutines that watch attempts; the attempts must have
// ended.
func (r *Router) Close() {
	r.end()
	r.watchers.Wait()
}

// Amend changes what is believed of a slice without a newer epoch: that it is
// closed, which raises none.
func (r *Router) Amend(row geoconfig.SliceRow) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old, ok := r.rows[row.ID]; ok && old.Epoch == row.Epoch {
		old.Closed = row.Closed
		r.rows[row.ID] = old
	}
}
