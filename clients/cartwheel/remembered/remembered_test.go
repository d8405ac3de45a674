package remembered

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/clients/names"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/tree"
)

const limit = 200 * time.Millisecond

// silent is what asking a node that does not answer ends with.
var silent = fault.E(fault.TimedOut, "", "", "")

// table has the directories 1/a/b, of which a cue was looked up in b, and its clock.
func table(now *time.Duration) *Table {
	t := New(func() time.Duration { return *now })
	root, a, b := &pb.Attr{Object: 1, Parent: 1}, &pb.Attr{Object: 2, Parent: 1}, &pb.Attr{Object: 3, Parent: 2}
	t.NoteDir(1, "a", a)
	t.NoteDir(2, "b", b)
	t.NoteDir(1, "other", &pb.Attr{Object: 4, Parent: 1})
	t.Lead(b, cue.Terms{Limit: limit}, func(o ids.Object) (*pb.Attr, time.Duration, bool) { return root, 0, o == 1 })
	return t
}

func TestWay_LeadsToACueThatBoundsTheWaiting(t *testing.T) {
	var now time.Duration
	x := table(&now)
	for what, way := range map[string]*Way{"the root": x.Over(1), "a": x.Over(2), "b": x.Over(3), "the name a": x.To(1, "a"), "the name b": x.To(2, "b")} {
		if way == nil || way.terms.Limit != limit {
			t.Errorf("%s: got %+v", what, way)
		}
	}
	for what, way := range map[string]*Way{"another directory": x.Over(4), "its name": x.To(1, "other"), "a name of which nothing is known": x.To(1, "c"),
		"an operation that has a limit": x.Over(2).Of(cue.Terms{Limit: time.Second})} {
		if way != nil {
			t.Errorf("%s: got %+v, want none", what, way)
		}
	}
	y := New(func() time.Duration { return now })
	y.Lead(&pb.Attr{Object: 3, Parent: 2}, cue.Terms{}, func(ids.Object) (*pb.Attr, time.Duration, bool) { return nil, 0, false })
	if y.Over(3) != nil {
		t.Error("a cue that bounds nothing makes a way")
	}
}

func TestTake_AnswersAsKnownLastWhereNobodyDoes(t *testing.T) {
	var now time.Duration
	x := table(&now)
	asked := 0
	take := func(err error) (*pb.Attr, error) {
		return x.To(1, "a").Take(t.Context(), func(ctx context.Context) error {
			asked++
			if _, bounded := ctx.Deadline(); !bounded {
				t.Error("it is asked without a limit")
			}
			return err
		})
	}
	if last, err := take(nil); last != nil || err != nil {
		t.Errorf("a node answered: got %v, %v", last, err)
	}
	refused := fault.E(fault.Permission, "", "", "")
	if last, err := take(refused); last != nil || !errors.Is(err, refused) {
		t.Errorf("a node refused: got %v, %v", last, err)
	}
	if last, err := take(silent); last.GetObject() != 2 || err != nil {
		t.Errorf("no node answered: got %v, %v", last, err)
	}
	if last, _ := take(nil); last == nil || asked != 3 {
		t.Errorf("soon after it: got %v after %d questions, want no further one", last, asked)
	}
	now += awayFor
	if last, _ := take(nil); last != nil || asked != 4 {
		t.Errorf("later: got %v after %d questions, want one more", last, asked)
	}
}

func TestTake_IsTheCallersWhereItEnded(t *testing.T) {
	var now time.Duration
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if last, err := table(&now).Over(2).Take(ctx, func(context.Context) error { return silent }); last != nil || !errors.Is(err, silent) {
		t.Errorf("got %v, %v, want what it was told", last, err)
	}
}

func TestTable_KeepsTheNewest(t *testing.T) {
	x := New(func() time.Duration { return 0 })
	with := &pb.Attr{Object: 7, Change: 2, Content: &pb.Content{}}
	x.NoteAttr(with)
	x.NoteAttr(&pb.Attr{Object: 7, Change: 1})
	x.NoteAttr(&pb.Attr{Object: 7, Change: 2})
	if got, ok := x.Attr(7); !ok || got != with {
		t.Errorf("got %v", got)
	}
	x.NoteAttr(&pb.Attr{Object: 7, Change: 3})
	if got, _ := x.Attr(7); got.Change != 3 {
		t.Errorf("got %v, want the third", got)
	}
}

func TestTable_IsBounded(t *testing.T) {
	x := New(func() time.Duration { return 0 })
	for o := range ids.Object(5 * maxKept) {
		x.NoteAttr(&pb.Attr{Object: uint64(o)})
		x.NoteEntry(o, "n", names.Entry{Object: o})
		x.Attr(0) // which is in use
	}
	if n := len(x.attrs.young) + len(x.attrs.old); n > 2*maxKept {
		t.Errorf("%d are kept", n)
	}
	if n := len(x.at.young) + len(x.at.old); n > 2*maxKept {
		t.Errorf("%d names are kept", n)
	}
	if _, ok := x.Attr(0); !ok {
		t.Error("what is in use was forgotten")
	}
	if _, ok := x.Entry(5*maxKept-1, "n"); !ok {
		t.Error("the last name was forgotten")
	}
}

// TestNoteAttr_KeepsTheNewest has a side log and the active show a file, which number
// changes from different places on.
func TestNoteAttr_KeepsTheNewest(t *testing.T) {
	const side = uint64(tree.FirstOfSide)
	content := &pb.Content{Size: 3}
	for _, x := range []struct {
		what      string
		old, next *pb.Attr
		want      bool
	}{
		{"a newer one of the active", &pb.Attr{Version: 2, Change: 2}, &pb.Attr{Version: 3, Change: 3}, true},
		{"an older copy", &pb.Attr{Version: 3, Change: 3}, &pb.Attr{Version: 2, Change: 2}, false},
		{"a side log's", &pb.Attr{Version: 3, Change: 3}, &pb.Attr{Version: side + 1, Change: side + 1}, true},
		{"the active's, that lacks it", &pb.Attr{Version: side + 1, Change: side + 1}, &pb.Attr{Version: 4, Change: 4}, false},
		{"the active's, with it", &pb.Attr{Version: side + 1, Change: side + 1}, &pb.Attr{Version: 5, Change: 5, SideVersion: side + 1}, true},
		{"the active's, where a side log had other attributes alone", &pb.Attr{Version: 3, Change: side + 1}, &pb.Attr{Version: 3, Change: 5}, true},
		{"the same without content", &pb.Attr{Version: 3, Change: 3, Content: content}, &pb.Attr{Version: 3, Change: 3}, false},
	} {
		table := New(func() time.Duration { return 0 })
		table.NoteAttr(x.old)
		table.NoteAttr(x.next)
		if got, _ := table.Attr(0); proto.Equal(got, x.next) != x.want {
			t.Errorf("%s: kept is %v", x.what, got)
		}
	}
	table := New(func() time.Duration { return 0 })
	table.NoteAttr(&pb.Attr{Version: 3, Change: 3, Content: content})
	table.NoteAttr(&pb.Attr{Version: 3, Change: 4, Mode: 0o600})
	if got, _ := table.Attr(0); got.Content != content || got.Mode != 0o600 {
		t.Errorf("with other attributes and the same content: %v", got)
	}
}
