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

// absence is what is known of an active, or of all members of a slice, that did not answer.
type absence struct {
	until time.Duration // by the cluster's clock: till then it is asked for nothing
	asked bool          // a question for a sign of life is on its way
	lives bool          // it gave one since: a request may try it
}

// took is how long the active of a slice takes to answer operations, and since when that
// is known.
type took struct{ d, at time.Duration }

// waiting is an attempt of Wait.
type waiting struct {
	active ids.Node
	cancel context.CancelFunc
}

// doubt is of the active of one slice: attempts wait long for its answer. The
// other members are asked for a newer row for all of these attempts together,
// so that a node that is slow because it has much to do does not get as many
// questions more as there are operations that wait for it, nor do the others.
type doubt struct {
	attempts int // that wait; guarded by the router's mutex
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

// askTogether asks the members for a newer row, or waits for the answer to such
// a question that is under way. If none knows better, the next attempt tells.
func (r *Router) askTogether(ctx context.Context, row geoconfig.SliceRow) {
	r.mu.Lock()
	under, ok := r.asking[row.ID]
	if !ok {
		under = make(chan struct{})
		r.asking[row.ID] = under
	}
	r.mu.Unlock()
	if ok {
		select {
		case <-under:
		case <-ctx.Done():
		}
		return
	}
	_ = r.ask(ctx, row.ID, r.others(row), "")
	r.mu.Lock()
	delete(r.asking, row.ID)
	r.mu.Unlock()
	close(under)
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

// runner runs one attempt.
type runner func(ctx context.Context, row geoconfig.SliceRow, attempt Attempt) (*pb.Refusal, error)

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
