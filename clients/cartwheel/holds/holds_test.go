package holds

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/inodes"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/clients/session"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/pb"
)

const active ids.Node = "active"

var dir, file = ids.NewObject(1, 10), ids.NewObject(1, 20)

// always is a names.Sessions whose leases are good for ever.
type always struct{}

func (always) Before() uint64 { return 0 }

func (always) Accept(ids.Node, uint64, *pb.Grant) (session.Stamp, bool) { return session.Stamp{}, true }

func (always) Left(session.Stamp) time.Duration { return time.Hour }

// fixture is a Releaser that is its own active and content engine.
type fixture struct {
	*Releaser
	names *names.Cache
	nodes *inodes.Table

	mu        sync.Mutex // guards below
	fail      error
	elsewhere bool // another client has the files open
	released  []ids.Object
	inFlight  int
	most      int // of inFlight
	discarded []ids.Object
	resent    []ids.Object
}

// newFixture returns the Releaser of a client that knows one file.
func newFixture(t *testing.T) *fixture {
	f := &fixture{names: names.New(always{}, names.Limits{}), nodes: inodes.New(0)}
	start := time.Now()
	f.Releaser = New(Options{
		Context: t.Context(), OpTimeout: time.Minute, Clock: func() time.Duration { return time.Since(start) }, Calls: f, Names: f.names, Nodes: f.nodes,
		Client: func() uint64 { return 7 }, Engine: func() Engine { return f }, LastClosed: func(ids.Object) {},
		Spawn:      func(fn func()) bool { go fn(); return true },
		Background: func(fn func(context.Context)) bool { go fn(t.Context()); return true },
		Logger:     slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	f.learn(file, 1)
	return f
}

// learn learns a file's name and attributes under a lease.
func (f *fixture) learn(o ids.Object, nlink uint32) {
	m := f.names.MarkDir(dir)
	f.names.Learn(&m, active, []*pb.Grant{{Object: uint64(dir), What: pb.Grant_NAMES}, {Object: uint64(o), What: pb.Grant_FILE}}, func(l *names.Learner) {
		l.Attr(&pb.Attr{Object: uint64(o), Mode: mount.TypeRegular | 0o644, Nlink: nlink, Parent: uint64(dir)}, false)
		l.Entry(dir, "f", names.Entry{Object: o, Type: mount.TypeRegular})
	})
}

// Attr implements Calls.
func (f *fixture) Attr(_ context.Context, o ids.Object) (*pb.Attr, error) {
	a, _, ok := f.names.Attr(o)
	if !ok {
		return nil, fault.E(fault.Stale, "holds.test", "", "")
	}
	return a, nil
}

// Operate implements Calls.
func (f *fixture) Operate(_ context.Context, o calls.Operation) (*pb.OperateResponse, ids.Node, error) {
	f.mu.Lock()
	f.inFlight++
	f.most = max(f.most, f.inFlight)
	f.mu.Unlock()
	time.Sleep(time.Second)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inFlight--
	f.released = append(f.released, ids.Object(o.Op.GetHold().GetObject()))
	return &pb.OperateResponse{Result: &pb.Result{Existed: f.elsewhere}}, active, f.fail
}

// Discard implements Engine.
func (f *fixture) Discard(o ids.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.discarded = append(f.discarded, o)
}

// Send implements Engine.
func (f *fixture) Send(o ids.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resent = append(f.resent, o)
}

// settle returns when all is released that is to be.
func settle() {
	time.Sleep(time.Minute)
	synctest.Wait()
}

// is fails the test where a list is not the one that is wanted.
func is(t *testing.T, what string, got []ids.Object, want ...ids.Object) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s are %v, want %v", what, got, want)
	}
}

