package server_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// holder sends creates of write-once files to the members of the root's slice, as a
// client does.
type holder struct {
	*servertest.Client
	t      *testing.T
	ctx    context.Context
	c      *servertest.Cluster
	row    geoconfig.SliceRow
	number uint64
}

// newHolder starts a cluster, and connects a client whose registration all members have.
func newHolder(t *testing.T, configure func(int, *server.Config)) *holder {
	t.Helper()
	c := servertest.Start(t, servertest.Options{Configure: configure, Log: testing.Verbose()})
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	awaitWhole(ctx, t, c)
	h := &holder{Client: c.Connect("root"), t: t, ctx: ctx, c: c, number: 1}
	do(ctx, t, h.Client, ids.RootSlice, create(fmt.Sprint("first of ", h.ID))) // its number is 1
	var err error
	if h.row, err = c.Row(ctx, ids.RootSlice); err != nil {
		t.Fatal(err)
	}
	return h
}

// once is the create of a write-once file with some content.
func once(name string, content []byte) *pb.Operation {
	op := create(name)
	c := op.GetCreate()
	c.Exclusive, c.Cues = true, &pb.Cues{WriteOnce: true}
	c.Commit = &pb.Commit{Seal: true, Extents: []*pb.Extent{{Length: uint64(len(content)), Source: &pb.Extent_BodyOffset{}}}}
	return op
}

// request makes a request of a create under a new number.
func (h *holder) request(name string, content []byte) *pb.OperateRequest {
	h.number++
	return &pb.OperateRequest{Slice: uint32(ids.RootSlice), Epoch: uint64(h.row.Epoch), Client: h.ID, Number: h.number, Lowest: h.number,
		Operation: once(name, content), Principal: &pb.Principal{}, Held: true, Early: true}
}

// send sends a request to a node.
func (h *holder) send(to ids.Node, m wire.Method, req *pb.OperateRequest, content []byte) (*pb.OperateResponse, error) {
	answer := &pb.OperateResponse{}
	b, err := h.Call(h.ctx, to, wire.Operation, m, req, [][]byte{content}, answer)
	b.Release()
	return answer, err
}

// hold has all standbys keep a create.
func (h *holder) hold(req *pb.OperateRequest, content []byte) {
	h.t.Helper()
	for _, n := range h.row.Normals() {
		if n == h.row.Active {
			continue
		}
		if answer, err := h.send(n, method.Hold, req, content); err != nil || !answer.Early {
			h.t.Fatalf("a standby does not keep the create: %v %v", answer, err)
		}
	}
}

// cut has the active send no entries to the others, until the function it returns is
// called. Its lease goes on.
func (h *holder) cut() (mend func()) {
	host := h.c.Active(ids.RootSlice).Server().Host()
	host.SetFilter(func(_ string, _ wire.Class, m wire.Method) wire.Verdict {
		return wire.Verdict{Drop: m == method.Replica}
	})
	return func() { host.SetFilter(nil) }
}

// look reads a name at a node. found tells whether it means something, and counts only
// without an error.
func (h *holder) look(ctx context.Context, at ids.Node, name string) (found bool, err error) {
	var answer pb.ResolveResponse
	b, err := h.Call(ctx, at, wire.Operation, method.Resolve, &pb.ResolveRequest{Header: &pb.ReadHeader{Slice: 1, Principal: &pb.Principal{}},
		Dir: uint64(ids.RootObject), Names: [][]byte{[]byte(name)}}, nil, &answer)
	b.Release()
	switch {
	case err != nil:
		return false, err
	case answer.Refusal != nil:
		return false, fault.E(fault.Kind(answer.Refusal.Kind), "", "", answer.Refusal.Message)
	}
	return answer.Steps[0].Kind == 0, nil
}

// first asks the nodes about a name until one of them answers for the slice.
func (h *holder) first(name string, nodes ...*servertest.Node) (found bool) {
	h.t.Helper()
	servertest.Await(h.ctx, h.t, "an answer about "+name, func() (err error) {
		for _, n := range nodes {
			ctx, cancel := context.WithTimeout(h.ctx, 2*time.Second)
			found, err = h.look(ctx, n.ID(), name)
			cancel()
			if err == nil {
				return nil
			}
		}
		return err
	})
	return found
}

