package replica

import (
	"bytes"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/hlc"
)

// TestClients_BoundResultsByBytes lets many clients leave large results behind.
// The table keeps those of the clients that were used last. A member that took
// the table over goes on alike.
func TestClients_BoundResultsByBytes(t *testing.T) {
	const each, size = 10, 500
	limits := Limits{Clients: 1000, ResultBytes: 60_000, ClientLife: time.Hour}
	var c, taken clients
	c.init(&limits)
	taken.init(&limits)
	at := hlc.Time(1)
	for id := uint64(1); id <= 100; id++ {
		for n := uint64(0); n <= each; n++ {
			at++
			e := &Entry{Client: id, Number: n, Lowest: min(n, 1), Time: at}
			if n > 0 {
				e.Result = make([]byte, size)
			}
			c.apply(e, at-1)
			if id > 50 {
				taken.apply(e, at-1)
			}
		}
		if got := len(c.encode(nil)); got > limits.ResultBytes+100*32 {
			t.Fatalf("with %d clients the table has %d bytes", id, got)
		}
		if id == 50 {
			if err := taken.decode(c.encode(nil)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !bytes.Equal(taken.encode(nil), c.encode(nil)) {
		t.Error("a member that took the table over has another one now")
	}
	for id := uint64(1); id <= 100; id++ {
		x := c.find(id, at)
		if x == nil {
			t.Fatalf("client %d is not registered any more", id)
		}
		if kept := x.result(each) != nil; !kept && x.lowest != each+1 || kept && x.result(1) == nil {
			t.Errorf("client %d: result kept: %v, lowest %d, %d results", id, kept, x.lowest, len(x.results))
		} else if id > 92 && !kept || id < 50 && kept {
			t.Errorf("client %d: result kept: %v", id, kept)
		}
	}
}

// TestClients_AJumpOfTimeEndsNoRegistration has an active's clock be a day
// ahead. A repeated operation is known, also before the first entry of that time
// is applied. Registrations end with the time that goes by in steps.
func TestClients_AJumpOfTimeEndsNoRegistration(t *testing.T) {
	tr := newTrio(t)
	n := tr.nodes["a"]
	for _, e := range []Entry{{Client: 9}, {Client: 9, Number: 1, Lowest: 1, Data: []byte("x")}} {
		if got := tr.propose(t, e); got != fault.None {
			t.Fatal(got)
		}
	}
	_, last := n.Next(1)
	ahead := last + hlc.Time(25*time.Hour)
	known := func(when string, at hlc.Time, want Known) {
		t.Helper()
		if got, _ := n.Lookup(1, 9, 1, at); got != want {
			t.Errorf("%s: the operation is %v, want %v", when, got, want)
		}
	}
	known("before the first entry of that time", ahead, Done)
	n.Propose(tr.now, Proposal{Token: 1, Entry: Entry{Slice: 1, Time: ahead, Data: []byte("y")}})
	known("before it is applied", ahead+1, Done)
	tr.settle(t)
	if got := tr.propose(t, Entry{Client: 8}); got != fault.None {
		t.Fatal(got)
	}
	known("after it", ahead+2, Done)
	if got := tr.propose(t, Entry{Client: 9, Number: 2, Lowest: 1, Data: []byte("x")}); got != fault.None {
		t.Errorf("the client's next operation: %v", got)
	}
	_, at := n.Next(1)
	for range 23 {
		at += hlc.Time(time.Hour)
		if got := tr.propose(t, Entry{Data: []byte("y"), Time: at}); got != fault.None {
			t.Fatal(got)
		}
	}
	known("a day later, nearly", at+1, Done)
	known("a day later", at+hlc.Time(2*time.Hour), Unregistered)
	tr.propose(t, Entry{Data: []byte("y"), Time: at + hlc.Time(2*time.Hour)})
	tr.propose(t, Entry{Data: []byte("y")}) // the others hear that the one before is committed
	for id, m := range tr.nodes {
		g := m.groups[1]
		if g.clients.byID[9] != nil || g.applied == n.groups[1].applied && !bytes.Equal(g.clients.encode(nil), n.groups[1].clients.encode(nil)) {
			t.Errorf("%s has another table, or the client that expired", id)
		}
	}
}

// propose proposes an operation at the trio's active, and returns what came of it.
func (tr *trio) propose(t *testing.T, e Entry) fault.Kind {
	t.Helper()
	n := tr.nodes["a"]
	e.Slice = 1
	if _, last := n.Next(1); e.Time <= last {
		e.Time = last + 1
	}
	n.Propose(tr.now, Proposal{Token: 1, Entry: e})
	var kind fault.Kind
	if k := len(n.out.Replies); k > 0 { // it was refused
		kind = n.out.Replies[k-1].Kind
	}
	before := tr.done
	tr.settle(t)
	if tr.done != before+1 {
		t.Fatalf("there were %d replies", tr.done-before)
	}
	return kind
}

// TestClients_NewOneTakesAnIdleOnesPlace fills the table of registrations. New
// clients wait while all are in use, and then take the places of those that are
// idle. A client that lost its place registers anew, and none of its operations
// runs again.
func TestClients_NewOneTakesAnIdleOnesPlace(t *testing.T) {
	tr := newTrio(t)
	for _, n := range tr.nodes {
		n.c.Limits.Clients, n.c.Limits.ClientIdle = 3, time.Minute
	}
	for id := uint64(1); id <= 3; id++ {
		if got := tr.propose(t, Entry{Client: id}); got != fault.None {
			t.Fatalf("client %d: %v", id, got)
		}
	}
	op := Entry{Client: 1, Number: 1, Lowest: 1, Data: []byte("x")}
	if got := tr.propose(t, op); got != fault.None {
		t.Fatal(got)
	}
	if got := tr.propose(t, Entry{Client: 4}); got != fault.Overloaded {
		t.Errorf("a fourth client of three at once: %v", got)
	}
	_, last := tr.nodes["a"].Next(1)
	later := last + hlc.Time(2*time.Minute)
	if got := tr.propose(t, Entry{Client: 2, Number: 1, Lowest: 1, Data: []byte("x"), Time: later}); got != fault.None {
		t.Fatal(got)
	}
	for id := uint64(4); id <= 5; id++ {
		if got := tr.propose(t, Entry{Client: id, Time: later + hlc.Time(id)}); got != fault.None {
			t.Errorf("client %d while two are idle: %v", id, got)
		}
	}
	if got := tr.propose(t, Entry{Client: 6, Time: later + 6}); got != fault.Overloaded {
		t.Errorf("a client while none is idle: %v", got)
	}
	if got := tr.propose(t, op); got != fault.Expired {
		t.Errorf("a retry of a client that lost its place: %v, want expired", got)
	}
	if known, _ := tr.nodes["a"].Lookup(1, 2, 1, later); known != Done {
		t.Errorf("an operation of a client that is in use: %v, want done", known)
	}
	want := tr.nodes["a"].groups[1].clients.encode(nil)
	for id, n := range tr.nodes {
		if n.groups[1].applied == tr.nodes["a"].groups[1].applied && !bytes.Equal(n.groups[1].clients.encode(nil), want) {
			t.Errorf("%s has another table", id)
		}
	}
}

// TestClients_OneThatTakesNoAnswersWaits lets one client have many results
// outstanding. The active refuses more operations, except the one that the
// client waits for.
func TestClients_OneThatTakesNoAnswersWaits(t *testing.T) {
	tr := newTrio(t)
	tr.nodes["a"].c.Limits.ClientBytes = 1000
	if got := tr.propose(t, Entry{Client: 9}); got != fault.None {
		t.Fatal(got)
	}
	op := func(number, lowest uint64) fault.Kind {
		return tr.propose(t, Entry{Client: 9, Number: number, Lowest: lowest, Result: make([]byte, 300)})
	}
	for number := uint64(2); number <= 4; number++ {
		if got := op(number, 1); got != fault.None {
			t.Fatalf("operation %d: %v", number, got)
		}
	}
	if got := op(5, 1); got != fault.Overloaded {
		t.Errorf("with results of more than 1000 bytes untaken: %v", got)
	}
	if got := op(1, 1); got != fault.None {
		t.Errorf("the lowest: %v", got)
	}
	if got := op(5, 4); got != fault.None {
		t.Errorf("after the answers were taken: %v", got)
	}
}
