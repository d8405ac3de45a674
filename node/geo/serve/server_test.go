package serve_test

import (
	"reflect"
	"strings"
	"sync"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/geo/serve"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

func TestServer_AnswersForItsStore(t *testing.T) {
	b := newBench(t, serve.Options{})
	b.founded()
	query := geoconfig.Query{Sites: true}
	want, err := b.store.Read(b.ctx, query)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.rows(method.GeoRead, &pb.GeoReadRequest{Query: encoded(t, query)}); !reflect.DeepEqual(got, want) {
		t.Errorf("reading: got %+v, want %+v", got, want)
	}

	var applied pb.GeoApplyResponse
	batch := geoconfig.Batch{Key: "rome", Sites: []geoconfig.Site{{Name: "rome"}}}
	if _, err := b.call(method.GeoApply, &pb.GeoApplyRequest{}, encoded(t, batch), &applied); err != nil || applied.Revision != 2 {
		t.Errorf("applying: got revision %d, %v, want 2", applied.Revision, err)
	}
	for key, at := range map[string]uint64{"rome": 2, "lost": 0} {
		var settled pb.GeoSettleResponse
		_, err := b.call(method.GeoSettle, &pb.GeoSettleRequest{Key: key}, nil, &settled)
		if err != nil || settled.Revision != at || settled.Applied != (at != 0) {
			t.Errorf("settling %s: got %v, %v, want revision %d", key, &settled, err, at)
		}
	}

	var told pb.GeoPropertiesResponse
	if _, err := b.call(method.GeoProperties, &pb.GeoPropertiesRequest{}, nil, &told); err != nil {
		t.Fatal(err)
	}
	properties, err := b.store.Properties(b.ctx)
	if got := decoded[geoconfig.Properties](t, told.Properties); err != nil || got != properties {
		t.Errorf("got properties %+v, want %+v (%v)", got, properties, err)
	}
}

func TestServer_PassesOnWhatTheStoreRefuses(t *testing.T) {
	b := newBench(t, serve.Options{})
	b.founded()
	conflict := geoconfig.Batch{Key: "again", Sites: []geoconfig.Site{{Name: "paris"}}}
	_, err := b.call(method.GeoApply, &pb.GeoApplyRequest{}, encoded(t, conflict), nil)
	if !fault.Is(err, fault.Conflict) || fault.SubjectOf(err) != "sites/paris" {
		t.Errorf("applying: got %v of %q, want a conflict of sites/paris", err, fault.SubjectOf(err))
	}
	wide := encoded(t, geoconfig.Query{Slices: geoconfig.MaxBatchRows + 1})
	if _, err := b.call(method.GeoRead, &pb.GeoReadRequest{Query: wide}, nil, nil); !fault.Is(err, fault.TooLarge) {
		t.Errorf("reading: got %v, want kind %v", err, fault.TooLarge)
	}
	if _, err := b.call(method.GeoSettle, &pb.GeoSettleRequest{}, nil, nil); !fault.Is(err, fault.Invalid) {
		t.Errorf("settling: got %v, want kind %v", err, fault.Invalid)
	}
	b.store.Close()
	for _, m := range []wire.Method{method.GeoFollow, method.GeoRead} { // both take this request
		if _, err := b.call(m, &pb.GeoFollowRequest{Cluster: "c1"}, nil, nil); !fault.Is(err, fault.Closed) {
			t.Errorf("method %d of a closed store: got %v, want kind %v", m, err, fault.Closed)
		}
	}
	if _, err := b.call(method.GeoFollow, &pb.GeoFollowRequest{}, nil, nil); !fault.Is(err, fault.Closed) {
		t.Errorf("following a closed store: got %v, want kind %v", err, fault.Closed)
	}
}

func TestServer_RefusesWhatItCannotDecode(t *testing.T) {
	b := newBench(t, serve.Options{})
	if _, err := b.call(method.GeoRead, &pb.GeoReadRequest{Query: []byte("{")}, nil, nil); !fault.Is(err, fault.Invalid) {
		t.Errorf("a query: got %v, want kind %v", err, fault.Invalid)
	}
	if _, err := b.call(method.GeoApply, &pb.GeoApplyRequest{}, []byte("{"), nil); !fault.Is(err, fault.Invalid) {
		t.Errorf("a batch: got %v, want kind %v", err, fault.Invalid)
	}
	// Field 1 of every request is a cluster's name, which has to be UTF-8.
	bad := &pb.GeoPropertiesResponse{Properties: []byte{0xff}}
	for name, c := range calls(t, "") {
		if _, err := b.call(c.method, bad, c.body, nil); !fault.Is(err, fault.Corrupt) {
			t.Errorf("%s: got %v, want kind %v", name, err, fault.Corrupt)
		}
	}
}

// gate answers Allow and MayChange: it counts what it was asked, and refuses
// reads, changes or changes of slices while it is told to.
type gate struct {
	mu               sync.Mutex // guards the rest
	reads, changes   int
	peer             string
	noRead, noChange bool
	noSlices         bool
}

func (g *gate) allow(peer string, change bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.peer = peer
	refused := g.noRead
	if change {
		g.changes++
		refused = g.noChange
	} else {
		g.reads++
	}
	if refused {
		return fault.E(fault.Unauthorized, "test.Allow", "", "not on the roster")
	}
	return nil
}

func (g *gate) mayChange(peer string, batch *geoconfig.Batch) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.peer = peer
	if g.noSlices && len(batch.Slices) > 0 {
		return fault.E(fault.Permission, "test.MayChange", "", "slices are not yours")
	}
	return nil
}

