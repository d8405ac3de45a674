package server_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// locker is a client that locks the root directory at one node.
type locker struct {
	*servertest.Client
	node ids.Node
}

// session opens or prolongs the session, and returns its number.
func (l locker) session(ctx context.Context, t *testing.T) uint64 {
	t.Helper()
	a, err := l.Session(ctx, l.node)
	if err != nil {
		t.Fatal(err)
	}
	return a.Session
}

// ask asks for a lock, or with kind 2 gives it up.
func (l locker) ask(ctx context.Context, session, owner uint64, kind uint32, wait bool) (*pb.LockResponse, error) {
	answer := &pb.LockResponse{}
	_, err := l.Call(ctx, l.node, wire.Operation, method.Lock, &pb.LockRequest{Slice: uint32(ids.RootSlice), Client: l.ID, Session: session, Wait: wait,
		Lock: &pb.Lock{Object: uint64(ids.RootObject), Owner: owner, Flock: true, Type: kind}}, nil, answer)
	return answer, err
}

// hold keeps a session alive until the test ends.
func (l locker) hold(ctx context.Context, t *testing.T) {
	ctx, end := context.WithCancel(ctx)
	var all sync.WaitGroup
	t.Cleanup(func() { end(); all.Wait() })
	all.Go(func() {
		tick := time.NewTicker(quickLease / 5)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				_, _ = l.Session(ctx, l.node) // the test sees it where that matters
			}
		}
	})
}

// first takes the first lock of a test, once a new active grants any.
func (l locker) first(ctx context.Context, t *testing.T) (session uint64) {
	t.Helper()
	servertest.Await(ctx, t, "the first lock", func() error {
		session = l.session(ctx, t)
		a, err := l.ask(ctx, session, 1, 1, false)
		if err == nil && !a.Granted {
			err = fmt.Errorf("not granted: %v", a)
		}
		return err
	})
	return session
}

func (l locker) resolve(ctx context.Context) error {
	_, err := l.Call(ctx, l.node, wire.Operation, method.Resolve, &pb.ResolveRequest{Header: &pb.ReadHeader{Slice: 1, Principal: &pb.Principal{}},
		Dir: uint64(ids.RootObject), Names: [][]byte{[]byte("missing")}}, nil, &pb.ResolveResponse{})
	return err
}

func TestYield_LockWaitersTakeNoWorker(t *testing.T) {
	t.Parallel()
	// No session may lapse while a busy machine goes through all that wait.
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Configure: func(i int, c *server.Config) {
		c.Lease, c.Session = quickLease, 5*quickLease
		fewWorkers(i, c)
	}})
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	holder, many := locker{c.Connect("root"), c.Nodes[0].ID()}, locker{c.Connect("root"), c.Nodes[0].ID()}
	first := holder.first(ctx, t)
	holder.hold(ctx, t)
	session := many.session(ctx, t)
	many.hold(ctx, t)
	const waiters = 300
	var turn, most int
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range waiters {
		all.Go(func() {
			if a, err := many.ask(ctx, session, uint64(10+i), 1, true); err != nil || !a.Granted {
				t.Errorf("waiter %d: %v, %v", i, a, err)
				return
			}
			mu.Lock()
			turn++
			most = max(most, turn)
			mu.Unlock()
			if err := many.resolve(ctx); err != nil {
				t.Error(err)
			}
			mu.Lock()
			turn--
			mu.Unlock()
			if _, err := many.ask(ctx, session, uint64(10+i), 2, false); err != nil {
				t.Error(err)
			}
		})
	}
	servertest.Await(ctx, t, "all to wait", func() error {
		if held, waiting := c.Nodes[0].Server().Locks(); held != 1 || waiting != waiters {
			return fmt.Errorf("%d are held, %d waited for", held, waiting)
		}
		return nil
	})
	for range 10 {
		if err := many.resolve(ctx); err != nil {
			t.Fatalf("a reader beside %d waiters: %v", waiters, err)
		}
	}
	if _, err := holder.ask(ctx, first, 1, 2, false); err != nil {
		t.Fatalf("the unlock: %v", err)
	}
	all.Wait()
	if most != 1 {
		t.Errorf("%d had the lock at once", most)
	}
}

