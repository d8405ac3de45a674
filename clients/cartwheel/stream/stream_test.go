package stream

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/clients/pending"
	"cartwheel.dev/clients/session"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

const active ids.Node = "active"

// travel is how long a batch is on its way.
const travel = 100 * time.Millisecond

var dir, elsewhere = ids.NewObject(1, 10), ids.NewObject(2, 10)

// always is a names.Sessions whose leases are good for ever.
type always struct{}

func (always) Before() uint64 { return 0 }

func (always) Accept(ids.Node, uint64, *pb.Grant) (session.Stamp, bool) { return session.Stamp{}, true }

func (always) Left(session.Stamp) time.Duration { return time.Hour }

// fixture is a Stream whose active is a function.
type fixture struct {
	*Stream
	end context.CancelFunc

	mu sync.Mutex // guards below
	// answer is what comes of a batch, or of one operation by itself.
	answer  func(list []string) (*pb.Result, error)
	sent    []string
	now     int // batches on their way
	most    int
	doubted []ids.Object
}

func newFixture(t *testing.T, limit int) *fixture {
	f := &fixture{answer: done}
	ctx, end := context.WithCancel(t.Context())
	f.end = end
	start := time.Now()
	f.Stream = New(Options{
		Limit: limit, Context: ctx, Names: names.New(always{}, names.Limits{}), Clock: func() time.Duration { return time.Since(start) + time.Hour },
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Send: f.send, Reserve: func(ids.Slice) uint32 { return 0 }, Got: func(*pb.Result) {},
		PublishFile: func(_ context.Context, file *pending.File) error { f.note("file " + file.Name); return nil },
		Doubt:       func(list ...ids.Object) { f.mu.Lock(); defer f.mu.Unlock(); f.doubted = append(f.doubted, list...) },
		Spawn:       func(fn func()) bool { go fn(); return true },
		UntilKnown:  context.WithCancel,
	})
	return f
}

// done is the answer of an active that does everything.
func done(list []string) (*pb.Result, error) {
	r := &pb.Result{Serial: 9}
	for range list {
		r.Results = append(r.Results, &pb.Result{})
	}
	return r, nil
}

func (f *fixture) note(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent = append(f.sent, what)
}

func (f *fixture) all() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.sent, ", ")
}

// send is the active.
func (f *fixture) send(_ context.Context, o calls.Operation) (*pb.OperateResponse, ids.Node, error) {
	var list []string
	for _, x := range o.Op.GetBatch().GetOperations() {
		list = append(list, string(x.GetUnlink().GetName()))
	}
	f.mu.Lock()
	f.now++
	f.most = max(f.most, f.now)
	what := strings.Join(list, " ")
	if o.Op.GetBatch() == nil {
		what = "alone " + string(o.Op.GetUnlink().GetName())
	}
	f.sent = append(f.sent, what)
	answer := f.answer
	f.mu.Unlock()
	time.Sleep(travel)
	f.mu.Lock()
	f.now--
	f.mu.Unlock()
	r, err := answer(list)
	return &pb.OperateResponse{Result: r}, active, err
}

// do does an operation that removes a name.
func (f *fixture) do(d ids.Object, name string, change ...func(*Op)) *Op {
	o := &Op{Op: &pb.Operation{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Name: []byte(name)}}}, Name: name, Dir: d, Touches: []ids.Object{d}}
	for _, fn := range change {
		fn(o)
	}
	if !f.Append(context.Background(), o, func() bool { return true }) {
		return nil
	}
	return o
}

func TestStream_SendsInOrderOneBatchAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 0)
		f.do(dir, "a")
		f.do(dir, "b")
		time.Sleep(linger + travel/2)
		f.do(dir, "c")
		last := f.do(dir, "d")
		if err := f.Await(t.Context(), last); err != nil {
			t.Fatal(err)
		}
		if got := f.all(); got != "a b, c d" || f.most != 1 {
			t.Errorf("sent were %q, %d at a time", got, f.most)
		}
		if f.Len() != 0 || f.Sent() != 4 || f.Newest(1) != nil || f.Touches(dir) {
			t.Errorf("%d are left, %d were sent", f.Len(), f.Sent())
		}
	})
}