// set changes the gate between calls.
func (g *gate) set(change func(*gate)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(g)
}

func TestServer_AsksWhoMayReadAndChange(t *testing.T) {
	g := &gate{}
	b := newBench(t, serve.Options{Allow: g.allow})
	b.founded()
	b.works("")
	g.set(func(g *gate) {
		if g.reads != 3 || g.changes != 2 || g.peer != b.peer.KeyID() {
			t.Errorf("asked for %s about %d reads and %d changes, want 3 and 2", g.peer, g.reads, g.changes)
		}
	})
	changes := map[string]bool{"apply": true, "settle": true}
	for _, refused := range []bool{true, false} {
		g.set(func(g *gate) { g.noChange, g.noRead = refused, !refused })
		for name, c := range calls(t, "") {
			want := fault.None
			if changes[name] == refused {
				want = fault.Unauthorized
			}
			if _, err := b.call(c.method, c.request, c.body, nil); fault.KindOf(err) != want {
				t.Errorf("%s while change=%v is refused: got %v, want kind %v", name, refused, err, want)
			}
		}
	}
}

func TestServer_RefusesAChangeBeforeTheStore(t *testing.T) {
	g := &gate{noChange: true}
	b := newBench(t, serve.Options{Allow: g.allow})
	b.founded()
	oslo := geoconfig.Batch{Key: "oslo", Sites: []geoconfig.Site{{Name: "oslo"}}}
	if _, err := b.call(method.GeoApply, &pb.GeoApplyRequest{}, encoded(t, oslo), nil); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("got %v, want kind %v", err, fault.Unauthorized)
	}
	if rows, err := b.store.Read(b.ctx, geoconfig.Query{}); err != nil || rows.Revision != 1 {
		t.Errorf("the store is at revision %d (%v), want 1", rows.Revision, err)
	}
}

func TestServer_AsksAboutEachChange(t *testing.T) {
	g := &gate{noSlices: true}
	b := newBench(t, serve.Options{MayChange: g.mayChange})
	b.founded()
	b.works("c1")
	g.set(func(g *gate) {
		if g.peer != b.peer.KeyID() {
			t.Errorf("asked about %q, want %q", g.peer, b.peer.KeyID())
		}
	})
	slice := geoconfig.Batch{Key: "slice", Slices: []geoconfig.SliceSwap{{}}}
	if _, err := b.call(method.GeoApply, &pb.GeoApplyRequest{}, encoded(t, slice), nil); !fault.Is(err, fault.Permission) {
		t.Errorf("got %v, want kind %v", err, fault.Permission)
	}
}

func TestServer_WantsItsOwnCluster(t *testing.T) {
	b := newBench(t, serve.Options{})
	empty := encoded(t, geoconfig.Query{})
	if _, err := b.call(method.GeoRead, &pb.GeoReadRequest{Cluster: "c2", Query: empty}, nil, nil); err != nil {
		t.Errorf("a new store is of no cluster yet, but answers %v", err)
	}
	b.founded()
	b.fails("c2", fault.WrongCluster)
	b.works("")
	b.works("c1")
	b.fails("c2", fault.WrongCluster) // also after it has learned its own
}

func TestServer_RefusesAnswersBeyondAFrame(t *testing.T) {
	b := newBench(t, serve.Options{}, small)
	b.founded()
	b.apply(big("a", 4))
	b.apply(big("b", 4))
	all := encoded(t, geoconfig.Query{Sites: true})
	if _, err := b.call(method.GeoRead, &pb.GeoReadRequest{Query: all}, nil, nil); !fault.Is(err, fault.TooLarge) {
		t.Errorf("got %v, want kind %v", err, fault.TooLarge)
	}
	if got := b.rows(method.GeoRead, &pb.GeoReadRequest{Query: encoded(t, geoconfig.Query{})}); got.Revision != 3 {
		t.Errorf("asking for less: got revision %d, want 3", got.Revision)
	}
}

// small lets a frame of operations carry a body of 16 KiB.
func small(_ int, o *wire.Options) { o.Limits.Class[wire.Operation].Body = 16 << 10 }

// big is a batch of sites whose JSON takes above 3 KiB each.
func big(name string, sites int) geoconfig.Batch {
	b := geoconfig.Batch{Key: name}
	for i := range sites {
		b.Sites = append(b.Sites, geoconfig.Site{Name: ids.Site(name + string(rune('a'+i))), Location: strings.Repeat("x", 3<<10)})
	}
	return b
}

func TestClose_AnswersClosedFromThenOn(t *testing.T) {
	b := newBench(t, serve.Options{})
	b.founded()
	b.works("c1")
	for range 2 {
		if err := b.server.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
		b.fails("c1", fault.Closed)
	}
	if _, err := b.store.Read(b.ctx, geoconfig.Query{}); err != nil {
		t.Errorf("the store was closed too: %v", err)
	}
}