func TestLock_WaiterHearsThatItsSessionEnded(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Configure: quick})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	holder, waiter := locker{c.Connect("root"), c.Nodes[0].ID()}, locker{c.Connect("root"), c.Nodes[0].ID()}
	first := holder.first(ctx, t)
	holder.hold(ctx, t)
	lapses := waiter.session(ctx, t) // and is not kept alive; the connection is
	if a, err := waiter.ask(ctx, lapses, 2, 1, true); !fault.Is(err, fault.Expired) {
		t.Fatalf("a waiter whose session has ended: got %v, %v; want Expired", a, err)
	}
	again := waiter.session(ctx, t)
	waiter.hold(ctx, t)
	granted := make(chan error, 1)
	go func() {
		a, err := waiter.ask(ctx, again, 2, 1, true)
		if err == nil && !a.Granted {
			err = fmt.Errorf("not granted: %v", a)
		}
		granted <- err
	}()
	if _, err := holder.ask(ctx, first, 1, 2, false); err != nil {
		t.Fatal(err)
	}
	if err := <-granted; err != nil {
		t.Errorf("asked anew: %v", err)
	}
}

func TestLock_NewSessionHasNoneOfTheFormer(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Configure: quick})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	former, other := locker{c.Connect("root"), c.Nodes[0].ID()}, locker{c.Connect("root"), c.Nodes[0].ID()}
	former.first(ctx, t)
	// The client believes that its session is over, and opens another one at
	// once; from then on it is alive without a break.
	anew := &pb.KeepAliveResponse{}
	if _, err := former.Call(ctx, former.node, wire.Beacon, method.KeepAlive, &pb.KeepAliveRequest{Client: former.ID}, nil, anew); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	ended, end := context.WithCancel(ctx)
	defer func() { end(); all.Wait() }()
	all.Go(func() {
		for tick := time.NewTicker(quickLease / 5); ended.Err() == nil; <-tick.C {
			_, _ = former.Call(ended, former.node, wire.Beacon, method.KeepAlive, &pb.KeepAliveRequest{Session: anew.Session, Client: former.ID}, nil, &pb.KeepAliveResponse{})
		}
	})
	mine := other.session(ctx, t)
	other.hold(ctx, t)
	if a, err := other.ask(ctx, mine, 1, 1, true); err != nil || !a.Granted {
		t.Errorf("a lock whose session is over: %v, %v", a, err)
	}
}

