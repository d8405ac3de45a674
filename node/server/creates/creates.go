// Package creates keeps the creates that clients send to the standbys of a slice beside
// its active, so that a create takes one round trip. A standby keeps one on its disk,
// apart from the log, until the log brings the operation of that client and number. A
// standby that takes over orders what it keeps before it serves anybody: a client may
// have counted such a create as done. What no active has after a while is sent to the
// active, which does it or remembers that it was refused. So nothing is kept for long.
//
// What is kept is bounded, by number and by bytes; a client whose create is refused here
// waits for the log instead. A Table is safe for use by many goroutines.
package creates

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/store/sidecar"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// Caller calls another node; a *wire.Host does.
type Caller interface {
	Call(ctx context.Context, peer string, class wire.Class, m wire.Method, request proto.Message, body [][]byte, answer proto.Message) (*wire.Buffer, error)
}

// Options set up a Table. None may be missing, but for FS, which is the operating
// system's then.
type Options struct {
	Self ids.Node
	// Dir is where the creates are kept, in FS.
	Dir string
	FS  vfs.FS
	// Count and Bytes bound what is kept.
	Count, Bytes int
	Published    func(ids.Slice) *operate.Published
	Row          func(ids.Slice) (geoconfig.SliceRow, bool)
	Caller       Caller
	// Order has an operation done where this node acts for its slice.
	Order  func(context.Context, *operate.Operation) (operate.Answer, error)
	Clock  boottime.Func
	Logger *slog.Logger
}

// id names an operation of a client in a slice.
type id struct {
	slice          ids.Slice
	client, number uint64
}

// create is one create that is kept. It does not change, but for next.
type create struct {
	req  *pb.OperateRequest
	body []byte
	next time.Duration // boot time at which the active is asked to do it
}

func (c *create) bytes() int { return proto.Size(c.req) + len(c.body) }

// operation makes the loop's operation of a create, under the client's own number.
func (c *create) operation() *operate.Operation { return Operation(c.req, c.body) }

// Operation makes the loop's operation of a create that a member keeps. The member has
// checked what the client may name.
func Operation(req *pb.OperateRequest, body []byte) *operate.Operation {
	p := req.Principal
	return &operate.Operation{Slice: ids.Slice(req.Slice), Client: req.Client, Number: req.Number, Lowest: req.Lowest, Op: req.Operation, Body: body,
		Trusted: req.Trusted, User: req.User, OnlyMade: !req.Trusted, Held: true, Kept: true,
		Principal: tree.Principal{UID: p.GetUid(), GID: p.GetGid(), Groups: p.GetGroups()}}
}

// Table is the creates that a node keeps. It implements operate.Pending.
type Table struct {
	o    Options
	wake chan struct{} // holds one word that there is something to look after

	mu      sync.Mutex // guards below
	kept    *kept      // nil while nothing was ever kept
	creates map[id]*create
	bytes   int
	gone    []id // settled, and perhaps on the disk still
	closed  bool
}

var _ operate.Pending = (*Table)(nil)

// Open reads what is kept.
func Open(o Options) (*Table, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	t := &Table{o: o, wake: make(chan struct{}, 1), creates: map[id]*create{}}
	is, err := sidecar.Exists(o.FS, o.Dir)
	if err != nil || !is {
		return t, err
	}
	if t.kept, err = openKept(o.FS, o.Dir); err != nil {
		return nil, err
	}
	if t.creates, err = t.kept.load(); err != nil {
		return nil, err
	}
	now := o.Clock()
	for _, c := range t.creates {
		c.next = now + settleAfter
		t.bytes += c.bytes()
	}
	t.wakeUp()
	return t, nil
}

func (t *Table) wakeUp() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Keep keeps a create, whose memory is the table's from now on. It is on the disk when
// Keep returns nil. WrongEpoch: this node is no standby of the slice in the request's
// epoch. Overloaded: the node keeps as much as it may.
func (t *Table) Keep(req *pb.OperateRequest, body []byte) error {
	const op fault.Op = "creates.Keep"
	key := id{ids.Slice(req.Slice), req.Client, req.Number}
	c := &create{req: req, body: body, next: t.o.Clock() + settleAfter}
	k, err := t.add(key, c)
	if err != nil {
		return err
	}
	// The role is looked at behind add: a node that leads by then has read the table, and
	// one that leads later finds the create.
	p := t.o.Published(key.slice)
	if p == nil || p.Role != replica.RoleStandby || p.Row == nil || p.Row.Epoch != ids.Epoch(req.Epoch) {
		t.drop(key, c, false)
		return fault.E(fault.WrongEpoch, op, "", "this node is no standby of the slice in that epoch")
	}
	if err := k.put(key, c); err != nil {
		t.drop(key, c, true)
		return err
	}
	t.wakeUp()
	return nil
}

// add takes a create in, in memory.
func (t *Table) add(key id, c *create) (*kept, error) {
	const op fault.Op = "creates.add"
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, fault.E(fault.Closed, op, "", "the node stops")
	}
	if _, is := t.creates[key]; is {
		return nil, fault.E(fault.Again, op, "", "the create is being kept already")
	}
	n := c.bytes()
	if len(t.creates)+len(t.gone) >= t.o.Count || t.bytes+n > t.o.Bytes {
		return nil, fault.E(fault.Overloaded, op, "", "this node keeps as many creates as it may: the active alone does it")
	}
	if t.kept == nil {
		k, err := openKept(t.o.FS, t.o.Dir)
		if err != nil {
			return nil, err
		}
		t.kept = k
	}
	t.creates[key] = c
	t.bytes += n
	return t.kept, nil
}

// drop takes a create out that is not to be kept after all, and may be on the disk.
func (t *Table) drop(key id, c *create, onDisk bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.creates[key] == c {
		t.remove(key, onDisk)
	}
}

// remove takes a create out, with t.mu held.
func (t *Table) remove(key id, onDisk bool) {
	c := t.creates[key]
	if c == nil {
		return
	}
	t.bytes -= c.bytes()
	delete(t.creates, key)
	if onDisk {
		t.gone = append(t.gone, key)
		t.wakeUp()
	}
}

// Of implements operate.Pending.
func (t *Table) Of(slice ids.Slice) (out []*operate.Operation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, c := range t.creates {
		if key.slice == slice {
			out = append(out, c.operation())
		}
	}
	slices.SortFunc(out, func(a, b *operate.Operation) int {
		return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.Number, b.Number))
	})
	return out
}

// Settled implements operate.Pending.
func (t *Table) Settled(slice ids.Slice, client, number uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(id{slice, client, number}, true)
}

// Len returns how many creates are kept.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.creates)
}

// Close ends the table once no operation is under way. Run has ended.
func (t *Table) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.kept == nil {
		return nil
	}
	return t.kept.close()
}
