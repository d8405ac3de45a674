package server_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// batcher sends batches to the root's active from one session.
type batcher struct {
	*servertest.Client
	t       testing.TB
	ctx     context.Context
	node    ids.Node
	session uint64
	number  uint64
	next    uint64 // of the object IDs that it was given
}

func newBatcher(t testing.TB, c *servertest.Cluster) *batcher {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	b := &batcher{Client: c.Connect("root"), t: t, ctx: ctx, node: c.Active(ids.RootSlice).ID()}
	opened, err := b.Client.Session(ctx, b.node)
	if err != nil {
		t.Fatal(err)
	}
	b.session = opened.Session
	r := b.send(&pb.Batch{Reserve: tree.MaxReserve}, nil).Result
	if b.next = r.First; r.Numbers != tree.MaxReserve {
		t.Fatalf("asked for numbers: %v", r)
	}
	return b
}

// send sends a batch under the next number.
func (b *batcher) send(batch *pb.Batch, body []byte) *pb.OperateResponse {
	b.t.Helper()
	b.number++
	return b.again(batch, body)
}

// again sends a batch under the number of the last one.
func (b *batcher) again(batch *pb.Batch, body []byte) *pb.OperateResponse {
	b.t.Helper()
	answer := &pb.OperateResponse{}
	buffer, err := b.Call(b.ctx, b.node, wire.Operation, method.Operate, &pb.OperateRequest{Slice: 1, Client: b.ID, Number: b.number, Lowest: b.number, Session: b.session,
		Principal: &pb.Principal{}, Operation: &pb.Operation{TimeNs: 7, Op: &pb.Operation_Batch{Batch: batch}}}, [][]byte{body}, answer)
	buffer.Release()
	if err != nil || answer.Result == nil || answer.Result.Kind != 0 {
		b.t.Fatalf("a batch: %v, %v", answer, err)
	}
	return answer
}

// create is a create with the next object ID.
func (b *batcher) create(dir ids.Object, name string, mode uint32) *pb.Operation {
	b.next++
	return &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{Dir: uint64(dir), Name: []byte(name), Mode: mode, Object: b.next - 1}}}
}

func batchOf(operations ...*pb.Operation) *pb.Batch { return &pb.Batch{Operations: operations} }

func unlink(dir ids.Object, name string) *pb.Operation {
	return &pb.Operation{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: uint64(dir), Name: []byte(name)}}}
}

func objectOf(create *pb.Operation) ids.Object { return ids.Object(create.GetCreate().Object) }

func (b *batcher) page(dir ids.Object, session uint64) ([]*pb.Entry, error) {
	answer := &pb.ListResponse{}
	buffer, err := b.Call(b.ctx, b.node, wire.Operation, method.List,
		&pb.ListRequest{Header: &pb.ReadHeader{Slice: 1, Session: session, Principal: &pb.Principal{}}, Dir: uint64(dir)}, nil, answer)
	buffer.Release()
	if err == nil && answer.Refusal != nil {
		err = fmt.Errorf("refused: %v", answer.Refusal)
	}
	return answer.Entries, err
}

func (b *batcher) list(dir ids.Object) (names []string) {
	b.t.Helper()
	page, err := b.page(dir, b.session)
	if err != nil {
		b.t.Fatalf("a list of %v: %v", dir, err)
	}
	for _, e := range page {
		names = append(names, string(e.Name))
	}
	return names
}

