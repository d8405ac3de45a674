package server_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// waiters are more requests than a node with fewWorkers has workers.
const waiters = 12

// besideWaiters sends requests that wait at a node until release, and wants
// another request answered meanwhile. A request that is answered with Again is
// sent anew.
func besideWaiters(t *testing.T, node ids.Node, cl *servertest.Client, m wire.Method, req proto.Message, answer func() proto.Message, release func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	var all sync.WaitGroup
	defer func() { cancel(); all.Wait() }()
	var sent, answered, turnedAway atomic.Int32
	cl.Host.SetFilter(func(_ string, _ wire.Class, of wire.Method) (v wire.Verdict) {
		if of == m {
			sent.Add(1)
		}
		return v
	})
	for range waiters {
		all.Go(func() {
			for {
				_, err := cl.Call(ctx, node, wire.Operation, m, req, nil, answer())
				if fault.Is(err, fault.Again) {
					turnedAway.Add(1)
					continue
				}
				if answered.Add(1); err != nil {
					t.Errorf("a request that waited: %v", err)
				}
				return
			}
		})
	}
	servertest.Await(ctx, t, "all requests to be sent", func() error {
		if n := sent.Load(); n < waiters {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	within, end := context.WithTimeout(ctx, 15*time.Second)
	defer end()
	servertest.Await(within, t, "an answer beside requests that wait", func() error {
		before := turnedAway.Load()
		_, err := cl.Call(within, node, wire.Operation, method.Statfs, &pb.StatfsRequest{}, nil, &pb.StatfsResponse{})
		if n := turnedAway.Load() - before; err == nil && n > 0 {
			err = fmt.Errorf("it came after %d of them were turned away", n)
		}
		return err
	})
	if n := answered.Load(); n > 0 {
		t.Errorf("%d requests did not wait: the test looks at nothing", n)
	}
	release()
	all.Wait()
}

// TestYield_ExclusiveDirectoryWaitersTakeNoWorker has readers list an exclusive
// directory whose client does not answer. They take no worker.
func TestYield_ExclusiveDirectoryWaitersTakeNoWorker(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Configure: func(i int, c *server.Config) { c.Lease, c.Session = time.Minute, 30*time.Second; fewWorkers(i, c) }})
	node := c.Nodes[0].ID()
	alone, reader := c.Connect("root"), c.Connect("root")
	answers := make(chan struct{})
	release := sync.OnceFunc(func() { close(answers) })
	t.Cleanup(release)
	alone.Revoked = func(*pb.RevokeRequest) *pb.RevokeResponse {
		<-answers
		return &pb.RevokeResponse{}
	}
	if _, err := alone.Session(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	dir := do(t.Context(), t, alone, ids.RootSlice, &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{
		Dir: uint64(ids.RootObject), Name: []byte("alone"), Mode: tree.TypeDir | 0o755, Alone: true}}}).Attr.Object
	besideWaiters(t, node, reader, method.List, &pb.ListRequest{Header: &pb.ReadHeader{Slice: 1, Principal: &pb.Principal{}}, Dir: dir},
		func() proto.Message { return &pb.ListResponse{} }, release)
}

// TestYield_IntentWaitersTakeNoWorker prepares an intent that holds a name in
// the root directory. Its readers wait, and take no worker.
func TestYield_IntentWaitersTakeNoWorker(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a", "b"}, Configure: fewWorkers})
	active := c.Active(ids.RootSlice)
	peer := c.Nodes[0]
	if peer == active {
		peer = c.Nodes[1]
	}
	intent := tree.NewIntent(ids.RootSlice+1, 5)
	step := func(phase pb.Step_Phase, detail []byte) {
		t.Helper()
		answer := &pb.OperateResponse{}
		b, err := peer.Server().Host().Call(t.Context(), string(active.ID()), wire.Operation, method.Operate, &pb.OperateRequest{Slice: 1,
			Operation: &pb.Operation{Op: &pb.Operation_Step{Step: &pb.Step{Intent: uint64(intent), Phase: phase, Detail: detail}}}}, nil, answer)
		b.Release()
		if err != nil || answer.Refusal != nil || answer.Result.GetKind() != 0 {
			t.Errorf("%v: %v, %v", phase, answer, err)
		}
	}
	lock := binary.BigEndian.AppendUint64([]byte{1}, uint64(ids.RootObject)) // one, of the name below
	step(pb.Step_PREPARE, append(lock, "\x04name"...))
	besideWaiters(t, active.ID(), c.Connect("root"), method.List, &pb.ListRequest{Header: &pb.ReadHeader{Slice: 1, Principal: &pb.Principal{}}, Dir: uint64(ids.RootObject)},
		func() proto.Message { return &pb.ListResponse{} }, func() { step(pb.Step_ABORT, nil) })
}

// gatedStore is a configuration store that changes no slice's row until the gate
// opens.
type gatedStore struct {
	geoconfig.Store
	shut atomic.Bool
	gate chan struct{}
}

func (s *gatedStore) Apply(ctx context.Context, b geoconfig.Batch) (ids.Revision, error) {
	if len(b.Slices) > 0 && s.shut.Load() {
		select {
		case <-s.gate:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return s.Store.Apply(ctx, b)
}

// TestYield_PlaceWaitersTakeNoWorker has a node make a slice while geo-config
// does not answer. The waiting calls take no worker.
func TestYield_PlaceWaitersTakeNoWorker(t *testing.T) {
	t.Parallel()
	store := &gatedStore{gate: make(chan struct{})}
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Configure: fewWorkers, Depend: func(_ int, d *server.Deps) {
		far := d.Store
		d.Store = func(h *wire.Host) (geoconfig.Store, error) {
			var err error
			store.Store, err = far(h)
			return store, err
		}
	}})
	store.shut.Store(true)
	release := sync.OnceFunc(func() { close(store.gate) })
	t.Cleanup(release)
	besideWaiters(t, c.Nodes[0].ID(), c.Connect("root"), method.Place, &pb.PlaceRequest{Parent: uint64(ids.RootObject), Cues: &pb.Cues{RepLevel: 4}},
		func() proto.Message { return &pb.PlaceResponse{} }, release)
}
