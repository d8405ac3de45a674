package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// role is who asks.
type role string

const (
	unknownKey role = "stranger"                  // never said hello, and its key is unknown
	formerNode role = "former node"               // its row was removed
	noRight    role = "user without right"        // ann; the file is bob's
	withRight  role = "user with right"           // bob
	trustedFor role = "trusted host for the user" // names ann's uid
	admin      role = "administrator"             // and trusted host that acts as root
	peer       role = "node"
)

var roles = []role{unknownKey, formerNode, noRight, withRight, trustedFor, admin, peer}

// asker is a role's end of the wire.
type asker struct {
	w         *world
	role      role
	cl        *servertest.Client
	principal *pb.Principal
	session   uint64
	number    uint64
}

// world is a cluster of two slices, with everybody connected.
type world struct {
	*testing.T
	ctx    context.Context
	c      *servertest.Cluster
	node   ids.Node // acts for the root's slice
	other  geoconfig.SliceRow
	askers map[role]*asker
	frames atomic.Int32 // that a node took for those of a peer, and could not read
}

// bobs is a directory of mode 0700 with a file of mode 0600, both bob's, and
// what a role knows of them: their IDs, and tickets only where its lookups led.
type bobs struct {
	dir, file uint64
	root      chunk.Address
	height    uint32
	chunk     chunk.Address
	body      []byte
	// What the role got by looking up.
	tickets  []*pb.Ticket
	readable []byte
}

func (b *bobs) ticket(o uint64) []byte {
	for _, t := range b.tickets {
		if t.Object == o {
			return t.Ticket
		}
	}
	return nil
}

// counter counts the log lines of frames that make no sense.
type counter struct {
	slog.Handler
	frames *atomic.Int32
}

func (c counter) Enabled(context.Context, slog.Level) bool { return true }
func (c counter) WithAttrs([]slog.Attr) slog.Handler       { return c }
func (c counter) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "makes no sense") {
		c.frames.Add(1)
	}
	return nil
}

func newWorld(t *testing.T) *world {
	return newWorldAt(t, func(int) time.Time { return time.Now() }, "a", "b")
}

// newWorldAt is newWorld with a node at each of some sites, each with its own clock.
func newWorldAt(t *testing.T, wall func(i int) time.Time, sites ...string) *world {
	w := &world{T: t, askers: map[role]*asker{}}
	w.c = servertest.Start(t, servertest.Options{Sites: sites, Depend: func(i int, d *server.Deps) {
		d.Logger = slog.New(counter{slog.DiscardHandler, &w.frames})
		d.Wall = func() time.Time { return wall(i) }
	}})
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	w.ctx, w.node = ctx, w.c.Active(ids.RootSlice).ID()
	for r, user := range map[role]string{unknownKey: "", formerNode: "", noRight: "ann", withRight: "bob", trustedFor: "host", admin: "root", peer: ""} {
		a := &asker{w: w, role: r, cl: w.c.Connect("root")}
		a.principal = &pb.Principal{}
		if r == trustedFor {
			a.principal = &pb.Principal{Uid: 1000, Gid: 1000}
		}
		if user != "" {
			a.cl.Key = w.c.Users[user]
			opened, err := a.cl.Session(ctx, w.node)
			if err != nil {
				t.Fatal(err)
			}
			a.session = opened.Session
		}
		w.askers[r] = a
	}
	w.makeNodes()
	site := map[bool]string{true: "b", false: "a"}[w.node == w.c.Nodes[0].ID()]
	w.other = placeAt(ctx, t, w.askers[admin].cl, w.c.Nodes[0], &pb.Cues{Site: site, RepLevel: 1})
	if w.other.ID == ids.RootSlice {
		t.Fatal("no second slice was made")
	}
	return w
}

// makeNodes puts the two nodes on the roster, and takes the former one off it.
func (w *world) makeNodes() {
	w.Helper()
	rows := map[role]geoconfig.Node{}
	for _, r := range []role{peer, formerNode} {
		rows[r] = geoconfig.Node{ID: ids.Node(w.askers[r].cl.Host.KeyID()), Site: "a", Incarnation: 1}
	}
	rev, err := w.c.Store.Apply(w.ctx, geoconfig.Batch{Key: "nodes", Nodes: []geoconfig.Node{rows[peer], rows[formerNode]}})
	if err != nil {
		w.Fatal(err)
	}
	known := func(r role) error {
		_, err := w.askers[r].call(w.node, wire.Operation, method.Facts, &pb.FactsRequest{Slice: 1}, nil, &pb.FactsResponse{})
		return err
	}
	for _, r := range []role{peer, formerNode} {
		servertest.Await(w.ctx, w, string(r)+" on the roster", func() error { return known(r) })
	}
	_, err = w.c.Store.Apply(w.ctx, geoconfig.Batch{Key: "former", Remove: []geoconfig.Removal{{Key: rows[formerNode].Key(), Revision: rev}}})
	if err != nil {
		w.Fatal(err)
	}
	servertest.Await(w.ctx, w, "the former node off the roster", func() error {
		if known(formerNode) == nil {
			return fault.E(fault.Again, "", "", "it is still one")
		}
		return nil
	})
}