func TestStream_LingersUntilSomebodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 0)
		begun := time.Now()
		f.do(dir, "a")
		if err := f.Flush(t.Context(), dir); err != nil || time.Since(begun) != travel {
			t.Errorf("it took %v, %v", time.Since(begun), err)
		}
		f.do(dir, "b")
		time.Sleep(linger - 1)
		synctest.Wait()
		if got := f.all(); got != "a" {
			t.Errorf("sent were %q too early", got)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if got := f.all(); got != "a, b" {
			t.Errorf("sent were %q", got)
		}
		time.Sleep(travel)
	})
}

func TestStream_SlicesDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 0)
		f.do(dir, "a")
		f.do(elsewhere, "b")
		begun := time.Now()
		f.FlushAll(t.Context())
		if took := time.Since(begun); took != travel || f.most != 2 || f.Len() != 0 {
			t.Errorf("it took %v, %d at a time, %d are left", took, f.most, f.Len())
		}
	})
}

func TestStream_BatchesEndWhereTheyMust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 0)
		f.do(dir, "a")
		f.do(dir, "b", func(o *Op) { o.Level = 2 })
		f.do(dir, "c", func(o *Op) { o.Level, o.Principal = 2, &pb.Principal{Uid: 5} })
		f.do(dir, "d", func(o *Op) {
			o.Level, o.Principal, o.Files = 2, &pb.Principal{Uid: 5}, []*pending.File{{Name: "f"}}
		})
		f.do(dir, "e", func(o *Op) { o.Level, o.Principal = 2, &pb.Principal{Uid: 5} })
		if err := f.FlushSlice(t.Context(), 1); err != nil {
			t.Error(err)
		}
		if got := f.all(); got != "a, b, c, file f, d e" {
			t.Errorf("sent were %q", got)
		}
		for i := range batched + 5 {
			f.do(dir, fmt.Sprint(i))
		}
		if err := f.FlushSlice(t.Context(), 1); err != nil {
			t.Error(err)
		}
		if n := len(strings.Fields(f.sent[len(f.sent)-1])); n != 5 {
			t.Errorf("the last batch has %d operations, want 5", n)
		}
	})
}

// TestStream_ABatchHasRoomForManySmallFiles sends 300 files of 4 KiB.
func TestStream_ABatchHasRoomForManySmallFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 0)
		content := [][]byte{make([]byte, 4096)}
		for i := range 300 {
			f.do(dir, fmt.Sprint(i), func(o *Op) { o.Body = content })
		}
		if err := f.FlushSlice(t.Context(), 1); err != nil {
			t.Error(err)
		}
		var sizes []int
		for _, batch := range f.sent {
			sizes = append(sizes, len(strings.Fields(batch)))
		}
		if !slices.Equal(sizes, []int{256, 44}) {
			t.Errorf("the batches have %v files, want 256 and 44", sizes)
		}
	})
}

func TestStream_GoesOnBehindWhatRan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 0)
		f.answer = func(list []string) (*pb.Result, error) {
			r, _ := done(list)
			r.Results = r.Results[:min(len(r.Results), 2)]
			return r, nil
		}
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			f.do(dir, name)
		}
		f.FlushAll(t.Context())
		if got := f.all(); got != "a b c d e, c d e, e" {
			t.Errorf("sent were %q", got)
		}
	})
}

func TestStream_SendsByItselfWhatNoBatchTakes(t *testing.T) {
	for _, x := range []struct {
		name string
		err  error
	}{{"none of it ran", nil}, {"it was refused whole", fault.E(fault.NoSpace, "stream.test", "", "")}} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, 0)
				f.answer = func(list []string) (*pb.Result, error) {
					if len(list) == 2 {
						return &pb.Result{}, x.err
					}
					return done(list)
				}
				f.do(dir, "a")
				f.do(dir, "b")
				f.FlushAll(t.Context())
				if got := f.all(); got != "a b, alone a, b" {
					t.Errorf("sent were %q", got)
				}
			})
		})
	}
}

