package operate

import (
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

func batchOf(list ...*pb.Operation) *pb.Operation {
	return &pb.Operation{Op: &pb.Operation_Batch{Batch: &pb.Batch{Operations: list}}}
}

var (
	anUnlink = &pb.Operation{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: uint64(ids.RootObject), Name: []byte("x")}}}
	aCreate  = &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{Dir: uint64(ids.RootObject), Name: []byte("y"), Mode: 0o100644}}}
)

// TestBatch_GrowsWithAnyOfIt sends batches to a slice whose disk is full. One that
// only frees space is run.
func TestBatch_GrowsWithAnyOfIt(t *testing.T) {
	s := newSingle(t)
	made := s.create("x", 1)
	reserve := s.hand(2, nil, &pb.Operation{Op: &pb.Operation_Batch{Batch: &pb.Batch{Reserve: 1}}})
	s.settle()
	s.o.Full = func(ids.Slice) bool { return true }
	aCreate.GetCreate().Object = reserve.Result.GetFirst()
	mixed := s.hand(3, nil, batchOf(anUnlink, aCreate))
	s.settle()
	if made.Err != nil || !fault.Is(mixed.Err, fault.NoSpace) {
		t.Errorf("a batch with a create: %+v, want NoSpace", mixed)
	}
	frees := s.hand(4, nil, batchOf(anUnlink, anUnlink))
	s.settle()
	if r := frees.Result.GetResults(); frees.Err != nil || len(r) != 2 || r[0].Kind != 0 || fault.Kind(r[1].Kind) != fault.NotFound {
		t.Errorf("a batch of removals: %+v", frees)
	}
}

// TestBatch_CountsInMemory charges a batch for each of its operations and what they
// bring beside the body.
func TestBatch_CountsInMemory(t *testing.T) {
	one := (&Operation{Op: batchOf(anUnlink)}).bytes()
	two := (&Operation{Op: batchOf(anUnlink, anUnlink)}).bytes()
	value := &pb.Operation{Op: &pb.Operation_SetXattr{SetXattr: &pb.SetXattr{Value: make([]byte, 60_000)}}}
	if large := (&Operation{Op: batchOf(value)}).bytes(); two-one < 500 || large-one < 60_000 {
		t.Errorf("one operation costs %d bytes, two %d, one with a large value %d", one, two, large)
	}
}
