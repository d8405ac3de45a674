package calls

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/tree"
)

// TestSender_SaysWhatItKnowsOfAFile has answers of an active and of side logs show
// versions of a file, and looks at what an operation then wants of a side.
func TestSender_SaysWhatItKnowsOfAFile(t *testing.T) {
	const f, side = 7, uint64(tree.FirstOfSide) + 3
	s := New(Options{Wall: still})
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
		{"the side log", versions{active: 6, side: side}, at(side, 0), false},
		{"a copy with neither the side log nor the merge", versions{active: 6, side: side}, at(7, 0), false},
		{"a copy with the merge of an older version", versions{active: 6, side: side}, at(7, side-1), false},
		{"a copy with the merge", versions{active: 6, side: side}, at(7, side), true},
		{"a node without a copy", versions{active: 6, side: side}, refused, false},
		{"a copy, where the content was not changed", versions{active: 5, side: 0}, at(5, 0), true},
		{"a side log, where the content was not changed", versions{active: 5, side: 0}, at(side, 0), false},
		{"a node without a copy, where the content was not changed", versions{active: 5, side: 0}, refused, true},
	} {
		if got := x.known.isIn(x.answer); got != x.want {
			t.Errorf("%s: it is merged: %v, want %v", x.what, got, x.want)
		}
	}
}

// still is a clock that stands.
func still() time.Time { return time.Unix(1000, 0) }

// TestNoteRead_RefusesWhatIsBehind has nodes show a file after another one did.
func TestNoteRead_RefusesWhatIsBehind(t *testing.T) {
	const f, side = 7, uint64(tree.FirstOfSide) + 3
	for _, x := range []struct {
		what   string
		known  versions
		answer *pb.Attr
		want   fault.Kind
	}{
		{"an older copy", versions{active: 5}, &pb.Attr{Version: 4}, fault.Again},
		{"the same", versions{active: 5}, &pb.Attr{Version: 5}, fault.None},
		{"the active, that has not merged a side log", versions{active: 5, side: side}, &pb.Attr{Version: 6, SideVersion: side - 1}, fault.Again},
		{"the active, that has merged it", versions{active: 5, side: side}, &pb.Attr{Version: 6, SideVersion: side}, fault.None},
		{"an older side log", versions{active: 5, side: side}, &pb.Attr{Version: side - 1, SideBegan: 5}, fault.Again},
		{"a newer one", versions{active: 5, side: side}, &pb.Attr{Version: side + 1, SideBegan: 5}, fault.None},
		{"a side log that began before what is known", versions{active: 5}, &pb.Attr{Version: side, SideBegan: 4}, fault.Again},
		{"one that began there", versions{active: 5}, &pb.Attr{Version: side, SideBegan: 5}, fault.None},
		{"an older copy of what was seen long ago", versions{active: 5, at: still().Add(-readsFor)}, &pb.Attr{Version: 4}, fault.None},
	} {
		for what, answer := range map[string]func(*pb.Attr) Answer{
			"attributes": func(a *pb.Attr) Answer { return &pb.GetAttrResponse{Attr: a} },
			"a name":     func(a *pb.Attr) Answer { return &pb.ResolveResponse{Steps: []*pb.ResolveResponse_Step{{}, {Attr: a}}} },
		} {
			s := New(Options{Wall: still})
			if s.known = map[ids.Object]versions{f: x.known}; x.known.at.IsZero() {
				x.known.at = still()
				s.known[f] = x.known
			}
			a := proto.Clone(x.answer).(*pb.Attr)
			a.Object, a.Mode = f, tree.TypeRegular
			if got := fault.KindOf(s.noteRead(t.Context(), nil, answer(a))); got != x.want {
				t.Errorf("%s shows %s: got %v, want %v", x.what, what, got, x.want)
			}
		}
	}
}