func TestRelease_ComesWithTheLastClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.nodes.CountOpen(file, mount.OpenWrite)
		f.nodes.CountOpen(file, mount.OpenRead)
		v := f.Victim(dir, "f", 0)
		if v.Object != file || v.Expect != 0 || !v.IsOpen {
			t.Fatalf("the victim is %+v", v)
		}
		f.Removed(file, nil, v.IsOpen)
		v.End()
		f.learn(file, 0)
		if !f.IsRemoved(file) {
			t.Error("it is not known to be removed")
		}
		if _, isLast := f.EndOpen(file, mount.OpenRead); isLast {
			t.Error("the first close is the last")
		}
		l, isLast := f.EndOpen(file, mount.OpenWrite)
		if !isLast {
			t.Fatal("the last close is not the last")
		}
		f.Release(l)
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := f.nodes.BeginOpen(short, file, mount.OpenRead); err == nil {
			t.Error("an open does not wait until the file is released")
		}
		if _, err := f.nodes.BeginOpen(t.Context(), file, mount.OpenRead); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		is(t, "the released", f.released, file)
		is(t, "the discarded", f.discarded, file)
		is(t, "those sent", f.resent)
	})
}

func TestRelease_SendsWhatIsDirtyOfAFileThatStays(t *testing.T) {
	for name, change := range map[string]func(*fixture){
		"another client has it open": func(f *fixture) { f.elsewhere = true },
		"it is not known":            func(f *fixture) { f.fail = fault.E(fault.TimedOut, "holds.test", "", "") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				change(f)
				f.Replaced(file, true)
				settle()
				is(t, "the discarded", f.discarded)
				is(t, "those sent", f.resent, file)
			})
		})
	}
}

func TestRelease_IsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		const files = 3*releasedAtOnce + 1
		for i := range files {
			f.Removed(ids.NewObject(1, uint64(100+i)), nil, true)
		}
		settle()
		if f.most != releasedAtOnce || len(f.released) != files || f.working != 0 {
			t.Errorf("%d of %d are released, %d at once, %d goroutines are left", len(f.released), files, f.most, f.working)
		}
	})
}

func TestRemoved_ReleasesNothingThatStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.Removed(0, nil, true)
		f.Removed(file, &pb.Attr{Mode: mount.TypeRegular, Nlink: 1}, true)
		if _, _, ok := f.names.Attr(file); !ok {
			t.Error("a file that has another name is forgotten")
		}
		f.Removed(file, nil, false)
		if _, _, ok := f.names.Attr(file); ok {
			t.Error("a file that is gone is not forgotten")
		}
		settle()
		is(t, "the released", f.released)
	})
}

func TestVictim_IsCheckedWhereNoLeaseTells(t *testing.T) {
	f := newFixture(t)
	for _, x := range []struct {
		name  string
		shown ids.Object
		want  Victim
	}{
		{"f", 99, Victim{Object: file}},
		{"other", 0, Victim{IsOpen: true}},
		{"other", 99, Victim{Object: 99, Expect: 99}},
	} {
		v := f.Victim(dir, x.name, x.shown)
		v.End()
		if v.Object != x.want.Object || v.Expect != x.want.Expect || v.IsOpen != x.want.IsOpen {
			t.Errorf("%s, shown as %v: got %+v, want %+v", x.name, x.shown, v, x.want)
		}
	}
}

func TestLingering_ReleasesFilesWithoutAName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		other := ids.NewObject(1, 21)
		f.learn(other, 0)
		var n inodes.Notice
		for _, o := range []ids.Object{file, other} {
			f.nodes.Look(o, cue.Set{}, false)
			f.nodes.NoteLookup(o, dir, "f", 1, f.opt.Clock())
			f.nodes.Revoke(o, &pb.RevokeRequest_Item{Object: uint64(o), What: pb.Grant_FILE, Unlinked: true}, f.opt.Clock(), &n, func(ids.Object) bool { return true })
		}
		f.EndLingering()
		synctest.Wait()
		is(t, "those released at once", f.released)
		settle()
		f.EndLingering()
		settle()
		is(t, "the released", f.released, other)
	})
}