// others are the nodes beside one.
func others(c *servertest.Cluster, but *servertest.Node) (out []*servertest.Node) {
	for _, n := range c.Nodes {
		if n != but {
			out = append(out, n)
		}
	}
	return out
}

// TestHold_ACreateOutlivesItsActive has all members keep a create that the active sends
// to none of them, and kills the active. The first answer of the next one is that the
// file is there. What is deleted then stays away, whoever acts.
func TestHold_ACreateOutlivesItsActive(t *testing.T) {
	t.Parallel()
	h := newHolder(t, quick)
	active := h.c.Active(ids.RootSlice)
	h.cut()
	content := []byte("a letter")
	for i := range 20 {
		req := h.request(fmt.Sprint("file", i), content)
		if answer, err := h.send(active.ID(), method.Operate, req, content); err != nil || !answer.Early || answer.Result.GetAttr() != nil {
			t.Fatalf("the active answers %v %v, want an early answer without attributes", answer, err)
		}
		h.hold(req, content)
	}
	active.Kill()
	for i := range 20 {
		if !h.first(fmt.Sprint("file", i), others(h.c, active)...) {
			t.Fatalf("file%d is lost", i)
		}
	}
	cl := h.c.Connect("root")
	do(h.ctx, t, cl, ids.RootSlice, unlink(ids.RootObject, "file7"))
	active.Start()
	awaitWhole(h.ctx, t, h.c)
	next := h.c.Active(ids.RootSlice)
	next.Kill()
	if h.first("file7", others(h.c, next)...) {
		t.Error("what was deleted is there again")
	}
	if !h.first("file8", others(h.c, next)...) {
		t.Error("file8 is lost")
	}
}

// TestHold_ARefusalIsRemembered has all standbys keep a create that the active refuses,
// since there is such a name. The name is removed, and the active killed: the refused
// create does not come up.
func TestHold_ARefusalIsRemembered(t *testing.T) {
	t.Parallel()
	h := newHolder(t, quick)
	cl := h.c.Connect("root")
	do(h.ctx, t, cl, ids.RootSlice, create("taken"))
	content := []byte("another letter")
	req := h.request("taken", content)
	h.hold(req, content)
	active := h.c.Active(ids.RootSlice)
	for range 2 { // sent again it is the same
		if answer, err := h.send(active.ID(), method.Operate, req, content); err != nil || answer.Early || fault.Kind(answer.Result.GetKind()) != fault.Exists {
			t.Fatalf("the active answers %v %v, want Exists", answer, err)
		}
	}
	do(h.ctx, t, cl, ids.RootSlice, unlink(ids.RootObject, "taken"))
	active.Kill()
	if h.first("taken", others(h.c, active)...) {
		t.Error("the file is there that was refused")
	}
}

// TestHold_ReadsShowWhatWasAnswered reads a name that was answered early, and that no
// other member has in its log. The active does not say that there is none.
func TestHold_ReadsShowWhatWasAnswered(t *testing.T) {
	t.Parallel()
	h := newHolder(t, nil)
	active := h.c.Active(ids.RootSlice)
	mend := h.cut()
	content := []byte("a letter")
	if answer, err := h.send(active.ID(), method.Operate, h.request("file", content), content); err != nil || !answer.Early {
		t.Fatalf("the active answers %v %v, want an early answer", answer, err)
	}
	short, end := context.WithTimeout(h.ctx, 300*time.Millisecond)
	if found, err := h.look(short, active.ID(), "file"); err == nil {
		t.Errorf("before it is committed a read answers that the file is there: %v", found)
	}
	end()
	mend()
	if !h.first("file", active) {
		t.Error("the file is not there once it is committed")
	}
}

