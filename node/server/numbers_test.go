package server_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// pair is two clients with a session each at the root's active, and a file on
// which the first has a lease.
type pair struct {
	ctx     context.Context
	node    ids.Node
	a, b    *servertest.Client
	session uint64 // a's
	file    uint64
	revoked atomic.Int32 // revocations that a got
}

func newPair(t *testing.T) *pair {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Log: testing.Verbose()})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	p := &pair{ctx: ctx, node: c.Active(ids.RootSlice).ID(), a: c.Connect("root"), b: c.Connect("root")}
	p.a.Revoked = func(*pb.RevokeRequest) *pb.RevokeResponse {
		p.revoked.Add(1)
		return &pb.RevokeResponse{}
	}
	made, err := p.a.Operate(ctx, ids.RootSlice, create("file"), nil)
	if err != nil || made.Kind != 0 {
		t.Fatalf("create: %v %v", made, err)
	}
	p.file = made.Attr.Object
	opened, err := p.a.Session(ctx, p.node)
	if err != nil {
		t.Fatal(err)
	}
	p.session = opened.Session
	if _, err := p.b.Session(ctx, p.node); err != nil {
		t.Fatal(err)
	}
	if g := p.getattr(t, p.a, p.session); len(g) != 1 || g[0].Session != p.session {
		t.Fatalf("a's grants: %v, want one for session %d", g, p.session)
	}
	return p
}

func (p *pair) getattr(t *testing.T, as *servertest.Client, session uint64) []*pb.Grant {
	t.Helper()
	var answer pb.GetAttrResponse
	_, err := as.Call(p.ctx, p.node, wire.Operation, method.GetAttr, &pb.GetAttrRequest{
		Header: &pb.ReadHeader{Slice: uint32(ids.RootSlice), Session: session}, Object: p.file}, nil, &answer)
	if err != nil || answer.Refusal != nil {
		t.Fatalf("getattr: %v %v", err, answer.Refusal)
	}
	return answer.Grants
}

func (p *pair) operate(as *servertest.Client, req *pb.OperateRequest) (*pb.OperateResponse, error) {
	var answer pb.OperateResponse
	_, err := as.Call(p.ctx, p.node, wire.Operation, method.Operate, req, [][]byte{make([]byte, 8)}, &answer)
	return &answer, err
}

func TestForeignSession_SparesNoRevocation(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	answer, err := p.operate(p.b, &pb.OperateRequest{Slice: 1, Client: p.b.ID, Number: 1, Lowest: 1, Session: p.session, Operation: commit(p.file, 8)})
	if err != nil || answer.Result.GetKind() != 0 {
		t.Fatalf("b's write: %v %v", answer, err)
	}
	if p.revoked.Load() == 0 {
		t.Error("b wrote under a's session number, and a's lease was not revoked")
	}
}

func TestForeignSession_GetsNoLease(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	if g := p.getattr(t, p.b, p.session); len(g) != 0 {
		t.Errorf("b asked under a's session number and got %v", g)
	}
}

func TestForeignClient_NumberIsRefused(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	lock := &pb.Lock{Object: p.file, Owner: 1, Flock: true, End: ^uint64(0), Type: 1}
	var locked pb.LockResponse
	servertest.Await(p.ctx, t, "a's lock", func() error { // the claims of before are waited for
		_, err := p.a.Call(p.ctx, p.node, wire.Operation, method.Lock, &pb.LockRequest{Slice: 1, Client: p.a.ID, Session: p.session, Lock: lock}, nil, &locked)
		if err == nil && !locked.Granted {
			err = errors.New("not granted")
		}
		if kept, e := p.a.Session(p.ctx, p.node); e != nil || kept.Session != p.session {
			t.Fatalf("a's session lapsed: %v %v", kept, e)
		}
		return err
	})
	wrong := func(what string, err error) {
		t.Helper()
		if !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%s with a's number: got %v, want Unauthorized", what, err)
		}
	}
	_, err := p.operate(p.b, &pb.OperateRequest{Slice: 1, Client: p.a.ID, Number: 9, Lowest: 9, Operation: commit(p.file, 8)})
	wrong("an operation", err)
	for _, release := range []bool{false, true} {
		held, err := p.operate(p.b, &pb.OperateRequest{Slice: 1, Client: p.b.ID, Number: 1, Lowest: 1, Operation: &pb.Operation{
			Op: &pb.Operation_Hold{Hold: &pb.Hold{Object: p.file, Client: p.a.ID, Release: release}}}})
		if got := fault.Kind(held.GetResult().GetKind()); err != nil || got != fault.Permission {
			t.Errorf("holding under a's number, release %v: got %v, %v, want Permission", release, held, err)
		}
	}
	free := &pb.Lock{Object: p.file, Owner: 1, Flock: true, End: ^uint64(0), Type: 2}
	_, err = p.b.Call(p.ctx, p.node, wire.Operation, method.Lock, &pb.LockRequest{Slice: 1, Client: p.a.ID, Session: p.session, Lock: free}, nil, &pb.LockResponse{})
	wrong("an unlock", err)
	_, err = p.b.Call(p.ctx, p.node, wire.Operation, method.Claim, &pb.ClaimRequest{Slice: 1, Client: p.a.ID, Session: p.session}, nil, &pb.ClaimResponse{})
	wrong("a claim", err)
	_, err = p.b.Call(p.ctx, p.node, wire.Beacon, method.KeepAlive, &pb.KeepAliveRequest{Session: p.session, Client: p.a.ID, Close: true}, nil, &pb.KeepAliveResponse{})
	wrong("closing the session", err)
	if kept, err := p.a.Session(p.ctx, p.node); err != nil || kept.Session != p.session {
		t.Errorf("a's session: got %v, %v; want it kept as %d", kept, err, p.session)
	}
	// The lock stands: b cannot have it.
	opened, err := p.b.Session(p.ctx, p.node)
	if err != nil {
		t.Fatal(err)
	}
	var tried pb.LockResponse
	_, err = p.b.Call(p.ctx, p.node, wire.Operation, method.Lock, &pb.LockRequest{Slice: 1, Client: p.b.ID, Session: opened.Session, Lock: lock}, nil, &tried)
	if err != nil || tried.Granted {
		t.Errorf("b's lock: %v %v, want it not granted", &tried, err)
	}
}

func TestForeignClient_HelloIsRefused(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	a, b := c.Connect("root"), c.Connect("ann")
	b.ID = a.ID
	if _, err := b.Session(ctx, c.Nodes[0].ID()); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("got %v, want Unauthorized", err)
	}
}

// TestRegister_BehindNumbersThatWereRefused sends an operation of a client that is
// not registered, under a number that is not its first. A young operation was
// never run, so the node registers the client and runs it. An old one may have been
// run, and the node refuses it.
func TestRegister_BehindNumbersThatWereRefused(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for _, c := range []struct {
		age  time.Duration
		want fault.Kind
	}{{0, fault.Expired}, {time.Hour, fault.Expired}, {time.Second, fault.None}} {
		a, err := p.operate(p.b, &pb.OperateRequest{Slice: 1, Client: p.b.ID, Number: 5, Lowest: 3, AgeNs: uint64(c.age),
			Principal: &pb.Principal{}, Operation: create("young")})
		if got := fault.KindOf(err); got != c.want || err == nil && a.GetResult().GetKind() != 0 {
			t.Errorf("sent first %v ago: got %v, %v; want %v", c.age, a, err, c.want)
		}
	}
}
