package server_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

func create(name string) *pb.Operation {
	return &pb.Operation{TimeNs: 1, Op: &pb.Operation_Create{Create: &pb.Create{Dir: uint64(ids.RootObject), Name: []byte(name), Mode: tree.TypeRegular | 0o644}}}
}

func commit(object uint64, n int) *pb.Operation {
	return &pb.Operation{TimeNs: 2, Op: &pb.Operation_Commit{Commit: &pb.Commit{Object: object,
		Extents: []*pb.Extent{{Offset: 0, Length: uint64(n), Source: &pb.Extent_BodyOffset{BodyOffset: 0}}}}}}
}

func TestOperate_WrittenFileIsReadBack(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Log: testing.Verbose()})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cl := c.Connect("root")
	made, err := cl.Operate(ctx, ids.RootSlice, create("hello"), nil)
	if err != nil || made.Kind != 0 {
		t.Fatalf("create: %v %v", made, err)
	}
	body := bytes.Repeat([]byte("0123456789abcdef"), 1024)
	wrote, err := cl.Operate(ctx, ids.RootSlice, commit(made.Attr.Object, len(body)), body)
	if err != nil || wrote.Kind != 0 {
		t.Fatalf("commit: %v %v", wrote, err)
	}
	active := c.Active(ids.RootSlice)
	var found pb.ResolveResponse
	_, err = cl.Call(ctx, active.ID(), wire.Operation, method.Resolve, &pb.ResolveRequest{Header: &pb.ReadHeader{Slice: 1, Principal: &pb.Principal{}},
		Dir: uint64(ids.RootObject), Names: [][]byte{[]byte("hello")}, Content: true}, nil, &found)
	if err != nil || len(found.Steps) != 1 || found.Steps[0].Attr == nil {
		t.Fatalf("resolve: %v %v", &found, err)
	}
	content := found.Steps[0].Attr.Content
	if content.GetSize() != uint64(len(body)) {
		t.Fatalf("got content %v, want size %d", content, len(body))
	}
	var ranged pb.RangeResponse
	got, err := cl.Call(ctx, active.ID(), wire.Operation, method.Range, &pb.RangeRequest{Slice: 1, Root: content.Root, Height: content.Height,
		Offset: 100, Length: 5000, Data: true}, nil, &ranged)
	if err != nil || !bytes.Equal(got.Bytes(), body[100:5100]) {
		t.Fatalf("range: %d bytes, %v; want 5000 of the body", got.Len(), err)
	}
}
