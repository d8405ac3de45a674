package wire_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/wiretest"
)

// few gives both hosts so few workers that two requests that wait take all.
func few(_ int, o *wire.Options) { o.Limits.Workers, o.Limits.Backlog, o.Limits.Waiting = 2, 8, 6 }

func TestYield_WaitingHandlersTakeNoWorker(t *testing.T) {
	a, b := wiretest.Pair(t, few)
	ctx := within(t, 10*time.Second)
	open := make(chan struct{})
	b.Spawn(hanging, func(ctx context.Context, r *wire.Request) {
		resume, err := wire.Yield(ctx)
		if err != nil {
			r.Fail(err)
			return
		}
		defer resume()
		select {
		case <-open:
			r.Reply(nil)
		case <-ctx.Done():
		}
	})
	b.Spawn(echo, func(_ context.Context, r *wire.Request) { r.Reply(nil) })
	call := func(m wire.Method) error {
		_, err := a.Call(ctx, b.KeyID(), wire.Operation, m, nil, nil, nil)
		return err
	}
	answers := make(chan error, 7)
	for range 7 {
		go func() { answers <- call(hanging) }()
	}
	// One more than may wait is refused, and says so.
	if err := <-answers; !fault.Is(err, fault.Overloaded) {
		t.Errorf("the seventh of six that may wait: got %v, want Overloaded", err)
	}
	for range 20 { // those that wait came and went; workers are left
		if err := call(echo); err != nil {
			t.Fatalf("a request beside those that wait: %v", err)
		}
	}
	close(open)
	for range 6 {
		if err := <-answers; err != nil {
			t.Errorf("one that waited: %v", err)
		}
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := call(echo); err != nil && !fault.Is(err, fault.Overloaded) {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestYield_CircularCallsDoNotBlock(t *testing.T) {
	a, b := wiretest.Pair(t, few)
	ctx := within(t, 10*time.Second)
	for _, pair := range [][2]*wire.Host{{a, b}, {b, a}} {
		here, there := pair[0], pair[1]
		var met sync.WaitGroup // all of a round are under way before the first goes on
		met.Add(2)
		here.Spawn(hanging, func(ctx context.Context, r *wire.Request) {
			met.Done()
			met.Wait()
			resume, err := wire.Yield(ctx)
			if err == nil {
				defer resume()
				_, err = here.Call(ctx, there.KeyID(), wire.Operation, echo, nil, nil, nil)
			}
			if err != nil {
				r.Fail(err)
				return
			}
			r.Reply(nil)
		})
		here.Spawn(echo, func(_ context.Context, r *wire.Request) { r.Reply(nil) })
	}
	var all sync.WaitGroup
	for _, pair := range [][2]*wire.Host{{a, b}, {b, a}, {a, b}, {b, a}} {
		all.Go(func() {
			if _, err := pair[0].Call(ctx, pair[1].KeyID(), wire.Operation, hanging, nil, nil, nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestInner_HasItsOwnWorkers(t *testing.T) {
	var node string
	m := wiretest.New(t, 3, few, func(i int, o *wire.Options) {
		if i == 0 {
			o.Inner = func(peer string) bool { return peer == node }
		}
	})
	node = m.Hosts[1].KeyID()
	ctx := within(t, 10*time.Second)
	server, inner, other := m.Hosts[0], m.Hosts[1], m.Hosts[2]
	open, busy := make(chan struct{}), make(chan struct{}, 4)
	server.Spawn(hanging, func(_ context.Context, r *wire.Request) {
		busy <- struct{}{}
		<-open
		r.Reply(nil)
	})
	server.Spawn(echo, func(_ context.Context, r *wire.Request) { r.Reply(nil) })
	var all sync.WaitGroup
	for range 2 { // all workers for others
		all.Go(func() { _, _ = other.Call(ctx, server.KeyID(), wire.Operation, hanging, nil, nil, nil) })
	}
	<-busy
	<-busy
	if _, err := inner.Call(ctx, server.KeyID(), wire.Operation, echo, nil, nil, nil); err != nil {
		t.Errorf("beside all workers of others: %v", err)
	}
	close(open)
	all.Wait()
}

func TestPark_RequestsAreNotCounted(t *testing.T) {
	a, b := wiretest.Pair(t, func(_ int, o *wire.Options) { o.Limits.Class[wire.Operation].Calls = 2 })
	ctx := within(t, 10*time.Second)
	var mu sync.Mutex
	var parked []*wire.Request
	came := make(chan struct{}, 8)
	b.Inline(hanging, func(r *wire.Request) {
		r.Park()
		mu.Lock()
		parked = append(parked, r)
		mu.Unlock()
		came <- struct{}{}
	})
	b.Inline(echo, func(r *wire.Request) { r.Reply(nil) })
	answers := make(chan error, 8)
	for range 8 {
		go func() {
			_, err := a.Call(ctx, b.KeyID(), wire.Operation, hanging, nil, nil, nil)
			answers <- err
		}()
		<-came
	}
	if _, err := a.Call(ctx, b.KeyID(), wire.Operation, echo, nil, nil, nil); err != nil {
		t.Errorf("behind eight parked requests where two may be under way: %v", err)
	}
	for _, r := range parked {
		r.Reply(nil)
	}
	for range 8 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
}