// TestHold_WaitsForWhatItCountsOn creates a file under a name whose removal is on its
// way. The create is not answered early: if the removal were lost, so would it be.
func TestHold_WaitsForWhatItCountsOn(t *testing.T) {
	t.Parallel()
	h := newHolder(t, nil)
	do(h.ctx, t, h.c.Connect("root"), ids.RootSlice, create("name"))
	active := h.c.Active(ids.RootSlice)
	mend := h.cut()
	content := []byte("a letter")
	h.number++
	removal := &pb.OperateRequest{Slice: uint32(ids.RootSlice), Epoch: uint64(h.row.Epoch), Client: h.ID, Number: h.number, Lowest: h.number,
		Operation: unlink(ids.RootObject, "name"), Principal: &pb.Principal{}}
	behind := h.request("name", content)
	whole := h.ctx
	for _, req := range []*pb.OperateRequest{removal, behind} { // one connection brings them in this order
		short, end := context.WithTimeout(whole, 300*time.Millisecond)
		h.ctx = short
		if answer, err := h.send(active.ID(), method.Operate, req, content); !fault.Is(err, fault.TimedOut) {
			t.Errorf("operation %d: got %v %v, want no answer while nothing is committed", req.Number, answer, err)
		}
		end()
	}
	h.ctx = whole
	if answer, err := h.send(active.ID(), method.Operate, h.request("third", content), content); err != nil || !answer.Early {
		t.Errorf("a create under another name is answered %v %v, want an early answer", answer, err)
	}
	mend()
	if answer, err := h.send(active.ID(), method.Operate, behind, content); err != nil || answer.Result.GetKind() != 0 || answer.Result.GetAttr() == nil {
		t.Errorf("once all is committed: got %v %v, want the file", answer, err)
	}
}

// TestHold_TheActiveDoesWhatItNeverHeardOf has a standby keep a create that its client
// sends to nobody else. After a while the active does it, and the standby forgets it.
func TestHold_TheActiveDoesWhatItNeverHeardOf(t *testing.T) {
	t.Parallel()
	h := newHolder(t, nil)
	active := h.c.Active(ids.RootSlice)
	standby := others(h.c, active)[0]
	content := []byte("a letter")
	if answer, err := h.send(standby.ID(), method.Hold, h.request("file", content), content); err != nil || !answer.Early {
		t.Fatalf("the standby answers %v %v", answer, err)
	}
	if n := standby.Server().Pending(); n != 1 {
		t.Errorf("the standby keeps %d creates, want 1", n)
	}
	servertest.Await(h.ctx, t, "the file", func() error {
		if !h.first("file", active) {
			return fmt.Errorf("it is not there")
		}
		if n := standby.Server().Pending(); n != 0 {
			return fmt.Errorf("the standby keeps %d creates", n)
		}
		return nil
	})
}

// TestHold_RefusesWhatItMayNotKeep sends creates to nodes that must not keep them.
func TestHold_RefusesWhatItMayNotKeep(t *testing.T) {
	t.Parallel()
	h := newHolder(t, nil)
	active := h.c.Active(ids.RootSlice)
	standby := others(h.c, active)[0]
	content := []byte("a letter")
	for name, x := range map[string]struct {
		at     *servertest.Node
		change func(*pb.OperateRequest)
		want   fault.Kind
	}{
		"at the active":               {active, func(*pb.OperateRequest) {}, fault.WrongEpoch},
		"of a later epoch":            {standby, func(r *pb.OperateRequest) { r.Epoch++ }, fault.WrongEpoch},
		"of no epoch":                 {standby, func(r *pb.OperateRequest) { r.Epoch = 0 }, fault.Invalid},
		"of another client":           {standby, func(r *pb.OperateRequest) { r.Client++ }, fault.Unauthorized},
		"that acknowledges below all": {standby, func(r *pb.OperateRequest) { r.SyncLevel = 1 }, fault.Invalid},
		"that is not sealed":          {standby, func(r *pb.OperateRequest) { r.Operation.GetCreate().Commit.Seal = false }, fault.Invalid},
		"that may find a file":        {standby, func(r *pb.OperateRequest) { r.Operation.GetCreate().Exclusive = false }, fault.Invalid},
		"that is a removal":           {standby, func(r *pb.OperateRequest) { r.Operation = unlink(ids.RootObject, "x") }, fault.Invalid},
		"whose content is elsewhere": {standby, func(r *pb.OperateRequest) {
			r.Operation.GetCreate().Commit.Extents[0].Source = &pb.Extent_Chunk{Chunk: make([]byte, 32)}
		}, fault.Invalid},
	} {
		req := h.request("file", content)
		x.change(req)
		if answer, err := h.send(x.at.ID(), method.Hold, req, content); !fault.Is(err, x.want) {
			t.Errorf("a create %s: got %v %v, want %v", name, answer, err, x.want)
		}
	}
	for _, n := range h.c.Nodes {
		if k := n.Server().Pending(); k != 0 {
			t.Errorf("node %d keeps %d creates", n.Index, k)
		}
	}
}
