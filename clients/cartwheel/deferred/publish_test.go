package deferred

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/clients/pending"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

func TestPublish_TellsTheActiveOnce(t *testing.T) {
	f := newFixture(t)
	file := f.make(dir, "a", 20)
	for range 2 {
		if err := f.Publish(t.Context(), file.Object); err != nil {
			t.Fatal(err)
		}
	}
	if got := f.sentNames(); got != "a" {
		t.Errorf("sent were %q, want a", got)
	}
	if f.Len() != 0 || f.Published() != 1 {
		t.Errorf("%d are left, %d are published", f.Len(), f.Published())
	}
	if a, _, ok := f.names.Attr(file.Object); !ok || a.Version != 5 {
		t.Errorf("the cache has %v, want version 5", a)
	}
	if f.told[file.Object] != 5 || f.kept.Get(file.Object).GetSerial() != 3 {
		t.Errorf("the journal heard of version %d, the receipt is %v", f.told[file.Object], f.kept.Get(file.Object))
	}
	if err := f.Refusal(file.Object); err != nil {
		t.Errorf("it was refused: %v", err)
	}
}

func TestPublish_SendsTheFirstContentAlong(t *testing.T) {
	f := newFixture(t)
	file := f.make(dir, "a", 20)
	if !f.Claim(file) {
		t.Fatal("it is claimed")
	}
	commit := &content.Commit{Splice: &pb.Commit{Size: proto64(3), MtimeNs: 9, Append: true}, Body: [][]byte{[]byte("abc")}, As: &calls.Writer{Level: 2}}
	if _, err := f.PublishClaimed(t.Context(), file, commit); err != nil {
		t.Fatal(err)
	}
	o := f.sent[0]
	c := o.Op.GetCreate()
	if o.Level != 2 || string(o.Body[0]) != "abc" || c.Commit.GetMtimeNs() != 9 || c.Commit.Append || !c.Exclusive || !c.Alone {
		t.Errorf("sent was %+v at level %d", c, o.Level)
	}
}

func TestPublish_TakesBackWhatIsRefused(t *testing.T) {
	for _, x := range []struct {
		name string
		err  error
		told bool // the journal hears of the refusal
	}{
		{"refused", failure(fault.Permission), true},
		{"not known", calls.OutcomeOpen(failure(fault.TimedOut)), false},
	} {
		t.Run(x.name, func(t *testing.T) {
			f := newFixture(t)
			file := f.make(dir, "a", 20)
			f.fails(x.err)
			if err := f.Publish(t.Context(), file.Object); kind(err) != kind(x.err) {
				t.Errorf("got %v, want %v", err, x.err)
			}
			if e, _, ok := f.names.Lookup(dir, "a"); ok && e.Object != 0 {
				t.Error("the name is still there")
			}
			if len(f.doubted) != 2 || f.doubted[0] != dir || f.doubted[1] != file.Object {
				t.Errorf("in doubt are %v", f.doubted)
			}
			if _, told := f.told[file.Object]; told != x.told {
				t.Errorf("the journal heard of it: %v, want %v", told, x.told)
			}
			if err := f.Refusal(file.Object); kind(err) != kind(x.err) {
				t.Errorf("the close returns %v", err)
			}
			if err := f.Refusal(file.Object); err != nil {
				t.Errorf("the second close returns %v", err)
			}
			if !f.IsSober(soberFor-1) || f.IsSober(soberFor) {
				t.Error("files are to be made at their active for the wrong time")
			}
		})
	}
}

func TestPublish_KeepsAFileWhoseNameIsTaken(t *testing.T) {
	f := newFixture(t)
	file := f.make(dir, "a", 20)
	f.fails(failure(fault.Exists))
	if err := f.Publish(t.Context(), file.Object); kind(err) != fault.Exists {
		t.Errorf("got %v, want that it exists", err)
	}
	if got, want := f.sentNames(), fmt.Sprintf("a a.conflict-%x", uint64(file.Object)); got != want {
		t.Errorf("sent were %q, want %q", got, want)
	}
	long := &pending.File{Object: file.Object, Name: string(make([]byte, mount.NameMax))}
	if n := len(conflictName(long)); n != mount.NameMax {
		t.Errorf("the copy's name has %d bytes", n)
	}
}

func TestPublish_IsTriedAgainWithoutItsChunks(t *testing.T) {
	f := newFixture(t)
	file := f.make(dir, "a", 20)
	f.fails(failure(fault.Missing))
	if !f.Claim(file) {
		t.Fatal("it is claimed")
	}
	if _, err := f.PublishClaimed(t.Context(), file, nil); kind(err) != fault.Missing {
		t.Errorf("got %v, want that chunks are missing", err)
	}
	if !f.Claim(file) {
		t.Fatal("the claim was not given back")
	}
	if _, err := f.PublishClaimed(t.Context(), file, nil); err != nil || f.Len() != 0 {
		t.Errorf("%v, and %d are left", err, f.Len())
	}
}

