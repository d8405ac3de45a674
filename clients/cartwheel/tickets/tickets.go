// Package tickets keeps what nodes sealed for this client's user: that it reached
// objects, may read versions of files, and had the bytes of chunks. A trusted
// host gets no tickets and shows none. The package judges no ticket: a node that
// is shown none, or an old one, walks up the path instead or says why it refuses.
package tickets

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
)

// Limits of what tickets are kept. When one is met, those that were not used
// for longest go.
const (
	maxObjects = 1 << 16 // in each of two generations
	maxChunks  = 1 << 15 // in each of two generations
)

// Options set up a Table. None may be missing.
type Options struct {
	// Who is what the nodes said of this client's key; nil: nothing yet.
	Who   func() *pb.HelloResponse
	Clock boottime.Func
	// Renew asks an object's active for its attributes, and hands what comes to
	// Learn. A failure needs no word: the node that is shown no ticket has one.
	Renew func(ctx context.Context, o ids.Object)
}

// Table keeps the tickets. It is safe for use by many goroutines. Its lock is
// the last to be taken, and held over no call.
type Table struct {
	opt Options
	any atomic.Bool // there ever was one of an object

	mu      sync.Mutex // guards below; no other is taken under it
	objects generations[ids.Object, Object]
	chunks  generations[chunk.Address, []byte]
}

// Object has the tickets of one object, of its last two versions, and of the one that was
// read last as of an earlier time.
type Object struct {
	Reached           []byte // nil: none
	now, before, past version
}

// version is the ticket to read one version of a file.
type version struct {
	root   chunk.Address
	ticket []byte
	at     time.Duration // boot time when it came
}

// New returns a Table without tickets.
func New(o Options) *Table { return &Table{opt: o} }

// IsUser reports whether this client's key acts as one user, and shows tickets.
func (t *Table) IsUser() bool { return t.opt.Who().GetTicketNs() != 0 }

// Note keeps the ticket of an object of which only the ID is known.
func (t *Table) Note(o ids.Object, reached []byte) {
	if len(reached) == 0 {
		return
	}
	t.any.Store(true)
	t.mu.Lock()
	defer t.mu.Unlock()
	x, _ := t.objects.get(o, maxObjects)
	x.Reached = reached
	t.objects.put(o, x, maxObjects)
}

// Learn keeps the tickets that came with attributes.
func (t *Table) Learn(a *pb.Attr) {
	if a == nil || len(a.Ticket) == 0 {
		return
	}
	now := t.opt.Clock()
	t.any.Store(true)
	t.mu.Lock()
	defer t.mu.Unlock()
	o := ids.Object(a.Object)
	x, _ := t.objects.get(o, maxObjects)
	x.Reached = a.Ticket
	if c := a.Content; len(c.GetTicket()) > 0 && len(c.Root) == chunk.AddressSize {
		root := chunk.Address(c.Root)
		if x.now.root != root {
			x.before = x.now
		}
		x.now = version{root: root, ticket: c.Ticket, at: now}
	}
	t.objects.put(o, x, maxObjects)
}

// NotePast keeps the ticket to read a version that came with attributes as of an earlier
// time. Their other tickets do not hold in the present, and are left out.
func (t *Table) NotePast(a *pb.Attr) {
	c := a.GetContent()
	if len(c.GetTicket()) == 0 || len(c.Root) != chunk.AddressSize {
		return
	}
	t.any.Store(true)
	t.mu.Lock()
	defer t.mu.Unlock()
	o := ids.Object(a.Object)
	x, _ := t.objects.get(o, maxObjects)
	x.past = version{root: chunk.Address(c.Root), ticket: c.Ticket, at: t.opt.Clock()}
	t.objects.put(o, x, maxObjects)
}

// Of returns the tickets of an object, which must not be changed.
func (t *Table) Of(o ids.Object) Object {
	if !t.any.Load() {
		return Object{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	x, _ := t.objects.get(o, maxObjects)
	return x
}

// With returns the tickets of those of the objects that have one.
func (t *Table) With(objects ...uint64) []*pb.Ticket {
	if !t.any.Load() {
		return nil
	}
	var out []*pb.Ticket
	for _, o := range objects {
		if reached := t.Of(ids.Object(o)).Reached; reached != nil {
			out = append(out, &pb.Ticket{Object: o, Ticket: reached})
		}
	}
	return out
}

// Current returns the newest version that there is a ticket to read, and the
// ticket; nil: there is none.
func (x Object) Current() (root chunk.Address, ticket []byte) { return x.now.root, x.now.ticket }

// Version returns the ticket to read a version, or nil.
func (x Object) Version(root chunk.Address) []byte { return x.version(root).ticket }

func (x Object) version(root chunk.Address) version {
	switch root {
	case x.now.root:
		return x.now
	case x.before.root:
		return x.before
	case x.past.root:
		return x.past
	}
	return version{}
}

// Readable returns the ticket to read a version of a file, nil for a trusted
// host. It renews a ticket that is missing or half over, for which it may block.
func (t *Table) Readable(ctx context.Context, o ids.Object, root chunk.Address) []byte {
	if !t.IsUser() {
		return nil
	}
	v := t.Of(o).version(root)
	if half := time.Duration(t.opt.Who().GetTicketNs() / 2); v.ticket == nil || t.opt.Clock()-v.at > half {
		t.opt.Renew(ctx, o)
		v = t.Of(o).version(root)
	}
	return v.ticket
}

// Own keeps tickets of chunks; those that are empty are left out.
func (t *Table) Own(addresses []chunk.Address, owned [][]byte) {
	if len(owned) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range min(len(addresses), len(owned)) {
		if len(owned[i]) > 0 {
			t.chunks.put(addresses[i], owned[i], maxChunks)
		}
	}
}

// ShowOwned puts the tickets of the chunks that a commit names beside them.
// Missing, as where a node lacks them, makes the caller put them first.
func (t *Table) ShowOwned(commit *pb.Commit) error {
	if !t.IsUser() {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range commit.Extents {
		src, ok := e.Source.(*pb.Extent_Chunk)
		if !ok || len(src.Chunk) != chunk.AddressSize {
			continue
		}
		a := chunk.Address(src.Chunk)
		if e.Owned, ok = t.chunks.get(a, maxChunks); !ok {
			return fault.E(fault.Missing, "cartwheel.showOwned", a.String(), "no node has said that this client has the chunk")
		}
	}
	return nil
}
