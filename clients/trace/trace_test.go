package trace_test

import (
	"context"
	"testing"
	"time"

	"cartwheel.dev/clients/trace"
)

func recorder(o trace.Options) *trace.Recorder {
	o.Clock = func() time.Duration { return 0 }
	return trace.New(o)
}

func count(t *testing.T, r *trace.Recorder, kind trace.Kind) trace.Count {
	t.Helper()
	for _, c := range r.Counts() {
		if c.Kind == kind.String() {
			return c
		}
	}
	return trace.Count{}
}

// TestOperation_SequentialCallsAdd counts calls one after the other once each,
// and calls side by side once together.
func TestOperation_SequentialCallsAdd(t *testing.T) {
	r := recorder(trace.Options{})
	o := r.Begin(trace.Create, trace.Caller{})
	o.End(o.Begin(), trace.Call{WAN: 1, Out: 10, In: 5})
	a, b := o.Begin(), o.Begin() // side by side
	o.End(a, trace.Call{WAN: 2, Out: 1, Between: 7})
	o.End(b, trace.Call{WAN: 1, Out: 1})
	c := o.Begin() // behind both
	o.End(c, trace.Call{Local: 1})
	o.End(o.Begin(), trace.Call{WAN: 1})
	r.End(o, nil)
	got := count(t, r, trace.Create)
	want := trace.Count{Kind: "create", Count: 1, WAN: 4, MostWAN: 4, Local: 1, Calls: 5, Out: 12, In: 5, Between: 7}
	if got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// TestClaim_CountsWorkOnce lets an operation wait for background work. The work
// is counted there, and by itself only if no operation waited.
func TestClaim_CountsWorkOnce(t *testing.T) {
	r := recorder(trace.Options{})
	work := r.Begin(trace.WriteBehind, trace.Caller{})
	o := r.Begin(trace.Flush, trace.Caller{})
	other := r.Begin(trace.Flush, trace.Caller{})
	mark, claimed := o.Begin(), o.Claim(work)
	second := other.Claim(work)
	work.End(work.Begin(), trace.Call{WAN: 2, Out: 100})
	r.EndWork(work, nil)
	o.Waited(mark, work, claimed)
	other.Waited(trace.Mark{}, work, second)
	r.End(o, nil)
	r.End(other, nil)
	if got := count(t, r, trace.Flush); got.WAN != 4 || got.Out != 100 || got.Calls != 1 {
		t.Errorf("those who waited: %+v, want 2 round trips each, the bytes once", got)
	}
	if got := count(t, r, trace.WriteBehind); got.Count != 0 {
		t.Errorf("the work was counted again: %+v", got)
	}
	alone := r.Begin(trace.WriteBehind, trace.Caller{})
	alone.End(alone.Begin(), trace.Call{WAN: 1})
	r.EndWork(alone, nil)
	if late := o.Claim(alone); late {
		t.Error("work that had ended was claimed")
	}
	if got := count(t, r, trace.WriteBehind); got.Count != 1 || got.WAN != 1 {
		t.Errorf("work that nobody waited for: %+v, want it counted", got)
	}
}

// TestWatch_KeepsOperationsOfAProcessOrUser keeps the operations of one process
// and its descendants, and of one user, while it is on.
func TestWatch_KeepsOperationsOfAProcessOrUser(t *testing.T) {
	r := recorder(trace.Options{Below: func(thread, process uint32) bool { return thread/10 == process }})
	do := func(pid, uid uint32, about string) {
		o := r.Begin(trace.Open, trace.Caller{PID: pid, UID: uid})
		o.End(o.Begin(), trace.Call{WAN: 1, Method: "getattr"})
		r.End(o, func() string { return about })
	}
	do(11, 0, "before")
	r.Watch("mine", 1, 0)
	r.Watch("user", 0, 1000)
	do(11, 0, "child")
	do(25, 0, "stranger")
	do(0, 0, "kernel")
	do(12, 1000, "both")
	list, err := r.Operations("mine", 0, 10)
	var names []string
	for _, x := range list {
		names = append(names, x.About)
	}
	if err != nil || len(names) != 3 || names[0] != "child" || names[1] != "kernel" || names[2] != "both" {
		t.Errorf("watch of a process: %v, %v", names, err)
	}
	if len(list) > 0 && (len(list[0].Calls) != 1 || list[0].Calls[0].Method != "getattr") {
		t.Errorf("its calls: %+v", list[0].Calls)
	}
	if list, _ := r.Operations("user", 0, 10); len(list) != 1 || list[0].About != "both" {
		t.Errorf("watch of a user: %+v", list)
	}
	counts, dropped, err := r.Seen("mine")
	if err != nil || dropped != 0 || len(counts) != 1 || counts[0].Count != 3 || counts[0].WAN != 3 {
		t.Errorf("counts: %+v, %d dropped, %v", counts, dropped, err)
	}
	r.Unwatch("mine")
	if _, _, err := r.Seen("mine"); err == nil {
		t.Error("a watch that has ended answers")
	}
	do(11, 0, "after")
	if got := count(t, r, trace.Open); got.Count != 6 {
		t.Errorf("%d operations in all, want 6: counts are always kept", got.Count)
	}
}

// TestRecorder_NilCountsNothing runs everything on nil.
func TestRecorder_NilCountsNothing(t *testing.T) {
	var r *trace.Recorder
	o := r.Begin(trace.Open, trace.Caller{})
	ctx := trace.With(context.Background(), o)
	if trace.From(ctx) != nil {
		t.Error("a context carries nothing, and gives something")
	}
	o.End(o.Begin(), trace.Call{WAN: 1})
	o.Waited(o.Begin(), nil, o.Claim(nil))
	r.End(o, nil)
	r.EndWork(o, nil)
}

// TestCarry_TakesTheOperationAlong takes an operation to another context.
func TestCarry_TakesTheOperationAlong(t *testing.T) {
	o := recorder(trace.Options{}).Begin(trace.Open, trace.Caller{})
	if got := trace.From(trace.Carry(context.Background(), trace.With(context.Background(), o))); got != o {
		t.Errorf("got %v, want the operation", got)
	}
}

// BenchmarkOperation is what counting costs an operation with one call.
func BenchmarkOperation(b *testing.B) {
	clock := time.Duration(0)
	r := trace.New(trace.Options{Clock: func() time.Duration { clock++; return clock }})
	b.ReportAllocs()
	for b.Loop() {
		o := r.Begin(trace.Open, trace.Caller{})
		ctx := trace.With(context.Background(), o)
		x := trace.From(ctx)
		x.End(x.Begin(), trace.Call{WAN: 1})
		r.End(o, nil)
	}
}
