package method_test

import (
	"reflect"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
)

func TestNames_ListsWhatAnOperationNamesByID(t *testing.T) {
	unseen := fields()
	// The fields that hold 9 only say what the caller saw, or what is made.
	for field, c := range map[string]struct {
		operation *pb.Operation
		want      []uint64
	}{
		"create":      {&pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{Dir: 1, Object: 9}}}, []uint64{1}},
		"make_object": {&pb.Operation{Op: &pb.Operation_MakeObject{MakeObject: &pb.MakeObject{Parent: 1, Object: 9}}}, []uint64{1}},
		"link_name":   {&pb.Operation{Op: &pb.Operation_LinkName{LinkName: &pb.LinkName{Dir: 1, Object: 9}}}, []uint64{1}},
		"unlink":      {&pb.Operation{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: 1, Object: 9}}}, []uint64{1}},
		"rename":      {&pb.Operation{Op: &pb.Operation_Rename{Rename: &pb.Rename{Dir: 1, NewDir: 2, Object: 9, Target: 9}}}, []uint64{1, 2}},
		"link":        {&pb.Operation{Op: &pb.Operation_Link{Link: &pb.Link{Object: 1, Dir: 2}}}, []uint64{1, 2}},
		"set_attr":    {&pb.Operation{Op: &pb.Operation_SetAttr{SetAttr: &pb.SetAttr{Object: 1}}}, []uint64{1}},
		"set_xattr":   {&pb.Operation{Op: &pb.Operation_SetXattr{SetXattr: &pb.SetXattr{Object: 1}}}, []uint64{1}},
		"commit":      {&pb.Operation{Op: &pb.Operation_Commit{Commit: &pb.Commit{Object: 1}}}, []uint64{1}},
		"hold":        {&pb.Operation{Op: &pb.Operation_Hold{Hold: &pb.Hold{Object: 1, Client: 9}}}, []uint64{1}},
		"step":        {&pb.Operation{Op: &pb.Operation_Step{Step: &pb.Step{Intent: 9}}}, nil},
		"reap":        {&pb.Operation{Op: &pb.Operation_Reap{Reap: &pb.Reap{Object: 9, Dir: 9}}}, nil},
		"grant_range": {&pb.Operation{Op: &pb.Operation_GrantRange{GrantRange: &pb.GrantRange{First: 9}}}, nil},
		"batch": {&pb.Operation{Op: &pb.Operation_Batch{Batch: &pb.Batch{Operations: []*pb.Operation{
			{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: 1}}}, {Op: &pb.Operation_SetAttr{SetAttr: &pb.SetAttr{Object: 4}}},
			{Op: &pb.Operation_Create{Create: &pb.Create{Dir: 1, Object: 9}}}, {Op: &pb.Operation_Create{Create: &pb.Create{Dir: 9, Object: 4}}},
			{Op: &pb.Operation_Batch{Batch: &pb.Batch{Operations: []*pb.Operation{{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: 9}}}}}}},
			nil, {Op: &pb.Operation_Rename{Rename: &pb.Rename{Dir: 2, NewDir: 9}}}}}}}, []uint64{1, 4, 2}},
		"merge": {&pb.Operation{Op: &pb.Operation_Merge{Merge: &pb.Merge{Object: 9, Name: &pb.Named{Dir: 9}}}}, nil},
		// What is named by its hash, or by the keys of dead manifests, no client names.
		"collect": {&pb.Operation{Op: &pb.Operation_Collect{Collect: &pb.Collect{Unused: []byte{9}}}}, nil},
		"none":    {&pb.Operation{}, nil},
	} {
		if got := method.Names(c.operation); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, want %v", field, got, c.want)
		}
		delete(unseen, protoreflect.Name(field))
	}
	for field := range unseen {
		t.Errorf("%s is new: say here what it names", field)
	}
}

// fields are the operations that there are, by their fields in the message.
func fields() map[protoreflect.Name]bool {
	out := map[protoreflect.Name]bool{}
	list := (&pb.Operation{}).ProtoReflect().Descriptor().Oneofs().ByName("op").Fields()
	for i := range list.Len() {
		out[list.Get(i).Name()] = true
	}
	return out
}

func TestTicket_FindsTheOneForAnObject(t *testing.T) {
	shown := []*pb.Ticket{{Object: 1, Ticket: []byte("one")}, {Object: 2, Ticket: []byte("two")}, {Object: 2, Ticket: []byte("again")}, {Object: 3}}
	for object, want := range map[uint64]string{0: "", 1: "one", 2: "two", 3: "", 4: ""} {
		if got := method.Ticket(shown, object); string(got) != want {
			t.Errorf("of object %d: got %q, want %q", object, got, want)
		}
	}
	if got := method.Ticket(nil, 1); got != nil {
		t.Errorf("of no tickets: got %q, want none", got)
	}
}