// TestBatch_IsOneOperation sends operations at once over a connection, and repeats
// them under the same number: they are done once.
func TestBatch_IsOneOperation(t *testing.T) {
	t.Parallel()
	b := newBatcher(t, servertest.Start(t, servertest.Options{Sites: []string{"a"}}))
	d := b.create(ids.RootObject, "d", tree.TypeDir|0o755)
	f, g := b.create(objectOf(d), "f", tree.TypeRegular|0o644), b.create(objectOf(d), "g", tree.TypeRegular|0o644)
	f.GetCreate().Commit = &pb.Commit{Extents: []*pb.Extent{{Length: 5, Source: &pb.Extent_BodyOffset{}}}}
	f.GetCreate().Open = true
	more := &pb.Operation{Op: &pb.Operation_Commit{Commit: &pb.Commit{Object: f.GetCreate().Object, Extents: []*pb.Extent{{Offset: 5, Length: 3, Source: &pb.Extent_BodyOffset{BodyOffset: 5}}}}}}
	batch := batchOf(d, f, g, more, unlink(objectOf(d), "g"), unlink(objectOf(d), "g"))
	batch.Reserve = 3
	first := b.send(batch, []byte("hello you"))
	var kinds []fault.Kind
	for _, r := range first.Result.Results {
		kinds = append(kinds, fault.Kind(r.Kind))
	}
	if want := []fault.Kind{0, 0, 0, 0, 0, fault.NotFound}; !slices.Equal(kinds, want) {
		t.Fatalf("got %v, want %v", kinds, want)
	}
	if a := first.Result.Results[3].Attr; a.GetSize() != 8 || string(a.GetContent().GetInline()) != "hello yo" {
		t.Errorf("the commit made %v", a)
	}
	if got := b.list(objectOf(d)); !slices.Equal(got, []string{"f"}) {
		t.Errorf("the directory lists %q", got)
	}
	has := func(o uint64, what pb.Grant_What) bool {
		return slices.ContainsFunc(first.Grants, func(g *pb.Grant) bool { return g.Object == o && g.What == what && g.Session == b.session })
	}
	if !has(f.GetCreate().Object, pb.Grant_FILE) || !has(d.GetCreate().Object, pb.Grant_NAMES) || len(first.Grants) != 2 {
		t.Errorf("got grants %v, want one for the open file and one for the directory's names", first.Grants)
	}
	if again := b.again(batch, []byte("hello you")); !proto.Equal(again.Result, first.Result) || again.Receipt.Serial != first.Receipt.Serial {
		t.Errorf("repeated it answers %v, and at first %v", again, first)
	}
}

// TestBatch_LargestUnderWay runs a batch of as many operations as one may have.
func TestBatch_LargestUnderWay(t *testing.T) {
	t.Parallel()
	b := newBatcher(t, servertest.Start(t, servertest.Options{Sites: []string{"a"}}))
	var all []*pb.Operation
	for i := range tree.MaxReserve {
		all = append(all, b.create(ids.RootObject, fmt.Sprintf("file%d", i), tree.TypeRegular|0o644))
	}
	if r := b.send(batchOf(all...), nil).Result; len(r.Results) != len(all) {
		t.Fatalf("%d of %d creates ran", len(r.Results), len(all))
	}
	for i := range all {
		all[i] = unlink(ids.RootObject, fmt.Sprintf("file%d", i))
	}
	if r := b.send(batchOf(all...), nil).Result; len(r.Results) != len(all) || len(b.list(ids.RootObject)) != 0 {
		t.Fatalf("%d of %d removals ran, %q is left", len(r.Results), len(all), b.list(ids.RootObject))
	}
}

// TestBatch_LargestInBytes sends more content than one entry takes, and the rest
// again until all is there.
func TestBatch_LargestInBytes(t *testing.T) {
	t.Parallel()
	b := newBatcher(t, servertest.Start(t, servertest.Options{Sites: []string{"a"}}))
	body := make([]byte, 120*50_000)
	var all []*pb.Operation
	for i := range 120 {
		copy(body[i*50_000:], fmt.Sprint("file ", i))
		op := b.create(ids.RootObject, fmt.Sprintf("file%d", i), tree.TypeRegular|0o644)
		op.GetCreate().Commit = &pb.Commit{Extents: []*pb.Extent{{Length: 50_000, Source: &pb.Extent_BodyOffset{BodyOffset: uint64(i) * 50_000}}}}
		all = append(all, op)
	}
	rounds := 0
	for rest := all; len(rest) > 0; rounds++ {
		n := len(b.send(batchOf(rest...), body).Result.Results)
		if n == 0 {
			t.Fatalf("none of %d operations ran", len(rest))
		}
		rest = rest[n:]
	}
	if n := len(b.list(ids.RootObject)); n != len(all) || rounds != 2 {
		t.Errorf("%d of %d files are there after %d batches, want 2 batches", n, len(all), rounds)
	}
}