func TestLock_WriteFromBeforeItsLossFails(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Configure: quick})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	node := c.Nodes[0].ID()
	holder, reader, other := locker{c.Connect("root"), node}, locker{c.Connect("root"), node}, locker{c.Connect("root"), node}
	made, err := holder.Operate(ctx, ids.RootSlice, create("locked"), nil)
	if err != nil || made.Kind != 0 {
		t.Fatalf("create: %v, %v", made, err)
	}
	object := made.Attr.Object
	lock := func(l locker, session uint64) (*pb.LockResponse, error) {
		answer := &pb.LockResponse{}
		_, err := l.Call(ctx, node, wire.Operation, method.Lock, &pb.LockRequest{Slice: 1, Client: l.ID, Session: session, Wait: true,
			Lock: &pb.Lock{Object: object, Owner: 1, Flock: true, Type: 1}}, nil, answer)
		return answer, err
	}
	// The reader has a lease and answers no revocation until its session ends,
	// which is after the holder's.
	asked := make(chan struct{})
	var once sync.Once
	reader.Revoked = func(*pb.RevokeRequest) *pb.RevokeResponse {
		once.Do(func() { close(asked) })
		<-ctx.Done()
		return nil
	}
	holder.first(ctx, t) // of the directory
	session := holder.session(ctx, t)
	if a, err := lock(holder, session); err != nil || !a.Granted {
		t.Fatalf("the lock: %v, %v", a, err)
	}
	reads := reader.session(ctx, t)
	leased := &pb.GetAttrResponse{}
	if _, err := reader.Call(ctx, node, wire.Operation, method.GetAttr, &pb.GetAttrRequest{Header: &pb.ReadHeader{Slice: 1, Session: reads, Client: reader.ID}, Object: object}, nil, leased); err != nil || len(leased.Grants) == 0 {
		t.Fatalf("the lease: %v, %v", leased, err)
	}
	written := make(chan error, 1)
	go func() {
		answer := &pb.OperateResponse{}
		_, err := holder.Call(ctx, node, wire.Operation, method.Operate, &pb.OperateRequest{Slice: 1, Client: holder.ID, Number: 2, Lowest: 2, Session: session,
			Operation: commit(object, 3), Principal: &pb.Principal{}}, [][]byte{[]byte("old")}, answer)
		if err == nil {
			err = fmt.Errorf("it was ordered: %v", answer)
		}
		written <- err
	}()
	<-asked // the write waits for the reader
	mine := other.session(ctx, t)
	other.hold(ctx, t)
	if a, err := lock(other, mine); err != nil || !a.Granted {
		t.Fatalf("the lock of a client that is gone: %v, %v", a, err)
	}
	if err := <-written; !fault.Is(err, fault.LostLock) {
		t.Errorf("a write of the former holder, after another has the lock: got %v, want LostLock", err)
	}
	answer := &pb.OperateResponse{}
	_, err = holder.Call(ctx, node, wire.Operation, method.Operate, &pb.OperateRequest{Slice: 1, Client: holder.ID, Number: 3, Lowest: 3, Session: holder.session(ctx, t),
		Operation: commit(object, 3), Principal: &pb.Principal{}}, [][]byte{[]byte("new")}, answer)
	if err != nil || answer.Result.GetKind() != 0 {
		t.Errorf("a write of the same client under its next session: %v, %v", answer, err)
	}
}

// TestLock_IsNotGrantedWithoutTheLease ends a holder's session while the
// active's lease has lapsed: the next waiter comes first in the table, but a
// successor may give the lock to another client, so that the waiter must not
// hear that it has the lock.
func TestLock_IsNotGrantedWithoutTheLease(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Configure: func(_ int, c *server.Config) { c.Lease, c.Session = quickLease, 5*time.Second }})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	active := c.Active(ids.RootSlice)
	holder, waiter := locker{c.Connect("root"), active.ID()}, locker{c.Connect("root"), active.ID()}
	first := holder.first(ctx, t)
	holder.hold(ctx, t)
	session := waiter.session(ctx, t)
	waiter.hold(ctx, t)
	type answer struct {
		*pb.LockResponse
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		a, err := waiter.ask(ctx, session, 2, 1, true)
		answered <- answer{a, err}
	}()
	servertest.Await(ctx, t, "the waiter", func() error {
		if _, waiting := active.Server().Locks(); waiting != 1 {
			return fmt.Errorf("%d wait", waiting)
		}
		return nil
	})
	for _, n := range c.Nodes {
		if n != active {
			n.Kill() // nobody takes over, and the active keeps its part
		}
	}
	servertest.Await(ctx, t, "the lease to lapse", func() error {
		a, err := waiter.ask(ctx, session, 3, 1, false)
		if err == nil && a.Refusal == nil {
			err = fmt.Errorf("the active still answers: %v", a)
		}
		return err
	})
	select {
	case a := <-answered:
		t.Fatalf("the waiter was answered before the lock was free: %v, %v; the test looks at nothing", a.LockResponse, a.err)
	default:
	}
	if _, err := holder.Call(ctx, active.ID(), wire.Operation, method.KeepAlive, &pb.KeepAliveRequest{Session: first, Client: holder.ID, Close: true}, nil, &pb.KeepAliveResponse{}); err != nil {
		t.Fatalf("closing the holder's session: %v", err)
	}
	if a := <-answered; a.err != nil || a.Granted || a.Refusal == nil {
		t.Errorf("the waiter was answered %v, %v, want a refusal", a.LockResponse, a.err)
	}
}
