package serve_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/inmem"
	"cartwheel.dev/node/geo/serve"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/wiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a store behind a server, and a peer that calls it over wire.
type bench struct {
	*testing.T
	ctx    context.Context
	store  *inmem.Store
	server *serve.Server
	host   *wire.Host // of the server
	peer   *wire.Host
}

func newBench(t *testing.T, o serve.Options, options ...wiretest.Option) *bench {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	b := &bench{T: t, ctx: ctx, store: inmem.New()}
	b.host, b.peer = wiretest.Pair(t, options...)
	b.server = serve.Serve(b.host, b.store, o)
	t.Cleanup(func() {
		if err := b.server.Close(); err != nil {
			t.Errorf("closing the server: %v", err)
		}
		b.store.Close()
	})
	return b
}

// call sends one request and returns the body of the answer.
func (b *bench) call(m wire.Method, request proto.Message, body []byte, answer proto.Message) ([]byte, error) {
	return b.callWithin(b.ctx, m, request, body, answer)
}

func (b *bench) callWithin(ctx context.Context, m wire.Method, request proto.Message, body []byte, answer proto.Message) ([]byte, error) {
	var parts [][]byte
	if body != nil {
		parts = [][]byte{body}
	}
	got, err := b.peer.Call(ctx, b.host.KeyID(), wire.Operation, m, request, parts, answer)
	if err != nil {
		return nil, err
	}
	out := append([]byte(nil), got.Bytes()...)
	got.Release()
	return out, nil
}

// rows sends a request that rows answer.
func (b *bench) rows(m wire.Method, request proto.Message) geoconfig.Rows {
	b.Helper()
	body, err := b.call(m, request, nil, nil)
	if err != nil {
		b.Fatalf("method %d: %v", m, err)
	}
	return decoded[geoconfig.Rows](b.T, body)
}

// founded gives the store its first batch: cluster c1 with the site paris.
func (b *bench) founded() {
	b.Helper()
	b.apply(geoconfig.Batch{Key: "found", Cluster: &geoconfig.Cluster{ID: "c1"}, Sites: []geoconfig.Site{{Name: "paris"}}})
}

// apply changes the store behind the server's back.
func (b *bench) apply(batch geoconfig.Batch) {
	b.Helper()
	if _, err := b.store.Apply(b.ctx, batch); err != nil {
		b.Fatalf("changing the store: %v", err)
	}
}

// answer is what a call in the background came to.
type answer struct {
	body []byte
	err  error
}

// follow sends a GeoFollow in the background.
func (b *bench) follow(ctx context.Context, m *pb.GeoFollowRequest) <-chan answer {
	done := make(chan answer, 1)
	go func() {
		body, err := b.callWithin(ctx, method.GeoFollow, m, nil, nil)
		done <- answer{body, err}
	}()
	return done
}

// calls is one request of each method that a server has, for a cluster.
func calls(t *testing.T, cluster string) map[string]struct {
	method  wire.Method
	request proto.Message
	body    []byte
} {
	t.Helper()
	batch := geoconfig.Batch{Key: "rome", Sites: []geoconfig.Site{{Name: "rome"}}}
	return map[string]struct {
		method  wire.Method
		request proto.Message
		body    []byte
	}{
		"read":       {method.GeoRead, &pb.GeoReadRequest{Cluster: cluster, Query: encoded(t, geoconfig.Query{})}, nil},
		"apply":      {method.GeoApply, &pb.GeoApplyRequest{Cluster: cluster}, encoded(t, batch)},
		"settle":     {method.GeoSettle, &pb.GeoSettleRequest{Cluster: cluster, Key: "lost"}, nil},
		"follow":     {method.GeoFollow, &pb.GeoFollowRequest{Cluster: cluster}, nil},
		"properties": {method.GeoProperties, &pb.GeoPropertiesRequest{Cluster: cluster}, nil},
	}
}

// fails wants every method to fail with a kind.
func (b *bench) fails(cluster string, want fault.Kind) {
	b.Helper()
	for name, c := range calls(b.T, cluster) {
		if _, err := b.call(c.method, c.request, c.body, nil); !fault.Is(err, want) {
			b.Errorf("%s: got %v of kind %v, want kind %v", name, err, fault.KindOf(err), want)
		}
	}
}

// works wants every method to succeed.
func (b *bench) works(cluster string) {
	b.Helper()
	for name, c := range calls(b.T, cluster) {
		if _, err := b.call(c.method, c.request, c.body, nil); err != nil {
			b.Errorf("%s: %v", name, err)
		}
	}
}

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("encoding: %v", err)
	}
	return body
}

func decoded[T any](t *testing.T, body []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("decoding %q: %v", body, err)
	}
	return v
}
