package framing

import (
	"errors"
	"runtime"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/protocol/pb"
)

// splice is an operation whose extents are n copies of an encoded one.
func splice(t *testing.T, n int, extent []byte) []byte {
	t.Helper()
	var list []byte
	for range n {
		list = protowire.AppendTag(list, 2, protowire.BytesType) // Commit.extents
		list = protowire.AppendBytes(list, extent)
	}
	op := (&pb.Operation{Op: &pb.Operation_Commit{Commit: &pb.Commit{}}}).ProtoReflect().Descriptor().Fields().ByName("commit")
	inner := protowire.AppendBytes(protowire.AppendTag(nil, op.Number(), protowire.BytesType), list)
	return protowire.AppendBytes(protowire.AppendTag(nil, 7, protowire.BytesType), inner) // OperateRequest.operation
}

func decodeRequest(encoded []byte) (taken uint64, m *pb.OperateRequest, err error) {
	var before, after runtime.MemStats
	m = &pb.OperateRequest{}
	runtime.ReadMemStats(&before)
	if err = CheckElements(encoded, m); err == nil {
		err = proto.Unmarshal(encoded, m)
	}
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, m, err
}

func TestCheckElements_BoundsDecodedMemory(t *testing.T) {
	bomb := splice(t, 2_000_000, nil)
	taken, _, err := decodeRequest(bomb)
	if !fault.Is(err, fault.TooLarge) || taken > 64<<10 {
		t.Errorf("%d empty extents: got %v, and %d bytes were allocated", 2_000_000, err, taken)
	}
	deep := []byte{}
	for range 5000 { // a principal in a principal in ..., which none has
		deep = protowire.AppendBytes(protowire.AppendTag(nil, 7, protowire.BytesType), deep)
	}
	if _, _, err := decodeRequest(deep); err != nil && !fault.Is(err, fault.TooLarge) && !errors.Is(err, proto.Error) {
		t.Errorf("deep nesting: got %v", err)
	}
	extent, err := proto.Marshal(&pb.Extent{Offset: 1 << 30, Length: 1 << 16, Source: &pb.Extent_Chunk{Chunk: make([]byte, 32)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, honest := range [][]byte{splice(t, 20_000, extent), splice(t, 1000, []byte{0x10, 1})} {
		if _, m, err := decodeRequest(honest); err != nil || len(m.GetOperation().GetCommit().GetExtents()) < 1000 {
			t.Errorf("an honest splice: got %d extents, %v", len(m.GetOperation().GetCommit().GetExtents()), err)
		}
	}
}
