package calls

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/node/protocol/pb"
)

// wrote is a commit of extents.
func wrote(extents ...*pb.Extent) *pb.Operation {
	return &pb.Operation{Op: &pb.Operation_Commit{Commit: &pb.Commit{Extents: extents}}}
}

func fromBody(offset, length, at uint64) *pb.Extent {
	return &pb.Extent{Offset: offset, Length: length, Source: &pb.Extent_BodyOffset{BodyOffset: at}}
}

func hole(offset, length uint64) *pb.Extent {
	return &pb.Extent{Offset: offset, Length: length, Source: &pb.Extent_Hole{Hole: true}}
}

func sent(size uint64) *pb.Result {
	return &pb.Result{Attr: &pb.Attr{Size: size, Content: &pb.Content{Size: size, Sent: true}}}
}

func TestFillSent_GivesBackWhatTheOperationBrought(t *testing.T) {
	body := [][]byte{[]byte("ab"), []byte("cde"), []byte("f")}
	for name, x := range map[string]struct {
		op   *pb.Operation
		want string
		none bool
	}{
		"one extent through the parts": {op: wrote(fromBody(0, 6, 0)), want: "abcdef"},
		"two extents and a gap":        {op: wrote(fromBody(0, 1, 1), fromBody(3, 3, 3)), want: "b\x00\x00def"},
		"a hole":                       {op: wrote(hole(0, 2), fromBody(2, 2, 4)), want: "\x00\x00ef"},
		"grown beyond the extents":     {op: wrote(fromBody(0, 2, 0)), want: "ab\x00\x00"},
		"beyond the body":              {op: wrote(fromBody(0, 2, 5)), want: "ab", none: true},
		"beyond the file":              {op: wrote(fromBody(1, 6, 0)), want: "abcdef", none: true},
		"no commit":                    {op: &pb.Operation{Op: &pb.Operation_SetAttr{SetAttr: &pb.SetAttr{}}}, want: "ab", none: true},
		"too large":                    {op: wrote(fromBody(0, 1, 0)), want: strings.Repeat("a", 4097), none: true},
	} {
		r := sent(uint64(len(x.want)))
		fillSent(x.op, body, r)
		switch c := r.Attr.Content; {
		case x.none:
			if c != nil {
				t.Errorf("%s: got %v, want no content", name, c)
			}
		case !bytes.Equal(c.GetInline(), []byte(x.want)) || c.Sent:
			t.Errorf("%s: got %q, want %q", name, c.GetInline(), x.want)
		}
	}
}

func TestFillSent_FillsEachFileOfABatch(t *testing.T) {
	create := &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{Commit: wrote(fromBody(0, 2, 2)).GetCommit()}}}
	mode := &pb.Operation{Op: &pb.Operation_SetAttr{SetAttr: &pb.SetAttr{}}}
	batch := &pb.Operation{Op: &pb.Operation_Batch{Batch: &pb.Batch{Operations: []*pb.Operation{create, mode, wrote(fromBody(0, 2, 0)), create}}}}
	r := &pb.Result{Results: []*pb.Result{sent(2), {}, sent(2)}} // the last one did not run
	fillSent(batch, [][]byte{[]byte("abcd")}, r)
	if got := string(r.Results[0].Attr.Content.Inline) + " " + string(r.Results[2].Attr.Content.Inline); got != "cd ab" {
		t.Errorf("got %q", got)
	}
}

// TestFillSent_TakesWhatAnEarlierNodeSends leaves a result alone that has its content.
func TestFillSent_TakesWhatAnEarlierNodeSends(t *testing.T) {
	for name, c := range map[string]*pb.Content{"inline": {Size: 2, Inline: []byte("xy")}, "withheld": {Size: 2, Withheld: true}, "a manifest": {Size: 2, Root: make([]byte, 32)}} {
		r := &pb.Result{Attr: &pb.Attr{Size: 2, Content: c}}
		want := proto.CloneOf(r)
		if fillSent(wrote(fromBody(0, 2, 0)), [][]byte{[]byte("ab")}, r); !proto.Equal(r, want) {
			t.Errorf("%s: got %v", name, r)
		}
	}
}