func TestStream_TellsOfARefusalOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 0)
		f.answer = func(list []string) (*pb.Result, error) {
			r, _ := done(list)
			r.Results[0].Kind = uint32(fault.Permission)
			return r, nil
		}
		f.do(dir, "a")
		b := f.do(dir, "b")
		if err := f.Flush(t.Context(), dir); err != nil {
			t.Errorf("who waits hears %v", err)
		}
		if err := b.Wait(t.Context()); err != nil {
			t.Errorf("the second one: %v", err)
		}
		if len(f.doubted) != 1 || f.doubted[0] != dir {
			t.Errorf("in doubt are %v", f.doubted)
		}
		if err := f.Refusal(dir); !fault.Is(err, fault.Permission) || f.Refusal(dir) != nil {
			t.Errorf("got %v once", err)
		}
		if f.do(dir, "c") != nil {
			t.Error("the next one is taken in at once")
		}
		time.Sleep(soberFor)
		if f.do(dir, "c") == nil {
			t.Error("none is taken in later")
		}
		f.FlushAll(t.Context())
	})
}

func TestAppend_WaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 4)
		f.do(dir, "a")
		f.do(dir, "b")
		short, cancel := context.WithTimeout(t.Context(), travel/2)
		defer cancel()
		if f.Append(short, &Op{Dir: dir}, func() bool { t.Error("it is checked without room"); return true }) {
			t.Error("there was no room")
		}
		begun := time.Now()
		if f.do(elsewhere, "x") == nil || time.Since(begun) > 0 {
			t.Error("a slice waits for another one's room")
		}
		if f.do(dir, "c") == nil {
			t.Error("it was not taken in")
		}
		f.FlushAll(t.Context())
		if got := f.all(); got != "a b, x, c" && got != "a b, c, x" {
			t.Errorf("sent were %q", got)
		}
	})
}

func TestAppend_RefusesWhatTheCheckRefuses(t *testing.T) {
	f := newFixture(t, 0)
	if f.Append(t.Context(), &Op{Dir: dir, Touches: []ids.Object{dir}}, func() bool { return false }) || f.Len() != 0 || f.Touches(dir) {
		t.Error("it was taken in")
	}
}

func TestStream_EndsWithTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 0)
		a := f.do(dir, "a")
		f.end()
		if err := a.Wait(t.Context()); !fault.Is(err, fault.Canceled) || !calls.IsUnknown(err) {
			t.Errorf("who waits hears %v", err)
		}
		if list := f.Waiting(); len(list) != 1 || list[0] != a {
			t.Errorf("%d are listed as not sent, want 1", len(list))
		}
		if f.do(dir, "b") != nil {
			t.Error("one more was taken in")
		}
	})
}

func TestMakes_UntilTheActiveHasIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 0)
		made := dir + 1
		f.do(dir, "a", func(o *Op) { o.Made = made })
		f.do(dir, "b")
		if !f.Makes(made) || f.Makes(dir) {
			t.Error("what is made is not known")
		}
		f.FlushAll(t.Context())
		if f.Makes(made) {
			t.Error("it is still being made")
		}
	})
}

// TestFlushSlice_SaysThatItDidNotWaitLongEnough gives up before the active has
// answered: fsync must not succeed then.
func TestFlushSlice_SaysThatItDidNotWaitLongEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 0)
		f.do(dir, "a")
		short, cancel := context.WithTimeout(t.Context(), travel/2)
		defer cancel()
		if err := f.FlushSlice(short, 1); !calls.IsUnknown(err) {
			t.Errorf("got %v, want that it is not known", err)
		}
		if err := f.FlushSlice(t.Context(), 1); err != nil {
			t.Errorf("once it is there: %v", err)
		}
	})
}