func TestPublish_EndsWithTheClient(t *testing.T) {
	f := newFixture(t)
	file := f.make(dir, "a", 20)
	f.over = true
	if err := f.Publish(t.Context(), file.Object); kind(err) != fault.Closed {
		t.Errorf("got %v, want that it is closed", err)
	}
	if !f.Claim(file) {
		t.Error("the claim was not given back")
	}
	ran := false
	if f.PublishSoon(Every, nil, func() { ran = true }); !ran {
		t.Error("no answer comes once the client has ended")
	}
}

func TestPublish_OutlivesItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		file := f.make(dir, "a", 20)
		f.answer = func(*pb.Create) error { time.Sleep(time.Minute); return nil }
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := f.Publish(short, file.Object); err == nil {
			t.Error("it was published at once")
		}
		if err := f.Publish(t.Context(), file.Object); err != nil || f.sentNames() != "a" {
			t.Errorf("%v; sent were %q", err, f.sentNames())
		}
	})
}

func TestPublishAll_BoundsWhatIsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		var now, most atomic.Int64
		f.answer = func(*pb.Create) error {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(time.Second)
			now.Add(-1)
			return nil
		}
		for i := range 3 * publishAtOnce {
			f.make(dir, fmt.Sprint(i), uint64(20+i))
		}
		other := f.make(below, "other", 2000)
		if err := f.PublishDir(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
		if got := most.Load(); got != publishAtOnce {
			t.Errorf("%d were in flight, want %d", got, publishAtOnce)
		}
		if f.Len() != 1 || f.Of(other.Object) == nil {
			t.Errorf("%d are left, want the one of another directory", f.Len())
		}
	})
}

func TestPublishAll_SaysWhyOneWasRefused(t *testing.T) {
	f := newFixture(t)
	f.make(dir, "a", 20)
	f.make(dir, "b", 21)
	f.fails(failure(fault.Permission))
	if err := f.PublishAll(t.Context(), Every); kind(err) != fault.Permission {
		t.Errorf("got %v", err)
	}
	if f.Published() != 1 || f.Len() != 0 {
		t.Errorf("%d are published, %d are left", f.Published(), f.Len())
	}
}

// TestPublishFor_GoesByTheOperation publishes what an operation depends on, of four
// files: a and b in a directory, c and d in the directory below in it.
func TestPublishFor_GoesByTheOperation(t *testing.T) {
	a, at := uint64(ids.NewObject(1, 20)), func(name string) []byte { return []byte(name) }
	d, b := uint64(dir), uint64(below)
	for _, x := range []struct {
		name string
		op   *pb.Operation
		want string
	}{
		{"a create", &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{Dir: d, Name: at("b")}}}, "b"},
		{"a create of another name", &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{Dir: d, Name: at("x")}}}, ""},
		{"a name for an object", &pb.Operation{Op: &pb.Operation_LinkName{LinkName: &pb.LinkName{Dir: d, Name: at("b")}}}, "b"},
		{"a link", &pb.Operation{Op: &pb.Operation_Link{Link: &pb.Link{Object: a, Dir: d, Name: at("b")}}}, "a b"},
		{"an unlink", &pb.Operation{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: d, Name: at("a")}}}, "a"},
		{"a removal of a directory", &pb.Operation{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: d, Name: at("below"), Directory: true}}}, "c"},
		{"a rename onto a directory", &pb.Operation{Op: &pb.Operation_Rename{Rename: &pb.Rename{Dir: d, Name: at("a"), NewDir: d, NewName: at("below")}}}, "a c"},
		{"a change of a file", &pb.Operation{Op: &pb.Operation_SetAttr{SetAttr: &pb.SetAttr{Object: a}}}, "a"},
		{"a change of a directory", &pb.Operation{Op: &pb.Operation_SetAttr{SetAttr: &pb.SetAttr{Object: b}}}, "c"},
		{"an attribute of a directory", &pb.Operation{Op: &pb.Operation_SetXattr{SetXattr: &pb.SetXattr{Object: b}}}, "c"},
		{"a hold", &pb.Operation{Op: &pb.Operation_Hold{Hold: &pb.Hold{Object: a}}}, "a"},
		{"a commit", &pb.Operation{Op: &pb.Operation_Commit{Commit: &pb.Commit{Object: a}}}, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			f := newFixture(t)
			f.make(dir, "a", 20)
			f.make(dir, "b", 21)
			f.make(below, "c", 22)
			f.PublishFor(t.Context(), x.op)
			if got := f.sentNames(); got != x.want {
				t.Errorf("published were %q, want %q", got, x.want)
			}
		})
	}
}

