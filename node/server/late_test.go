package server_test

import (
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// TestOperate_RefusesWhatComesTooLate sends operations that stayed on their way for
// longer than their caller waited: a cut connection keeps them, and brings them when it
// works again. None is done.
func TestOperate_RefusesWhatComesTooLate(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	cl := c.Connect("root")
	send := func(name string, number uint64, sent time.Time, valid time.Duration) error {
		req := &pb.OperateRequest{Slice: uint32(ids.RootSlice), Number: number, Lowest: number, Unsent: true, Hlc: uint64(hlc.FromWall(sent)), ValidNs: uint64(valid),
			Operation: &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{Dir: uint64(ids.RootObject), Name: []byte(name), Mode: tree.TypeRegular | 0o600}}}}
		_, err := cl.Call(t.Context(), c.Nodes[0].ID(), wire.Operation, method.Operate, req, nil, &pb.OperateResponse{})
		return err
	}
	long := time.Now().Add(-time.Minute)
	if err := send("late", 1, long, time.Second); !fault.Is(err, fault.TimedOut) {
		t.Errorf("one that came a minute late: got %v, want TimedOut", err)
	}
	for i, x := range []struct {
		name  string
		sent  time.Time
		valid time.Duration
	}{{"in time", long, 2 * time.Minute}, {"always", long, 0}, {"ahead", time.Now().Add(time.Hour), time.Second}} {
		if err := send(x.name, uint64(2+i), x.sent, x.valid); err != nil {
			t.Errorf("one that is %s: %v", x.name, err)
		}
	}
	var list pb.ListResponse
	if _, err := cl.Call(t.Context(), c.Nodes[0].ID(), wire.Operation, method.List, &pb.ListRequest{Header: &pb.ReadHeader{Slice: 1}, Dir: uint64(ids.RootObject)}, nil, &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Entries) != 3 {
		t.Errorf("the directory has %v, want three names", list.Entries)
	}
}