// call asks a node, as who the role is.
func (a *asker) call(node ids.Node, class wire.Class, m wire.Method, req proto.Message, body []byte, answer proto.Message) (*wire.Buffer, error) {
	var bodies [][]byte
	if body != nil {
		bodies = [][]byte{body}
	}
	switch a.role {
	case unknownKey, formerNode:
		for {
			// A node cuts the connection of a peer that never says hello, sooner or
			// later: the call that is under way then is no answer.
			b, err := a.cl.Host.Call(a.w.ctx, string(node), class, m, req, bodies, answer)
			if !fault.Is(err, fault.Unreachable) || a.w.ctx.Err() != nil {
				return b, err
			}
		}
	case peer:
		return a.cl.Host.Call(a.w.ctx, string(node), class, m, req, bodies, answer)
	}
	return a.cl.Call(a.w.ctx, node, class, m, req, bodies, answer)
}

// ask is call for what answers without a body.
func (a *asker) ask(class wire.Class, m wire.Method, req, answer proto.Message) error {
	b, err := a.call(a.w.node, class, m, req, nil, answer)
	b.Release()
	return err
}

// operate runs one operation at the active of a slice, once that is ready.
func (a *asker) operate(slice ids.Slice, op *pb.Operation, tickets []*pb.Ticket) (*pb.Result, error) {
	a.number++
	op.TimeNs = 7
	req := &pb.OperateRequest{Slice: uint32(slice), Number: a.number, Lowest: a.number, Unsent: true, Principal: a.principal, Operation: op, Tickets: tickets}
	var answer pb.OperateResponse
	var err error
	servertest.Await(a.w.ctx, a.w, fmt.Sprintf("slice %d to take operations", slice), func() error {
		node := a.w.node
		if slice != ids.RootSlice {
			node = a.w.c.Active(slice).ID()
		}
		answer.Reset()
		_, err = a.call(node, wire.Operation, method.Operate, req, nil, &answer)
		if err == nil && answer.Refusal != nil && fault.Kind(answer.Refusal.Kind) == fault.NotActive {
			return fmt.Errorf("%s: refused: %v", a.role, answer.Refusal)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if answer.Refusal != nil {
		a.w.Fatalf("%s: refused: %v", a.role, answer.Refusal)
	}
	return answer.Result, kind(answer.Result.Kind)
}

func kind(k uint32) error {
	if k == 0 {
		return nil
	}
	return fault.E(fault.Kind(k), "", "", "the answer")
}

func (a *asker) header(ticket []byte) *pb.ReadHeader {
	return &pb.ReadHeader{Slice: 1, Principal: a.principal, Ticket: ticket, Session: a.session}
}

// must runs an operation as root.
func (w *world) must(slice ids.Slice, op *pb.Operation) *pb.Result {
	w.Helper()
	r, err := w.askers[admin].operate(slice, op, nil)
	if err != nil {
		w.Fatalf("%v: %v", op, err)
	}
	return r
}

// fresh makes bob a directory and a file.
func (w *world) fresh(name string) *bobs {
	w.Helper()
	x := &bobs{body: make([]byte, 8<<10)}
	copy(x.body, name)
	uid, mode := uint32(1001), uint32(0o700)
	own := func(o uint64) {
		w.must(1, &pb.Operation{Op: &pb.Operation_SetAttr{SetAttr: &pb.SetAttr{Object: o, Uid: &uid, Gid: &uid}}})
	}
	x.dir = w.must(1, makeDir(name, mode)).Attr.Object
	x.file = w.must(1, &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{Dir: x.dir, Name: []byte("file"), Mode: tree.TypeRegular | 0o600}}}).Attr.Object
	x.chunk = chunk.Sum(x.body)
	var put pb.PutResponse
	_, err := w.askers[admin].call(w.node, wire.Chunk, method.Put, &pb.PutRequest{Slice: 1, Addresses: x.chunk[:], Sizes: []uint32{uint32(len(x.body))}}, x.body, &put)
	if err != nil {
		w.Fatal(err)
	}
	r := w.must(1, commitOf(x, nil))
	x.root, x.height = chunk.Address(r.Attr.Content.Root), r.Attr.Content.Height
	own(x.file)
	own(x.dir)
	return x
}

// commitOf makes bob's chunk the content of his file.
func commitOf(x *bobs, owned []byte) *pb.Operation {
	return &pb.Operation{Op: &pb.Operation_Commit{Commit: &pb.Commit{Object: x.file, Extents: []*pb.Extent{{Length: uint64(len(x.body)),
		Source: &pb.Extent_Chunk{Chunk: x.chunk[:]}, ChunkSize: uint32(len(x.body)), Owned: owned}}}}}
}

// look looks the directory and the file up from the root, as far as the role
// gets, and keeps the tickets that come with it.
func (a *asker) look(x *bobs, name string) {
	var found pb.ResolveResponse
	err := a.ask(wire.Operation, method.Resolve, &pb.ResolveRequest{Header: a.header(nil), Dir: uint64(ids.RootObject),
		Names: [][]byte{[]byte(name), []byte("file")}, Content: true}, &found)
	if err != nil {
		return
	}
	x.tickets, x.readable = nil, nil
	for _, s := range found.Steps {
		if t := s.GetAttr().GetTicket(); t != nil {
			x.tickets = append(x.tickets, &pb.Ticket{Object: s.Object, Ticket: t})
		}
		if t := s.GetAttr().GetContent().GetTicket(); t != nil {
			x.readable = t
		}
	}
}

func TestAccess_EveryRoleGetsWhatItMay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rows := slices.Concat(methodRows(), operationRows(), batchRows())
	listed := map[wire.Method]bool{}
	for _, r := range rows {
		listed[r.method] = true
	}
	for _, m := range w.c.Nodes[0].Server().Methods() {
		if !listed[m] {
			t.Errorf("method %d (%s) has no row in the table", m, method.Name(m))
		}
	}
	kinds := (&pb.Operation{}).ProtoReflect().Descriptor().Oneofs().Get(0).Fields()
	for i := range kinds.Len() {
		name := string(kinds.Get(i).Name())
		if !hasRow(rows, name) {
			t.Errorf("operation %s has no row in the table", name)
		}
	}
	for _, row := range rows {
		for _, r := range roles {
			t.Run(row.name+"/"+string(r), func(t *testing.T) {
				a := w.askers[r]
				name := strings.ReplaceAll(row.name+" "+string(r), " ", "-")
				x := w.fresh(name)
				a.look(x, name)
				want, ok := row.want[r]
				if !ok {
					t.Fatalf("the row says nothing of a %s", r)
				}
				if err := row.call(a, x); fault.KindOf(err) != want {
					t.Errorf("got %v, want %v", err, want)
				}
			})
		}
	}
}

