package calls

import (
	"testing"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/node/protocol/pb"
	"google.golang.org/protobuf/proto"
)

func TestWriter_SurvivesTheJournal(t *testing.T) {
	for _, clears := range []bool{false, true} {
		was := &Writer{Principal: &pb.Principal{Uid: 7, Gid: 8, Groups: []uint32{9}}, Level: 3}
		got := Decode(Encode(content.Open{As: was, ClearSetID: clears}))
		w, _ := got.As.(*Writer)
		if w == nil || !proto.Equal(w.Principal, was.Principal) || w.Level != was.Level || got.ClearSetID != clears {
			t.Errorf("got %+v, %v, want %+v, %v", w, got.ClearSetID, was, clears)
		}
	}
}

func TestWriter_ThatIsNotKnownClearsSetID(t *testing.T) {
	for _, who := range [][]byte{nil, {0}, {0, 0xff}} {
		got := Decode(who)
		if w, _ := got.As.(*Writer); w == nil || w.Principal == nil || !got.ClearSetID {
			t.Errorf("of %x: got %+v", who, got)
		}
	}
	if who := Encode(content.Open{}); who != nil {
		t.Errorf("a handle without a writer is kept as %x", who)
	}
}

func TestLevelOf_KnowsOnlyWriters(t *testing.T) {
	if level, ok := LevelOf(&Writer{Level: 2}); !ok || level != 2 {
		t.Errorf("got %d, %v", level, ok)
	}
	for _, as := range []any{nil, (*Writer)(nil), 7} {
		if level, ok := LevelOf(as); ok || level != 0 {
			t.Errorf("of %v: got %d, %v", as, level, ok)
		}
	}
}
