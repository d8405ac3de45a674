package serve_test

import (
	"sync"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/geo/serve"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"

	"google.golang.org/protobuf/proto"
)

// successor notes what a server hears of a store that took its place.
type successor struct {
	mu   sync.Mutex // guards below
	peer string
	by   ids.Generation
	n    int
}

func (s *successor) hear(peer string, by ids.Generation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peer, s.by, s.n = peer, by, s.n+1
}

func TestServer_RefusesWhoObeysALaterStore(t *testing.T) {
	var heard successor
	b := newBench(t, serve.Options{Superseded: heard.hear})
	b.founded()
	rows, err := b.store.Read(b.ctx, geoconfig.Query{})
	if err != nil {
		t.Fatal(err)
	}
	own := uint64(rows.Cluster.Generation)
	requests := func(g uint64) map[wire.Method]proto.Message {
		return map[wire.Method]proto.Message{
			method.GeoRead:       &pb.GeoReadRequest{Query: encoded(t, geoconfig.Query{}), Generation: g},
			method.GeoSettle:     &pb.GeoSettleRequest{Key: "k", Generation: g},
			method.GeoApply:      &pb.GeoApplyRequest{Generation: g},
			method.GeoFollow:     &pb.GeoFollowRequest{Generation: g},
			method.GeoProperties: &pb.GeoPropertiesRequest{Generation: g},
		}
	}
	batch := encoded(t, geoconfig.Batch{Key: "site", Sites: []geoconfig.Site{{Name: "rome"}}})
	for m, request := range requests(own) {
		if _, err := b.call(m, request, batch, nil); err != nil {
			t.Errorf("method %d in the store's own generation: %v", m, err)
		}
	}
	if heard.n != 0 {
		t.Errorf("the server heard of generation %d", heard.by)
	}
	for m, request := range requests(own + 2) {
		if _, err := b.call(m, request, batch, nil); !fault.Is(err, fault.WrongCluster) {
			t.Errorf("method %d of who obeys a later store: %v", m, err)
		}
	}
	heard.mu.Lock()
	defer heard.mu.Unlock()
	if heard.n != 5 || heard.by != ids.Generation(own+2) || heard.peer != b.peer.KeyID() {
		t.Errorf("the server heard %d times, last of %d by %s", heard.n, heard.by, heard.peer)
	}
}
