package sharing

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/framing"
)

// The world of these tests has a slice with the members m1 and m2, and the nodes c1,
// c2 and c3, each at a site of its own.
const theSlice ids.Slice = 7

// answer is how a node answers for one chunk.
type answer func(ctx context.Context, req *pb.GetRequest) (*pb.GetResponse, []byte, error)

// world is a cluster without connections.
type world struct {
	mu     sync.Mutex // guards below
	nodes  map[ids.Node]answer
	asked  []string // "node how", in order
	far    map[ids.Node]time.Duration
	now    time.Duration
	ending sync.WaitGroup
}

func newWorld() *world {
	return &world{nodes: map[ids.Node]answer{}, far: map[ids.Node]time.Duration{}}
}

func (w *world) clock() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now += d
}

// Call implements Caller.
func (w *world) Call(ctx context.Context, peer string, _ wire.Class, _ wire.Method, request proto.Message, _ [][]byte, into proto.Message) (*wire.Buffer, error) {
	req, ok := request.(*pb.GetRequest)
	if !ok {
		return nil, fault.E(fault.Invalid, "", "", "another request")
	}
	w.mu.Lock()
	w.asked = append(w.asked, fmt.Sprint(peer, " ", req.Sharing))
	f := w.nodes[ids.Node(peer)]
	w.mu.Unlock()
	if f == nil {
		return nil, fault.E(fault.Unreachable, "", peer, "")
	}
	a, body, err := f(ctx, req)
	if err != nil {
		return nil, err
	}
	proto.Merge(into, a)
	return framing.NewBuffer(body), nil
}

// patient is Options.Patient of nodes that send nothing.
func patient(ctx context.Context, _ string, stall, _ time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, stall)
}

// Slice implements Roster.
func (w *world) Slice(id ids.Slice) (geoconfig.SliceRow, bool) {
	if id != theSlice {
		return geoconfig.SliceRow{}, false
	}
	return geoconfig.SliceRow{ID: id, Active: "m1", Members: []geoconfig.Member{{Node: "m1", State: geoconfig.Normal}, {Node: "m2", State: geoconfig.Normal}}}, true
}

// Node implements Roster.
func (w *world) Node(id ids.Node) (geoconfig.Node, bool) {
	return geoconfig.Node{ID: id, Site: ids.Site("at-" + id)}, true
}

// Sites implements Roster.
func (w *world) Sites() []geoconfig.Site {
	return []geoconfig.Site{{Name: "at-c1"}, {Name: "at-c2"}, {Name: "at-c3"}, {Name: "at-m1"}, {Name: "at-m2"}}
}

// cache makes a node's cache, which serves what it holds to others.
func (w *world) cache(t *testing.T, self ids.Node, limit int64) *Cache {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	t.Cleanup(func() { end(); w.ending.Wait() })
	c := New(Options{
		Self: self, Site: ids.Site("at-" + self), Bytes: limit, Roster: w, Caller: w, Patient: patient, Clock: w.clock,
		Distance: func(to ids.Node) (time.Duration, bool) {
			w.mu.Lock()
			defer w.mu.Unlock()
			d, ok := w.far[to]
			return d, ok
		},
		Go: func(f func(context.Context)) { w.ending.Go(func() { f(ctx) }) },
	})
	w.nodes[self] = func(ctx context.Context, req *pb.GetRequest) (*pb.GetResponse, []byte, error) {
		data := c.Held(ctx, chunk.Address(req.Addresses))
		if data == nil {
			return &pb.GetResponse{Missing: []byte{1}}, nil, nil
		}
		return &pb.GetResponse{Sizes: []uint32{uint32(len(data))}}, data, nil
	}
	return c
}

// member makes a member that has all of some chunks, and remembers whom it gave one.
func (w *world) member(self ids.Node, chunks ...[]byte) {
	given := NewGiven(w.clock)
	w.nodes[self] = func(ctx context.Context, req *pb.GetRequest) (*pb.GetResponse, []byte, error) {
		asker, _ := ctx.Value(askerKey{}).(ids.Node)
		for _, body := range chunks {
			if a := chunk.Sum(body); bytes.Equal(a[:], req.Addresses) {
				if holders := given.Give(a, asker, req.Avoid); len(holders) > 0 {
					return sentTo(holders...), nil, nil
				}
				return &pb.GetResponse{Sizes: []uint32{uint32(len(body))}}, bytes.Clone(body), nil
			}
		}
		return &pb.GetResponse{Missing: []byte{1}}, nil, nil
	}
}

// askerKey is where a context says who asks.
type askerKey struct{}

// sentTo names nodes that have a chunk.
func sentTo(nodes ...ids.Node) *pb.GetResponse {
	h := &pb.GetResponse_Holders{}
	for _, n := range nodes {
		h.Nodes = append(h.Nodes, string(n))
	}
	return &pb.GetResponse{Holders: []*pb.GetResponse_Holders{h}}
}

// always answers with the same bytes.
func always(body []byte) answer {
	return func(context.Context, *pb.GetRequest) (*pb.GetResponse, []byte, error) {
		return &pb.GetResponse{Sizes: []uint32{uint32(len(body))}}, body, nil
	}
}

// redirects names holders until the asker wants to avoid them, and then gives the
// bytes.
func redirects(body []byte, holders ...ids.Node) answer {
	return func(_ context.Context, req *pb.GetRequest) (*pb.GetResponse, []byte, error) {
		if len(req.Avoid) == 0 {
			return sentTo(holders...), nil, nil
		}
		return &pb.GetResponse{Sizes: []uint32{uint32(len(body))}}, body, nil
	}
}

func (w *world) calls() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.asked...)
}

// chunkOfSize makes a chunk that no other number makes.
func chunkOfSize(number, size int) []byte {
	return bytes.Repeat([]byte(fmt.Sprintf("%016d", number)), size/16)
}

// brings brings one chunk and checks it.
func brings(t *testing.T, c *Cache, body []byte) {
	t.Helper()
	got, err := c.Bring(t.Context(), theSlice, []chunk.Address{chunk.Sum(body)})
	if err != nil || !bytes.Equal(got[0], body) {
		t.Fatalf("%d chunks, %v; want the one that was asked for", len(got), err)
	}
}
