package calls

import (
	"testing"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/tree"
)

// TestSender_SaysWhatItKnowsOfAFile has answers of an active and of side logs show
// versions of a file, and looks at what an operation then wants of a side.
func TestSender_SaysWhatItKnowsOfAFile(t *testing.T) {
	const f, side = 7, uint64(tree.FirstOfSide) + 3
	s := New(Options{})
	commit := &pb.Operation{Op: &pb.Operation_Commit{Commit: &pb.Commit{Object: f}}}
	for _, x := range []struct {
		what     string
		version  uint64
		merged   uint64 // of the side log
		active   uint64
		sideBase uint64
	}{
		{"the active", 5, 0, 5, 0},
		{"an older copy", 4, 0, 5, 0},
		{"a newer copy", 6, 0, 6, 0},
		{"a side log", side, 0, 6, side},
		{"a newer copy that lacks the side's", 7, 0, 7, side},
		{"the side log again", side + 1, 0, 7, side + 1},
		{"the active, before it is merged", 8, side, 8, side + 1},
		{"the active, once it is merged", 9, side + 1, 9, 0},
		{"the active, asked before", 8, side, 9, 0},
	} {
		s.noteVersion(&pb.Attr{Object: f, Mode: tree.TypeRegular, Version: x.version, SideVersion: x.merged})
		if s.setBase(commit); commit.Base != x.active || commit.SideBase != x.sideBase {
			t.Errorf("%s answered with %d: a node must have %d and %d, want %d and %d", x.what, x.version, commit.Base, commit.SideBase, x.active, x.sideBase)
		}
	}
	s.NoteName(1, "f", ids.Object(f))
	for what, op := range map[string]*pb.Operation{
		"link":                    {Op: &pb.Operation_Link{Link: &pb.Link{Object: f}}},
		"rename of a known name":  {Op: &pb.Operation_Rename{Rename: &pb.Rename{Dir: 1, Name: []byte("f")}}},
		"rename of a seen object": {Op: &pb.Operation_Rename{Rename: &pb.Rename{Dir: 2, Name: []byte("x"), Object: f}}},
	} {
		if s.setBase(op); op.Base != 9 {
			t.Errorf("%s: a side must have %d, want 9", what, op.Base)
		}
	}
	other := &pb.Operation{Op: &pb.Operation_Commit{Commit: &pb.Commit{Object: f + 1}}, Base: 1, SideBase: 1}
	if s.setBase(other); other.Base != 0 || other.SideBase != 0 {
		t.Errorf("of another file a side must have %d and %d, want nothing", other.Base, other.SideBase)
	}
	s.noteVersion(&pb.Attr{Object: 9, Mode: tree.TypeDir, Version: 5})
	if len(s.known) != 1 {
		t.Errorf("%d objects are remembered, want the file alone", len(s.known))
	}
}

// TestVersions_CountsWhatIsMerged answers with attributes of a file of which a side log
// made something.
func TestVersions_CountsWhatIsMerged(t *testing.T) {
	const side = uint64(tree.FirstOfSide) + 3
	at := func(version, merged uint64) *pb.GetAttrResponse {
		return &pb.GetAttrResponse{Attr: &pb.Attr{Mode: tree.TypeRegular, Version: version, SideVersion: merged}}
	}
	refused := &pb.GetAttrResponse{Refusal: &pb.Refusal{}}
	for _, x := range []struct {
		what   string
		known  versions
		answer *pb.GetAttrResponse
		want   bool
	}{
		{"the side log", versions{6, side}, at(side, 0), false},
		{"a copy with neither the side log nor the merge", versions{6, side}, at(7, 0), false},
		{"a copy with the merge of an older version", versions{6, side}, at(7, side-1), false},
		{"a copy with the merge", versions{6, side}, at(7, side), true},
		{"a node without a copy", versions{6, side}, refused, false},
		{"a copy, where the content was not changed", versions{5, 0}, at(5, 0), true},
		{"a side log, where the content was not changed", versions{5, 0}, at(side, 0), false},
		{"a node without a copy, where the content was not changed", versions{5, 0}, refused, true},
	} {
		if got := x.known.isIn(x.answer); got != x.want {
			t.Errorf("%s: it is merged: %v, want %v", x.what, got, x.want)
		}
	}
}
