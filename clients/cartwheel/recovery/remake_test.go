package recovery

import (
	"context"
	"io"
	"log/slog"
	"testing"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/content"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// node answers what a recovery asks.
type node struct {
	attr    *pb.Attr // of the file, if there is one
	fetch   error
	operate error
	made    *pb.Create // what was sent
	apart   error
}

// Fetch implements Calls.
func (n *node) Fetch(context.Context, ids.Object, calls.Wanted) (*pb.Attr, error) {
	return n.attr, n.fetch
}

// Operate implements Calls.
func (n *node) Operate(_ context.Context, o calls.Operation) (*pb.OperateResponse, ids.Node, error) {
	n.made = o.Op.GetCreate()
	if n.operate != nil {
		return nil, "", n.operate
	}
	return &pb.OperateResponse{Result: &pb.Result{Attr: &pb.Attr{Object: 30, Version: 4}}}, "", nil
}

func (n *node) makeApart(context.Context, *pb.Create, *pb.Principal) (*pb.Attr, error) {
	return &pb.Attr{Object: 40, Version: 6}, n.apart
}

// TestRemake_GoesByWhatTheActiveHas recovers a file that was made here and written
// to once.
func TestRemake_GoesByWhatTheActiveHas(t *testing.T) {
	stale, refused := fault.E(fault.Stale, "recovery.test", "", ""), fault.E(fault.Exists, "recovery.test", "", "")
	away := calls.OutcomeOpen(fault.E(fault.TimedOut, "recovery.test", "", ""))
	full, gone := fault.E(fault.Closed, "recovery.test", "", ""), fault.E(fault.Unreachable, "recovery.test", "", "")
	for _, x := range []struct {
		name   string
		node   node
		object ids.Object
		known  uint64
		writes int // that are left
		sent   bool
		fails  bool
	}{
		{"only its answer was lost", node{attr: &pb.Attr{Version: 5, Change: 5}}, 20, 5, 1, false, false},
		{"it was written to since", node{attr: &pb.Attr{Version: 5, Change: 5, Size: 1}}, 20, 2, 1, false, false},
		{"the active does not answer", node{fetch: away}, 20, 2, 2, false, true},
		{"it is not there", node{fetch: stale}, 30, 4, 1, true, false},
		{"it is not known whether it was made", node{fetch: stale, operate: away}, 20, 2, 2, true, true},
		{"its name is taken", node{fetch: stale, operate: refused}, 20, 2, 1, true, false},
		{"the slice is full", node{fetch: stale, operate: full}, 40, 6, 1, true, false},
		{"all slices are full", node{fetch: stale, operate: full, apart: full}, 20, 2, 2, true, true},
		{"no node says which slice is not", node{fetch: stale, operate: full, apart: gone}, 20, 2, 2, true, true},
		{"its directory is gone meanwhile", node{fetch: stale, operate: full, apart: stale}, 20, 2, 1, true, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			create, err := proto.Marshal(&pb.OperateRequest{Operation: &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{Object: 20, Name: []byte("f")}}}})
			if err != nil {
				t.Fatal(err)
			}
			l := content.Leftover{Object: 20, Known: 2, Writes: []content.Numbered{
				{Number: 1, Written: content.Written{Kind: content.WriteCreate, Data: create}},
				{Number: 2},
			}}
			r := New(Options{Calls: &x.node, MakeApart: x.node.makeApart, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
			if err := r.remake(t.Context(), &l); (err != nil) != x.fails {
				t.Errorf("got %v", err)
			}
			if l.Object != x.object || l.Known != x.known || len(l.Writes) != x.writes {
				t.Errorf("object %d at version %d with %d writes is left, want %d, %d, %d", l.Object, l.Known, len(l.Writes), x.object, x.known, x.writes)
			}
			if (x.node.made != nil) != x.sent || x.node.made.GetObject() != 0 {
				t.Errorf("sent was %v", x.node.made)
			}
		})
	}
}

func TestRemake_RefusesABadRecord(t *testing.T) {
	l := content.Leftover{Object: 20, Writes: []content.Numbered{{Written: content.Written{Kind: content.WriteCreate, Data: []byte{0xff}}}}}
	if err := New(Options{}).remake(t.Context(), &l); !fault.Is(err, fault.Corrupt) {
		t.Errorf("got %v, want that the journal is corrupt", err)
	}
}

func TestRecover_NeedsNoFolder(t *testing.T) {
	r := New(Options{})
	r.Recover(t.Context())
	if err := r.Await(t.Context(), 7); err != nil {
		t.Error(err)
	}
	if list := r.Waiting(); len(list) != 0 {
		t.Errorf("it waits for %v", list)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
