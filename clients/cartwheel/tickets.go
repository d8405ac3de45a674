package cartwheel

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
)

// Limits of what tickets are kept. When one is met, those that were not used
// for longest go. A node that is shown no ticket walks up the path instead.
const (
	maxTickets = 1 << 16 // objects, in each of two generations
	maxOwned   = 1 << 15 // chunks, in each of two generations
)

// tickets keeps what nodes sealed for this client's user: that it reached
// objects, may read versions, had the bytes of chunks. A trusted host gets none
// and shows none.
type tickets struct {
	any atomic.Bool // there ever was one

	mu      sync.Mutex // guards below; no other is taken under it
	objects generations[ids.Object, objectTickets]
	owned   generations[chunk.Address, []byte]
}

// objectTickets are those of one object, and of its last two versions.
type objectTickets struct {
	reached []byte
	now     versionTicket
	before  versionTicket
}

type versionTicket struct {
	root   chunk.Address
	ticket []byte
	at     time.Duration // when it came
}

// generations is a map that forgets what was not used for longest.
type generations[K comparable, V any] struct{ young, old map[K]V }

// get returns a value and makes it young.
func (g *generations[K, V]) get(k K, most int) (V, bool) {
	v, ok := g.young[k]
	if ok {
		return v, true
	}
	if v, ok = g.old[k]; ok {
		g.put(k, v, most)
	}
	return v, ok
}

func (g *generations[K, V]) put(k K, v V, most int) {
	if g.young == nil || len(g.young) >= most {
		g.old, g.young = g.young, make(map[K]V)
	}
	g.young[k] = v
}

// note keeps the ticket of an object of which only the ID is known.
func (t *tickets) note(o ids.Object, reached []byte) {
	if len(reached) == 0 {
		return
	}
	t.any.Store(true)
	t.mu.Lock()
	defer t.mu.Unlock()
	x, _ := t.objects.get(o, maxTickets)
	x.reached = reached
	t.objects.put(o, x, maxTickets)
}

// learn keeps the tickets that came with attributes.
func (t *tickets) learn(a *pb.Attr, now time.Duration) {
	if a == nil || len(a.Ticket) == 0 {
		return
	}
	t.any.Store(true)
	t.mu.Lock()
	defer t.mu.Unlock()
	o := ids.Object(a.Object)
	x, _ := t.objects.get(o, maxTickets)
	x.reached = a.Ticket
	if c := a.Content; len(c.GetTicket()) > 0 && len(c.Root) == chunk.AddressSize {
		root := chunk.Address(c.Root)
		if x.now.root != root {
			x.before = x.now
		}
		x.now = versionTicket{root: root, ticket: c.Ticket, at: now}
	}
	t.objects.put(o, x, maxTickets)
}

// reached returns the ticket of an object, nil where there is none.
func (t *tickets) reached(o ids.Object) []byte { return t.of(o).reached }

func (t *tickets) of(o ids.Object) objectTickets {
	if !t.any.Load() {
		return objectTickets{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	x, _ := t.objects.get(o, maxTickets)
	return x
}

// with returns the tickets of those of the objects that have one.
func (t *tickets) with(objects ...uint64) []*pb.Ticket {
	if !t.any.Load() {
		return nil
	}
	var out []*pb.Ticket
	for _, o := range objects {
		if reached := t.reached(ids.Object(o)); reached != nil {
			out = append(out, &pb.Ticket{Object: o, Ticket: reached})
		}
	}
	return out
}

// own keeps tickets of chunks; those that are empty are left out.
func (t *tickets) own(addresses []chunk.Address, owned [][]byte) {
	if len(owned) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range min(len(addresses), len(owned)) {
		if len(owned[i]) > 0 {
			t.owned.put(addresses[i], owned[i], maxOwned)
		}
	}
}

// isUser reports whether this client's key acts as one user, who shows tickets.
func (c *Client) isUser() bool { return c.cluster.Who().GetTicketNs() != 0 }

// readable returns the ticket to read a version of a file. One that is about to
// end, or that is missing, is asked for first.
func (c *Client) readable(ctx context.Context, o ids.Object, root chunk.Address) []byte {
	if !c.isUser() {
		return nil
	}
	t := c.tickets.of(o).version(root)
	if half := time.Duration(c.cluster.Who().GetTicketNs() / 2); t.ticket == nil || c.boot()-t.at > half {
		_, _ = c.fetch(ctx, o, true, false) // without a newer one the node says why it refuses
		t = c.tickets.of(o).version(root)
	}
	return t.ticket
}

func (x objectTickets) version(root chunk.Address) versionTicket {
	switch root {
	case x.now.root:
		return x.now
	case x.before.root:
		return x.before
	}
	return versionTicket{}
}

// showOwned puts the tickets of the chunks that a commit names beside them.
// Missing, as where a node lacks them, makes the caller put them first.
func (c *Client) showOwned(commit *pb.Commit) error {
	if !c.isUser() {
		return nil
	}
	t := &c.tickets
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range commit.Extents {
		src, ok := e.Source.(*pb.Extent_Chunk)
		if !ok || len(src.Chunk) != chunk.AddressSize {
			continue
		}
		a := chunk.Address(src.Chunk)
		if e.Owned, ok = t.owned.get(a, maxOwned); !ok {
			return fault.E(fault.Missing, "cartwheel.showOwned", a.String(), "no node has said that this client has the chunk")
		}
	}
	return nil
}