// TestPublish_KeepsTheOrderOfFilesAndNames removes a file that its active has not
// heard of, and makes another one behind that.
func TestPublish_KeepsTheOrderOfFilesAndNames(t *testing.T) {
	f := newFixture(t)
	a := f.make(dir, "a", 20)
	f.remove(dir, "a", a.Object)
	b := f.make(dir, "b", 21)
	before := f.stream.Newest(1)
	b.Behind = func(ctx context.Context) error { return f.stream.Await(ctx, before) }
	if err := f.Publish(t.Context(), b.Object); err != nil {
		t.Fatal(err)
	}
	if got := f.sentNames(); got != "a -a b" {
		t.Errorf("sent were %q", got)
	}
	if f.Len() != 0 || f.stream.Len() != 0 || f.stream.Sent() != 1 {
		t.Errorf("%d files and %d operations are left, %d were sent", f.Len(), f.stream.Len(), f.stream.Sent())
	}
}

// TestPublishFor_KeepsTheOrder has operations wait for all that was done here before
// in their slices.
func TestPublishFor_KeepsTheOrder(t *testing.T) {
	gone, here, elsewhere := ids.NewObject(1, 30), ids.NewObject(1, 40), ids.NewObject(2, 40)
	for _, x := range []struct {
		name string
		op   *pb.Operation
		want string
	}{
		{"a create", &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{Dir: uint64(dir)}}}, "-gone"},
		{"a create in another slice", &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{Dir: uint64(elsewhere)}}}, ""},
		{"a rename from another slice", &pb.Operation{Op: &pb.Operation_Rename{Rename: &pb.Rename{Dir: uint64(elsewhere), NewDir: uint64(here)}}}, "-gone"},
		{"a commit", &pb.Operation{Op: &pb.Operation_Commit{Commit: &pb.Commit{Object: uint64(here)}}}, "-gone"},
		{"a commit in another slice", &pb.Operation{Op: &pb.Operation_Commit{Commit: &pb.Commit{Object: uint64(elsewhere)}}}, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			f := newFixture(t)
			m := f.names.MarkDir(below)
			f.names.Learn(&m, active, nil, func(l *names.Learner) { l.Entry(below, "gone", names.Entry{Object: gone, Type: mount.TypeRegular}) })
			f.remove(below, "gone", gone)
			f.PublishFor(t.Context(), x.op)
			if got := f.sentNames(); got != x.want {
				t.Errorf("sent were %q, want %q", got, x.want)
			}
		})
	}
}

func TestPublishOld_TellsOfFilesThatStayOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		start := time.Now()
		f.opt.Clock = func() time.Duration { return time.Since(start) }
		f.make(dir, "a", 20)
		done := make(chan struct{})
		go func() { defer close(done); f.PublishOld() }()
		time.Sleep(publishAfter)
		synctest.Wait()
		if n := f.Published(); n != 0 {
			t.Errorf("%d are published too early", n)
		}
		time.Sleep(publishAfter / 2)
		synctest.Wait()
		if n := f.Published(); n != 1 {
			t.Errorf("%d are published, want 1", n)
		}
		f.end()
		<-done
	})
}

func TestReserve_AsksWhenFewAreLeft(t *testing.T) {
	f := newFixture(t)
	var c pb.Create
	if f.Want(&c, 1); c.Reserve != reserve || !c.Alone {
		t.Errorf("without IDs, %d are asked for", c.Reserve)
	}
	f.Got(&pb.Result{First: uint64(ids.NewObject(1, 100)), Numbers: reserveBelow})
	if got := f.Reserve(1); got != 0 {
		t.Errorf("with enough IDs, %d are asked for", got)
	}
	if got := f.Reserve(2); got != reserve {
		t.Errorf("for another slice, %d are asked for", got)
	}
	if _, ok := f.ID(1); !ok || f.Reserve(1) != reserve {
		t.Error("with one fewer, none are asked for")
	}
}

func TestRefusals_AreBounded(t *testing.T) {
	f := newFixture(t)
	for i := range pending.MaxFiles + 10 {
		f.refuse(&pending.File{Object: ids.NewObject(1, uint64(20+i)), Dir: dir}, failure(fault.Permission), true)
	}
	if n := len(f.refused); n != pending.MaxFiles {
		t.Errorf("%d refusals are kept", n)
	}
}

func proto64(v uint64) *uint64 { return &v }
