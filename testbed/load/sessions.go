package load

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"cartwheel.dev/clients/contact"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// SessionOptions say whose sessions are kept, how often and for how long.
type SessionOptions struct {
	Contact string // contact file
	Site    string // where the client stands
	Nodes   string // the site whose nodes are asked; "": all
	For     time.Duration
	Every   time.Duration // from one keep-alive to the next, whether answered or not
}

// SessionResult is what keep-alives met.
type SessionResult struct {
	// RTT is how long each answered one took, in milliseconds.
	RTT []float64 `json:"rtt_ms"`
	// Failed were not answered within keepAliveLimit; Lapsed counts sessions
	// that a node had ended before the next keep-alive came.
	Failed int `json:"failed"`
	Lapsed int `json:"lapsed"`
}

// keepAliveLimit bounds one keep-alive: the length of a session.
const keepAliveLimit = 3 * time.Second

// Sessions holds a session with each node by keep-alives of its own, on a
// connection for beacons as every client has one, and times them. They are
// sent one after another without waiting, so that a slow one hides no other.
func Sessions(ctx context.Context, o SessionOptions) (SessionResult, error) {
	const op fault.Op = "load.Sessions"
	var r SessionResult
	file, err := contact.Load(o.Contact)
	if err != nil {
		return r, err
	}
	c, err := contact.New(contact.Options{File: file, Site: ids.Site(o.Site), Name: "sessions"})
	if err != nil {
		return r, err
	}
	defer c.Close()
	if err := c.Connect(ctx); err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.For)
	defer cancel()
	var all sync.WaitGroup
	k := keeper{cluster: c, result: &r}
	nodes := 0
	for _, n := range c.Nodes() {
		if o.Nodes == "" || string(n.Site) == o.Nodes {
			nodes++
			all.Go(func() { k.keep(ctx, n.ID, o.Every) })
		}
	}
	all.Wait()
	if nodes == 0 {
		return r, fault.E(fault.NotFound, op, o.Nodes, "no node stands at this site")
	}
	return r, nil
}

// keeper notes what keep-alives meet.
type keeper struct {
	cluster *contact.Cluster

	mu     sync.Mutex // guards result
	result *SessionResult
}

// keep holds the session with one node until ctx ends.
func (k *keeper) keep(ctx context.Context, id ids.Node, every time.Duration) {
	var number atomic.Uint64 // of the session
	for number.Load() == 0 && ctx.Err() == nil {
		if err := k.alive(ctx, id, &number); err != nil {
			_ = wait(ctx, every) // the loop sees that it is over
		}
	}
	var under sync.WaitGroup
	defer under.Wait()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		under.Go(func() {
			began := time.Now()
			k.note(k.alive(context.WithoutCancel(ctx), id, &number), time.Since(began))
		})
	}
}

var errLapsed = errors.New("the node had ended the session")

// alive sends one keep-alive and stores the number of the session where that
// is a new one.
func (k *keeper) alive(ctx context.Context, id ids.Node, number *atomic.Uint64) error {
	ctx, cancel := context.WithTimeout(ctx, keepAliveLimit)
	defer cancel()
	var a pb.KeepAliveResponse
	old := number.Load()
	_, err := k.cluster.Call(ctx, id, wire.Beacon, method.KeepAlive, &pb.KeepAliveRequest{Session: old, Client: k.cluster.Client()}, nil, &a)
	if err == nil && a.Session != old && number.CompareAndSwap(old, a.Session) && old != 0 {
		err = errLapsed
	}
	return err
}

func (k *keeper) note(err error, took time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case errors.Is(err, errLapsed):
		k.result.Lapsed++
	case err != nil:
		k.result.Failed++
	default:
		k.result.RTT = append(k.result.RTT, float64(took)/float64(time.Millisecond))
	}
}
