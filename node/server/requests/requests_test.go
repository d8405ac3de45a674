package requests

import (
	"slices"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/tree"
)

func TestChain_NamesOtherMembersOnce(t *testing.T) {
	row := geoconfig.SliceRow{Members: []geoconfig.Member{{Node: "a"}, {Node: "b"}, {Node: "c"}}}
	got := chain(row, "a", []string{"b", "x", "a", "c", "b"})
	if want := []string{"b", "c"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := chain(geoconfig.SliceRow{}, "a", []string{"b"}); len(got) != 0 {
		t.Errorf("got %v for a slice that is not known, want none", got)
	}
}

func TestNamedDirectories_AreThoseWhoseNamesChange(t *testing.T) {
	for _, c := range []struct {
		name string
		op   *pb.Operation
		want []ids.Object
	}{
		{"create", &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{Dir: 3}}}, []ids.Object{3}},
		{"name of an object of another slice", &pb.Operation{Op: &pb.Operation_LinkName{LinkName: &pb.LinkName{Dir: 3}}}, []ids.Object{3}},
		{"unlink", &pb.Operation{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: 3}}}, []ids.Object{3}},
		{"link", &pb.Operation{Op: &pb.Operation_Link{Link: &pb.Link{Dir: 3}}}, []ids.Object{3}},
		{"rename", &pb.Operation{Op: &pb.Operation_Rename{Rename: &pb.Rename{Dir: 3, NewDir: 4}}}, []ids.Object{3, 4}},
		{"rename within a directory", &pb.Operation{Op: &pb.Operation_Rename{Rename: &pb.Rename{Dir: 3, NewDir: 3}}}, []ids.Object{3}},
		{"commit", &pb.Operation{Op: &pb.Operation_Commit{Commit: &pb.Commit{Object: 3}}}, nil},
		{"batch", &pb.Operation{Op: &pb.Operation_Batch{Batch: &pb.Batch{Operations: []*pb.Operation{
			{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: 3}}}, nil, {Op: &pb.Operation_Commit{Commit: &pb.Commit{Object: 5}}},
			{Op: &pb.Operation_Batch{Batch: &pb.Batch{Operations: []*pb.Operation{{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: 6}}}}}}},
			{Op: &pb.Operation_Create{Create: &pb.Create{Dir: 3, Object: 4}}}, {Op: &pb.Operation_Rename{Rename: &pb.Rename{Dir: 4, NewDir: 3}}}}}}}, []ids.Object{3, 4}},
	} {
		if got := namedDirectories(c.op); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestRefuseOwnStep_TakesStepsOfOtherSlices(t *testing.T) {
	step := func(intent tree.Intent, phase pb.Step_Phase) *pb.OperateRequest {
		return &pb.OperateRequest{Slice: 2, Operation: &pb.Operation{Op: &pb.Operation_Step{Step: &pb.Step{Intent: uint64(intent), Phase: phase}}}}
	}
	own, other := tree.Intent(ids.NewObject(2, 9)), tree.Intent(ids.NewObject(3, 9))
	for _, c := range []struct {
		name    string
		req     *pb.OperateRequest
		refused bool
	}{
		{"no step", &pb.OperateRequest{Slice: 2, Operation: &pb.Operation{}}, false},
		{"a step of another slice's intent", step(other, pb.Step_PREPARE), false},
		{"a step of the slice's own intent", step(own, pb.Step_PREPARE), true},
		{"the begin of an intent", step(other, pb.Step_BEGIN), true},
	} {
		if err := refuseOwnStep(c.req); fault.Is(err, fault.Permission) != c.refused {
			t.Errorf("%s: got %v, want it refused: %v", c.name, err, c.refused)
		}
	}
}

func TestCheckCues_LooksIntoBatches(t *testing.T) {
	create := func(level uint32) *pb.Operation {
		return &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{Cues: &pb.Cues{RepLevel: level}}}}
	}
	batch := func(list ...*pb.Operation) *pb.Operation {
		return &pb.Operation{Op: &pb.Operation_Batch{Batch: &pb.Batch{Operations: list}}}
	}
	if err := checkCues(batch(create(2), create(0))); err != nil {
		t.Errorf("a batch with cues that paths can spell: %v", err)
	}
	if err := checkCues(create(1000)); err == nil {
		t.Fatal("a cue that no path can spell is taken")
	}
	if err := checkCues(batch(create(2), create(1000))); err == nil {
		t.Error("in a batch, a cue that no path can spell is taken")
	}
}
