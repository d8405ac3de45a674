package historytest

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/wire"
)

// brake is a clock that can be stopped: whoever measures a lease by it honours
// the lease for ever.
type brake struct {
	real boottime.Func
	at   atomic.Int64 // 0: it runs
}

func newBrake() *brake { return &brake{real: boottime.Default()} }

func (b *brake) now() time.Duration {
	if at := b.at.Load(); at != 0 {
		return time.Duration(at)
	}
	return b.real()
}

func (b *brake) stop() { b.at.Store(int64(b.real())) }

// after is when the planted runs begin to be disturbed.
const after = 700 * time.Millisecond

// readOne reads the small file over and over, to the end of the run.
func readOne(ctx context.Context, a *actor) {
	a.read(ctx, registers()[0])
	select {
	case <-time.After(15 * time.Millisecond):
	case <-ctx.Done():
	}
}

// lapsed is a client that serves reads when its session has lapsed: it is cut
// off from everybody, and its clock stands.
func lapsed(length time.Duration) plant {
	b := newBrake()
	return plant{special: 1, work: readOne, clock: b.now, unsettled: true, faults: func(w *world) []aFault {
		var out []aFault
		for i := range w.c.Nodes {
			out = append(out, aFault{deaf, i, w.o.Clients - 1, after, length}, aFault{mute, i, w.o.Clients - 1, after, length})
		}
		time.AfterFunc(after, b.stop)
		return out
	}}
}

// deafStore is a configuration store of which a node hears nothing more.
type deafStore struct {
	geoconfig.Store
	deaf *atomic.Bool
}

// Follow implements geoconfig.Store.
func (s deafStore) Follow(ctx context.Context, since ids.Revision, limit int) (geoconfig.Rows, error) {
	rows, err := s.Store.Follow(ctx, since, limit)
	if s.deaf.Load() {
		return geoconfig.Rows{}, fault.E(fault.Unreachable, "historytest.Follow", "geo-config", "")
	}
	return rows, err
}

// leaseless is an active that reads without a lease: it is cut off from the
// other nodes and geo-config, and its clock stands.
func leaseless(length time.Duration) plant {
	brakes := []*brake{newBrake(), newBrake(), newBrake()}
	deaf := make([]atomic.Bool, len(brakes))
	return plant{special: 2, work: readOne, unsettled: true,
		depend: func(i int, d *server.Deps) {
			open := d.Store
			d.Clock = brakes[i].now
			d.Store = func(h *wire.Host) (geoconfig.Store, error) {
				s, err := open(h)
				return deafStore{s, &deaf[i]}, err
			}
		},
		faults: func(w *world) []aFault {
			file := ids.Object(w.actors[0].nodes[registers()[0].name])
			i := slices.Index(w.c.Nodes, w.c.Active(file.Slice()))
			time.AfterFunc(after, func() {
				brakes[i].stop()
				deaf[i].Store(true)
			})
			return []aFault{{isolate, i, 0, after, length}}
		}}
}

// keeper is a client that acknowledges revocations and goes on believing.
func keeper(time.Duration) plant {
	return plant{special: 1, work: readOne, faults: func(*world) []aFault { return nil }, joined: func(h *wire.Host) {
		h.Inline(method.Revoke, func(r *wire.Request) { r.Reply(&pb.RevokeResponse{}) })
	}}
}

// repeater is a client that repeats what was not answered as a new operation.
func repeater(length time.Duration) plant {
	return plant{special: 2, patience: 250 * time.Millisecond, unsettled: true, faults: func(w *world) []aFault {
		var out []aFault
		for at := after; at+500*time.Millisecond < length; at += 800 * time.Millisecond {
			for i := range w.c.Nodes {
				out = append(out, aFault{lostAnswer, i, 0, at, at + 500*time.Millisecond})
			}
		}
		return out
	}}
}

func TestRun_FindsPlantedBugs(t *testing.T) {
	// A new active waits for the leases that it may have inherited.
	const length = after + 4*lease
	plants := map[string]func(time.Duration) plant{
		"a client reads after its session lapsed":          lapsed,
		"an active reads without a lease":                  leaseless,
		"a revocation is acknowledged and nothing dropped": keeper,
		"an unanswered operation is repeated as a new one": repeater,
	}
	for name, make := range plants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var v Verdict
			for seed := uint64(1); seed <= 5; seed++ { // one may be lucky
				v = Run(t, Options{Seed: seed, Nodes: 3, Clients: 4, Length: length, plant: make(length), Log: os.Getenv("CARTWHEEL_LOG") != ""})
				for _, p := range v.Problems {
					if strings.HasPrefix(p, "LIN") || strings.HasPrefix(p, "DUR") {
						t.Logf("found at seed %d among %d operations:\n%s", seed, v.Events, p)
						return
					}
				}
			}
			t.Errorf("not found among %d operations, the longest %s for %v; faults %s; problems %q", v.Events, v.Which, v.Longest, v.Faults, v.Problems)
		})
	}
}

// TestRun_IsCleanWithoutPlantedBugs puts the same faults on a system that is
// whole.
func TestRun_IsCleanWithoutPlantedBugs(t *testing.T) {
	const length = 3 * time.Second
	for name, make := range map[string]func(time.Duration) plant{"cut-off client": lapsed, "cut-off active": leaseless, "lost answers": repeater} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := make(length)
			p.clock, p.depend, p.patience, p.unsettled = nil, nil, 0, false
			v := Run(t, Options{Seed: 1, Nodes: 3, Clients: 4, Length: length, plant: p})
			if len(v.Problems) > 0 {
				t.Errorf("faults %s:\n%s", v.Faults, strings.Join(v.Problems, "\n"))
			}
		})
	}
}
