package commits

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/deferred"
	"cartwheel.dev/clients/cartwheel/owed"
	"cartwheel.dev/clients/cartwheel/receipts"
	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/clients/pending"
	"cartwheel.dev/clients/session"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

const active ids.Node = "active"

var dir, file = ids.NewObject(1, 10), ids.NewObject(1, 20)

// always is a names.Sessions whose leases are good for ever.
type always struct{}

func (always) Before() uint64 { return 0 }

func (always) Accept(ids.Node, uint64, *pb.Grant) (session.Stamp, bool) { return session.Stamp{}, true }

func (always) Left(session.Stamp) time.Duration { return time.Hour }

// fixture is a Committer that is its own active.
type fixture struct {
	*Committer
	answer  *pb.Result
	fail    error // of operations
	owned   error
	locks   error
	sent    []calls.Operation
	doubted []ids.Object
	dropped []ids.Object
	learned int
}

// newFixture returns the Committer of a client that has a directory exclusively and
// knows a file of 8 bytes.
func newFixture(t *testing.T) *fixture {
	f := &fixture{answer: &pb.Result{Attr: &pb.Attr{Object: uint64(file)}, Offset: 8}}
	cache := names.New(always{}, names.Limits{})
	m := cache.MarkDir(dir)
	cache.Learn(&m, active, []*pb.Grant{{Object: uint64(dir), What: pb.Grant_NAMES}, {Object: uint64(dir), What: pb.Grant_ALONE}, {Object: uint64(file), What: pb.Grant_FILE}},
		func(l *names.Learner) {
			l.Attr(&pb.Attr{Object: uint64(file), Mode: mount.TypeRegular, Size: 8}, false)
			l.Complete(dir)
		})
	var kept receipts.Table
	publisher := deferred.New(deferred.Options{
		Context: t.Context(), Names: cache, Receipts: &kept, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Clock: func() time.Duration { return 0 },
		Told: func(ids.Object, uint64, uint64) {}, AdvancePages: func(ids.Object, uint64, uint64) {}, Doubt: func(...ids.Object) {}, Send: f.Operate,
	})
	f.Committer = New(Options{
		Calls: f, Owed: owed.New(), Names: cache, Deferred: publisher, ShowOwned: func(*pb.Commit) error { return f.owned },
		MayCommit: func(context.Context, ids.Object) error { return f.locks },
		Doubt:     func(list ...ids.Object) { f.doubted = append(f.doubted, list...) },
		DropPages: func(o ids.Object) { f.dropped = append(f.dropped, o) },
	})
	return f
}

// Operate implements Calls.
func (f *fixture) Operate(_ context.Context, o calls.Operation) (*pb.OperateResponse, ids.Node, error) {
	f.sent = append(f.sent, o)
	if f.fail != nil {
		return nil, active, f.fail
	}
	return &pb.OperateResponse{Result: f.answer}, active, nil
}

// Learn implements Calls.
func (f *fixture) Learn(*names.Mark, ids.Node, *pb.OperateResponse, *pb.Attr) { f.learned++ }

func TestCommit_ForgetsWhatIsNotSo(t *testing.T) {
	failure := func(k fault.Kind) error { return fault.E(k, "commits.test", "", "") }
	for _, x := range []struct {
		name             string
		change           func(*fixture)
		object           ids.Object
		appends          bool
		sent             int
		doubted, dropped bool
		fails            bool
	}{
		{"it is committed", func(*fixture) {}, file, false, 1, false, false, false},
		{"an append goes to the end that is known", func(*fixture) {}, file, true, 1, false, false, false},
		{"an append goes behind another client's", func(f *fixture) { f.answer.Offset = 9 }, file, true, 1, false, true, false},
		{"an append goes to a file of which nothing is known", func(*fixture) {}, file + 1, true, 1, false, true, false},
		{"no answer comes", func(f *fixture) { f.fail = calls.OutcomeOpen(failure(fault.TimedOut)) }, file, false, 1, true, false, true},
		{"it is refused", func(f *fixture) { f.fail = failure(fault.NoSpace) }, file, false, 1, false, true, true},
		{"chunks are missing, which are sent again", func(f *fixture) { f.fail = failure(fault.Missing) }, file, false, 1, false, false, true},
		{"the user cannot show the chunks", func(f *fixture) { f.owned = failure(fault.Missing) }, file, false, 0, false, false, true},
		{"a lock was lost", func(f *fixture) { f.locks = failure(fault.LostLock) }, file, false, 0, false, false, true},
	} {
		f := newFixture(t)
		x.change(f)
		_, err := f.Commit(t.Context(), content.Commit{Object: x.object, Splice: &pb.Commit{Append: x.appends, MtimeNs: 9}, As: &calls.Writer{Principal: &pb.Principal{Uid: 7}, Level: 2}})
		if (err != nil) != x.fails || (f.learned > 0) == x.fails {
			t.Errorf("%s: got %v, and learned %d times", x.name, err, f.learned)
		}
		if len(f.sent) != x.sent || x.sent > 0 && (f.sent[0].Principal.Uid != 7 || f.sent[0].Level != 2 || f.sent[0].Op.TimeNs != 9) {
			t.Errorf("%s: sent was %+v", x.name, f.sent)
		}
		if slices.Contains(f.doubted, x.object) != x.doubted || slices.Contains(f.dropped, x.object) != x.dropped {
			t.Errorf("%s: in doubt are %v, and the pages are dropped of %v", x.name, f.doubted, f.dropped)
		}
	}
}

func TestCommit_PublishesANewFile(t *testing.T) {
	f := newFixture(t)
	made := ids.NewObject(1, 30)
	p := &pending.File{Object: made, Dir: dir, Name: "f", Create: &pb.Create{Object: uint64(made), Dir: uint64(dir)}}
	if !f.opt.Deferred.Add(p, func() bool { return true }) {
		t.Fatal("no file can be made")
	}
	commit := content.Commit{Object: made, Splice: &pb.Commit{MtimeNs: 9}, Body: [][]byte{[]byte("abc")}}
	for i, isCreate := range []bool{true, false} {
		if _, err := f.Commit(t.Context(), commit); err != nil {
			t.Fatal(err)
		}
		o := f.sent[i]
		if (o.Op.GetCreate() != nil) != isCreate || string(o.Body[0]) != "abc" {
			t.Errorf("commit %d sent %v", i, o.Op)
		}
	}
}
