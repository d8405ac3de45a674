package reading

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/tree"
)

func TestAgain_WaitsWhileSomethingIsInTheWay(t *testing.T) {
	busy := fault.E(fault.Busy, "test.read", "", "")
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name string
			busy int // tries that find it busy; below 0: all
			then error
			want fault.Kind
		}{
			{"nothing", 0, nil, fault.None},
			{"another failure", 0, fault.E(fault.Stale, "test.read", "", ""), fault.Stale},
			{"a while", 20, nil, fault.None},
			{"a while, then a failure", 20, fault.E(fault.Stale, "test.read", "", ""), fault.Stale},
			{"too long", -1, nil, fault.Again},
		} {
			tries, began := 0, time.Now()
			err := again(t.Context(), func() error {
				if tries++; c.busy < 0 || tries <= c.busy {
					return busy
				}
				return c.then
			})
			if fault.KindOf(err) != c.want {
				t.Errorf("%s: got %v, want kind %v", c.name, err, c.want)
			}
			if c.busy >= 0 && tries != c.busy+1 {
				t.Errorf("%s: tried %d times, want %d", c.name, tries, c.busy+1)
			}
			if took := time.Since(began); c.busy < 0 && took != busyFor || c.busy == 0 && took != 0 {
				t.Errorf("%s: took %v", c.name, took)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := again(ctx, func() error { return busy }); !fault.Is(err, fault.Again) {
			t.Errorf("a caller that is gone: got %v, want kind %v", err, fault.Again)
		}
	})
}

// gone is a context that has ended: what is in the way counts as long there.
func gone(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestServer_WaitsForAnIntent(t *testing.T) {
	b := newBench(t)
	f := b.file(ids.RootObject, "f", 0o644, root, "hello")
	far := b.apart(ids.RootObject, "far", nearSlice, tree.TypeDir|0o755, root)
	i := b.move(ids.RootObject, "f", far)
	resolve := func(ctx context.Context) error {
		out, err := b.Resolve(ctx, node(), &pb.ResolveRequest{Dir: uint64(ids.RootObject), Names: path("f")})
		if err == nil && fault.Kind(out.Steps[0].Kind) != fault.NotFound {
			t.Errorf("resolving: got %v, want the name to have moved", out)
		}
		return err
	}
	list := func(ctx context.Context) error {
		out, err := b.List(ctx, node(), &pb.ListRequest{Dir: uint64(far)})
		if err == nil && (len(out.Entries) != 1 || ids.Object(out.Entries[0].Object) != f) {
			t.Errorf("listing: got %v, want the file that moved", out)
		}
		return err
	}
	b.fails("resolving meanwhile", resolve(gone(t)), fault.Again)
	b.fails("listing meanwhile", list(gone(t)), fault.Again)
	var wg sync.WaitGroup
	wg.Go(func() { b.fails("resolving", resolve(t.Context()), fault.None) })
	wg.Go(func() { b.fails("listing", list(t.Context()), fault.None) })
	i.finish()
	wg.Wait()
}

func TestServer_WaitsForTheOneThatIsAlone(t *testing.T) {
	for name, read := range map[string]func(*bench, context.Context, Asker, ids.Object) error{
		"Resolve": func(b *bench, ctx context.Context, who Asker, dir ids.Object) error {
			_, err := b.Resolve(ctx, who, &pb.ResolveRequest{Dir: uint64(dir)})
			return err
		},
		"List": func(b *bench, ctx context.Context, who Asker, dir ids.Object) error {
			_, err := b.List(ctx, who, &pb.ListRequest{Dir: uint64(dir)})
			return err
		},
		"GetAttr": func(b *bench, ctx context.Context, who Asker, dir ids.Object) error {
			_, err := b.GetAttr(ctx, who, &pb.GetAttrRequest{Object: uint64(dir)})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			d := b.mkdir(ids.RootObject, "d", 0o777, root)
			alone := b.session(21)
			if b.sessions.Grant(alone, rootSlice, epoch, d, pb.Grant_NAMES) == nil || b.sessions.GrantAlone(alone, epoch, d) == nil {
				t.Fatal("the session did not get its leases")
			}
			b.fails("the one that is alone", read(b, t.Context(), Asker{Principal: root, Client: 21, Session: alone}, d), fault.None)
			other := b.within(node())
			b.fails("a caller that is gone", read(b, gone(t), other, d), fault.Again)
			done := make(chan error, 1)
			go func() { done <- read(b, t.Context(), other, d) }()
			select {
			case <-b.revoked:
			case err := <-done:
				t.Fatalf("another does not wait: %v", err)
			}
			b.endSession(21, alone)
			b.fails("another", <-done, fault.None)
		})
	}
}