func hasRow(rows []accessRow, operation string) bool {
	for _, r := range rows {
		if r.method == method.Operate && r.name == operation {
			return true
		}
	}
	return false
}

func TestAccess_ReadTicketIsOfOneVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, secret := w.askers[noRight], w.fresh("secret")
	mine := w.fresh("mine")
	uid := uint32(1000)
	for _, o := range []uint64{mine.dir, mine.file} {
		w.must(1, &pb.Operation{Op: &pb.Operation_SetAttr{SetAttr: &pb.SetAttr{Object: o, Uid: &uid}}})
	}
	if ann.look(mine, "mine"); mine.readable == nil {
		t.Fatal("ann gets no ticket to read her own file")
	}
	if err := gets(ann, mine); err != nil {
		t.Errorf("her own chunk: %v", err)
	}
	mine.chunk = secret.chunk
	if err := gets(ann, mine); !fault.Is(err, refused) {
		t.Errorf("bob's chunk: got %v, want %v", err, refused)
	}
	mine.root = secret.root
	if err := gets(ann, mine); !fault.Is(err, refused) {
		t.Errorf("bob's chunk and root: got %v, want %v", err, refused)
	}
}

func TestAccess_ObjectWithoutATicketIsSoughtFromRoot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x, y := w.fresh("x"), w.fresh("y")
	stat := func(a *asker, o uint64) error {
		return a.ask(wire.Operation, method.GetAttr, &pb.GetAttrRequest{Header: a.header(nil), Object: o}, &pb.GetAttrResponse{})
	}
	if err := stat(w.askers[withRight], x.file); err != nil {
		t.Errorf("bob, who may search its directory: %v", err)
	}
	if err := stat(w.askers[noRight], x.file); !fault.Is(err, refused) {
		t.Errorf("ann, who may not: got %v, want %v", err, refused)
	}
	// A directory of the other slice, below one of bob's in the root's.
	w.askers[withRight].look(y, "y")
	far, err := w.askers[withRight].operate(w.other.ID, &pb.Operation{Op: &pb.Operation_MakeObject{MakeObject: &pb.MakeObject{Mode: tree.TypeDir | 0o777, Parent: y.dir}}}, y.tickets)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.askers[withRight].operate(1, &pb.Operation{Op: &pb.Operation_LinkName{LinkName: &pb.LinkName{Dir: y.dir, Name: []byte("far"), Mode: tree.TypeDir,
		Object: far.Attr.Object, Made: far.Made}}}, y.tickets)
	if err != nil {
		t.Fatal(err)
	}
	for r, want := range map[role]fault.Kind{withRight: done, noRight: refused} {
		a := w.askers[r]
		_, err := a.operate(w.other.ID, &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{Dir: far.Attr.Object, Name: []byte("f"), Mode: tree.TypeRegular | 0o600}}}, nil)
		if fault.KindOf(err) != want {
			t.Errorf("a file made by %s in a directory of another slice: got %v, want %v", r, err, want)
		}
	}
}