// TestBatch_WaitsForLeasesAsOne removes two files of which another session has
// leases, and one open. That one stays for it; the other one is gone.
func TestBatch_WaitsForLeasesAsOne(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	b, other := newBatcher(t, c), newBatcher(t, c)
	open, shut := b.create(ids.RootObject, "open", tree.TypeRegular|0o644), b.create(ids.RootObject, "shut", tree.TypeRegular|0o644)
	b.send(batchOf(open, shut), nil)
	var mu sync.Mutex
	asked := map[ids.Object]int{}
	other.Revoked = func(r *pb.RevokeRequest) *pb.RevokeResponse {
		mu.Lock()
		defer mu.Unlock()
		for _, item := range r.Items {
			if item.Unlinked {
				asked[ids.Object(item.Object)]++
			}
		}
		return &pb.RevokeResponse{Held: []uint64{uint64(objectOf(open))}}
	}
	for _, o := range []ids.Object{objectOf(open), objectOf(shut)} {
		if err := other.stat(o); err != nil {
			t.Fatal(err)
		}
	}
	b.send(batchOf(unlink(ids.RootObject, "open"), unlink(ids.RootObject, "shut")), nil)
	if err := other.stat(objectOf(open)); err != nil {
		t.Errorf("the file that it has open: %v", err)
	}
	if err := other.stat(objectOf(shut)); !fault.Is(err, fault.Stale) && !fault.Is(err, fault.NotFound) {
		t.Errorf("the file that nobody has open: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if asked[objectOf(open)] != 1 || asked[objectOf(shut)] != 1 {
		t.Errorf("it was asked %v times for its files, want once for each", asked)
	}
}

// stat reads an object's attributes, with a lease.
func (b *batcher) stat(o ids.Object) error {
	answer := &pb.GetAttrResponse{}
	buffer, err := b.Call(b.ctx, b.node, wire.Operation, method.GetAttr,
		&pb.GetAttrRequest{Header: &pb.ReadHeader{Slice: 1, Session: b.session, Principal: &pb.Principal{}}, Object: uint64(o)}, nil, answer)
	buffer.Release()
	if err == nil && answer.Refusal != nil {
		err = fmt.Errorf("refused: %v", answer.Refusal)
	}
	return err
}

// TestBatch_DirectoryIsBornAlone makes directories while another session looks for
// them. Whatever it finds in one, it has the maker asked to share it first.
func TestBatch_DirectoryIsBornAlone(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	maker, other := newBatcher(t, c), newBatcher(t, c)
	var mu sync.Mutex
	asked := map[uint64]bool{}
	maker.Revoked = func(r *pb.RevokeRequest) *pb.RevokeResponse {
		mu.Lock()
		defer mu.Unlock()
		for _, item := range r.Items {
			asked[item.Object] = asked[item.Object] || item.What == pb.Grant_ALONE
		}
		return &pb.RevokeResponse{}
	}
	for i := range 30 {
		name := fmt.Sprintf("d%d", i)
		d := maker.create(ids.RootObject, name, tree.TypeDir|0o755)
		below := maker.create(objectOf(d), "below", tree.TypeDir|0o755)
		d.GetCreate().Alone, below.GetCreate().Alone = true, true
		found := make(chan error, 1)
		go func() {
			inside, err := other.look(ids.RootObject, name)
			mu.Lock()
			defer mu.Unlock()
			if err == nil && (inside != 1 || !asked[uint64(objectOf(d))]) {
				err = fmt.Errorf("another session found %d names in a new directory; its maker was asked for %v", inside, asked)
			}
			found <- err
		}()
		answer := maker.send(batchOf(d, below, maker.create(objectOf(below), "f", tree.TypeRegular|0o644)), nil)
		if err := <-found; err != nil {
			t.Fatal(err)
		}
		for _, o := range []ids.Object{objectOf(d), objectOf(below)} {
			for _, what := range []pb.Grant_What{pb.Grant_NAMES, pb.Grant_ALONE} {
				if !slices.ContainsFunc(answer.Grants, func(g *pb.Grant) bool { return ids.Object(g.Object) == o && g.What == what }) {
					t.Fatalf("round %d: no lease of kind %v on %v in %v", i, what, o, answer.Grants)
				}
			}
			if names := other.list(o); len(names) != 1 {
				t.Fatalf("round %d: %v lists %q", i, o, names)
			}
			mu.Lock()
			if !asked[uint64(o)] {
				t.Errorf("round %d: another session read %v, and its maker was not asked", i, o)
			}
			mu.Unlock()
		}
	}
}

// look lists a directory until a name is there, and then at once what is in it.
func (b *batcher) look(dir ids.Object, name string) (inside int, err error) {
	for b.ctx.Err() == nil {
		page, err := b.page(dir, 0)
		if err != nil {
			return 0, err
		}
		if i := slices.IndexFunc(page, func(e *pb.Entry) bool { return string(e.Name) == name }); i >= 0 {
			page, err = b.page(ids.Object(page[i].Object), b.session)
			return len(page), err
		}
	}
	return 0, b.ctx.Err()
}
