package lock

import (
	"fmt"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"pgregory.net/rapid"
)

const (
	bytesN = 8 // the twin's files; the last byte stands for all up to EOF
	owners = 4
	files  = 2
)

// cell is who has locked one byte of one file.
type cell map[Owner]Type

// naive is the twin: every byte by itself.
type naive [files][2][bytesN]cell

func owner(n int) Owner { return Owner{Client: uint64(1 + n/2), Owner: uint64(n)} }

func (l *Lock) bytes() (from, to int) {
	to = int(min(l.End, bytesN-1))
	return int(l.Start), to
}

func (n *naive) cells(l *Lock) []cell {
	kind := 0
	if l.Flock {
		kind = 1
	}
	from, to := l.bytes()
	out := n[int(l.Object)-1][kind][from : to+1]
	for i := range out {
		if out[i] == nil {
			out[i] = cell{}
		}
	}
	return out
}

func (n *naive) conflict(l *Lock) map[Owner]bool {
	out := map[Owner]bool{}
	for _, c := range n.cells(l) {
		for o, t := range c {
			if o != l.Owner && (t == Write || l.Type == Write) {
				out[o] = true
			}
		}
	}
	return out
}

func (n *naive) set(l *Lock) {
	for _, c := range n.cells(l) {
		if delete(c, l.Owner); l.Type != Unlock {
			c[l.Owner] = l.Type
		}
	}
}

// model is one run against the twin.
type model struct {
	*rapid.T
	table   *Table
	twin    naive
	waiting []*Waiter
	session [3]uint64 // the current one of each client
}

// TestTable_EqualsLocksOfEveryByte compares random locking with a model that
// keeps the holders of every byte. It checks that only the requests that
// conflict wait, and never in a circle.
func TestTable_EqualsLocksOfEveryByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{T: t, table: New(Config{MaxLocks: 1000, MaxWaiting: 1000, MaxLost: 10})}
		for range rapid.IntRange(5, 60).Draw(t, "steps") {
			m.step()
			m.check()
		}
		for n := range owners {
			for f := range files {
				m.woken(m.table.ReleaseOwner(ids.Object(f+1), owner(n)), owner(n), f+1)
			}
		}
		if held, waiting := m.table.Len(); held != 0 || waiting != 0 || len(m.table.files) != 0 || len(m.table.clients) != 0 || len(m.table.waiting) != 0 {
			t.Fatalf("left over: %d locks, %d waiters, %d files, %d clients", held, waiting, len(m.table.files), len(m.table.clients))
		}
	})
}

func (m *model) step() {
	switch k := rapid.IntRange(0, 9).Draw(m.T, "step"); {
	case k == 8 && len(m.waiting) > 0:
		if !m.table.Cancel(m.waiting[0]) {
			m.Fatal("a waiter cannot give up")
		}
		m.waiting = m.waiting[1:]
	case k == 9:
		client := uint64(rapid.IntRange(1, 2).Draw(m.T, "client"))
		before := m.session[client]
		m.session[client]++ // the session ends by itself, or because the client opens the next one
		var ended Ended
		if rapid.Bool().Draw(m.T, "lapses") {
			ended = m.table.End(client, before)
		} else {
			ended, _ = m.table.Begin(client, m.session[client])
		}
		want := map[ids.Object]bool{}
		for f := range files {
			for kind := range 2 {
				for _, c := range m.twin[f][kind] {
					for o := range c {
						if o.Client == client {
							want[ids.Object(f+1)] = true
							delete(c, o)
						}
					}
				}
			}
		}
		told := map[*Waiter]bool{}
		for _, w := range ended.Expired {
			told[w] = true
		}
		m.drop(func(w *Waiter) bool {
			if w.Client == client && !told[w] {
				m.Fatalf("%+v is forgotten without a word", w.Lock)
			}
			return w.Client == client
		})
		m.granted(ended.Woken)
		for _, o := range ended.Lost {
			if !want[o] {
				m.Fatalf("%v is lost and was not held", o)
			}
		}
		for o := range want {
			for range 2 { // asking does not forget it
				if !m.table.Lost(client, before, o) || m.table.Lost(client, m.session[client], o) {
					m.Fatalf("the loss of a lock on %v is not remembered for the session that lost it, and for no other", o)
				}
			}
		}
	default:
		m.request()
	}
}

func (m *model) request() {
	a := rapid.IntRange(0, bytesN-1).Draw(m.T, "start")
	b := rapid.IntRange(a, bytesN-1).Draw(m.T, "end")
	l := Lock{
		Object: ids.Object(rapid.IntRange(1, files).Draw(m.T, "file")), Owner: owner(rapid.IntRange(0, owners-1).Draw(m.T, "owner")),
		Flock: rapid.IntRange(0, 3).Draw(m.T, "flock") == 0, Start: uint64(a), End: uint64(b), Type: Type(rapid.IntRange(0, 2).Draw(m.T, "type")),
	}
	if b == bytesN-1 {
		l.End = EOF
	}
	wait := rapid.Bool().Draw(m.T, "wait")
	if ended, err := m.table.Begin(l.Client, m.session[l.Client]); err != nil || len(ended.Lost)+len(ended.Woken)+len(ended.Expired) > 0 {
		m.Fatalf("a request under the session that stands ends something: %+v, %v", ended, err)
	}
	if test, err := m.table.Test(l); err == nil && !l.Flock {
		if got, want := test != nil, l.Type != Unlock && len(m.twin.conflict(&l)) > 0; got != want {
			m.Fatalf("test of %+v: conflict %v, want %v", l, got, want)
		}
	}
	if l.Flock {
		l.Start, l.End = 0, EOF
		same := m.twin.cells(&l)[0]
		if t, ok := same[l.Owner]; !ok || t != l.Type {
			gone := l
			gone.Type = Unlock
			m.twin.set(&gone)
		}
	}
	want := len(m.twin.conflict(&l)) == 0 || l.Type == Unlock
	out := m.table.Set(l, wait, 0)
	if l.Flock { // lets go of the old lock, which others take, before it is looked at
		m.granted(out.Woken)
	}
	if out.Granted {
		m.twin.set(&l)
	}
	if !l.Flock {
		m.granted(out.Woken)
	}
	circle := m.circle(&l) // beside those who took what l let go
	switch {
	case out.Granted != want && len(out.Woken) == 0:
		m.Fatalf("%+v: granted %v, want %v (%v)", l, out.Granted, want, out.Err)
	case out.Granted:
	case !wait:
		if out.Conflict == nil || out.Waiter != nil {
			m.Fatalf("%+v: no conflict is named", l)
		}
	case fault.Is(out.Err, fault.Deadlock):
		if !circle {
			m.Fatalf("%+v: a deadlock where there is none", l)
		}
	case out.Err != nil:
		m.Fatal(out.Err)
	case out.Waiter == nil:
		m.Fatalf("%+v: neither granted nor waiting", l)
	default:
		if circle {
			m.Fatalf("%+v waits in a circle", l)
		}
		m.waiting = append(m.waiting, out.Waiter)
	}
}

// circle reports whether waiting for l would wait for its own owner.
func (m *model) circle(l *Lock) bool {
	seen := map[Owner]bool{}
	queue := m.twin.conflict(l)
	for len(queue) > 0 {
		next := map[Owner]bool{}
		for o := range queue {
			if seen[o] {
				continue
			}
			seen[o] = true
			for _, w := range m.waiting {
				if w.Owner == o {
					for b := range m.twin.conflict(&w.Lock) {
						next[b] = true
					}
				}
			}
		}
		queue = next
	}
	return seen[l.Owner]
}

func (m *model) drop(gone func(*Waiter) bool) {
	var rest []*Waiter
	for _, w := range m.waiting {
		if !gone(w) {
			rest = append(rest, w)
		}
	}
	m.waiting = rest
}

// granted takes over what woke up, which must have been possible.
func (m *model) granted(woken []*Waiter) {
	for _, w := range woken {
		if len(m.twin.conflict(&w.Lock)) > 0 {
			m.Fatalf("%+v was woken beside a conflict", w.Lock)
		}
		m.twin.set(&w.Lock)
		m.drop(func(o *Waiter) bool { return o == w })
	}
}

func (m *model) woken(woken []*Waiter, o Owner, file int) {
	for kind := range 2 {
		for _, c := range m.twin[file-1][kind] {
			delete(c, o)
		}
	}
	m.drop(func(w *Waiter) bool { return w.Owner == o && w.Object == ids.Object(file) })
	m.granted(woken)
}

// check compares the table's ranges with the twin's bytes.
func (m *model) check() {
	for f := range files {
		for kind := range 2 {
			var got, want [bytesN]cell
			for i := range got {
				got[i], want[i] = cell{}, m.twin[f][kind][i]
				if want[i] == nil {
					want[i] = cell{}
				}
			}
			if tf := m.table.files[space{ids.Object(f + 1), kind == 1}]; tf != nil {
				for i := range tf.held {
					from, to := tf.held[i].bytes()
					for b := from; b <= to; b++ {
						got[b][tf.held[i].Owner] = tf.held[i].Type
					}
					if i > 0 && tf.held[i].Start < tf.held[i-1].Start {
						m.Fatal("ranges are not in order")
					}
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				m.Fatalf("file %d: got %v, want %v", f+1, got, want)
			}
		}
	}
	for _, w := range m.waiting {
		if len(m.twin.conflict(&w.Lock)) == 0 {
			m.Fatalf("%+v waits for nothing", w.Lock)
		}
	}
}

// TestClaim_KeepsLocksFromBefore checks what a new active does with locks from
// before.
func TestClaim_KeepsLocksFromBefore(t *testing.T) {
	table := New(DefaultConfig())
	l := Lock{Object: ids.NewObject(3, 1), Owner: owner(0), End: EOF, Type: Write}
	table.AwaitClaims(3, 100)
	other := l
	other.Owner = owner(1)
	if out := table.Set(other, true, 99); !fault.Is(out.Err, fault.Again) {
		t.Errorf("a new lock while claims are awaited: %+v", out)
	}
	if lost := table.Claim([]Lock{l}); len(lost) != 0 {
		t.Errorf("a claim in time lost %v", lost)
	}
	if out := table.Set(other, false, 100); out.Granted || out.Conflict == nil || out.Conflict.Owner != l.Owner {
		t.Errorf("a lock beside a claimed one: %+v", out)
	}
	late := l
	late.Owner = owner(3)
	if lost := table.Claim([]Lock{late}); len(lost) != 1 {
		t.Errorf("a late claim lost %v", lost)
	}
	waiting := table.Set(other, true, 100)
	if waiting.Waiter == nil {
		t.Fatalf("%+v does not wait", waiting)
	}
	if refused := table.RefuseWaiting(3); len(refused) != 1 || refused[0] != waiting.Waiter {
		t.Errorf("the active stops for a while: refused %v", refused)
	}
	if held, w := table.Len(); held != 1 || w != 0 {
		t.Errorf("the active stops for a while: %d locks, %d waiters stay, want what is held", held, w)
	}
	waiting = table.Set(other, true, 100)
	if refused := table.ReleaseSlice(3); len(refused) != 1 || refused[0] != waiting.Waiter {
		t.Errorf("another active: refused %v", refused)
	}
	if held, w := table.Len(); held != 0 || w != 0 {
		t.Errorf("another active: %d locks, %d waiters stay", held, w)
	}
}

func TestTable_KeepsToItsLimits(t *testing.T) {
	table := New(Config{MaxLocks: 1, MaxWaiting: 0, MaxLost: 1})
	a := Lock{Object: 1, Owner: owner(0), End: 9, Type: Write}
	b := Lock{Object: 2, Owner: owner(1), End: 9, Type: Write}
	if out := table.Set(a, false, 0); !out.Granted {
		t.Fatal(out.Err)
	}
	if out := table.Set(b, false, 0); !fault.Is(out.Err, fault.NoLocks) {
		t.Errorf("one lock too many: %+v", out)
	}
	b.Object = 1
	if out := table.Set(b, true, 0); !fault.Is(out.Err, fault.NoLocks) {
		t.Errorf("one waiter too many: %+v", out)
	}
	table = New(Config{MaxLocks: 9, MaxWaiting: 9, MaxOwnWaiting: 1, MaxLost: 1})
	table.Set(a, false, 0)
	c, d := b, b
	c.Owner.Owner++
	d.Client++
	for _, try := range []struct {
		lock  Lock
		waits bool
	}{{b, true}, {c, false}, {d, true}} {
		if out := table.Set(try.lock, true, 0); (out.Waiter != nil) != try.waits {
			t.Errorf("where each client may wait once, %+v: %+v; want it to wait: %v", try.lock, out, try.waits)
		}
	}
	if out := table.Set(Lock{Object: 1, Start: 2, End: 1}, false, 0); !fault.Is(out.Err, fault.Invalid) {
		t.Errorf("a range that ends before it begins: %+v", out)
	}
}

// TestBegin_RefusesAnEndedSession checks that a session that its client has
// replaced gets nothing any more.
func TestBegin_RefusesAnEndedSession(t *testing.T) {
	table := New(DefaultConfig())
	if _, err := table.Begin(7, 2); err != nil {
		t.Fatal(err)
	}
	if _, err := table.Begin(7, 1); !fault.Is(err, fault.Expired) {
		t.Errorf("a request of the session before: got %v, want Expired", err)
	}
	if ended := table.End(7, 1); len(ended.Lost) != 0 {
		t.Errorf("the end of the session before took %v", ended)
	}
	if _, err := table.Begin(7, 2); err != nil {
		t.Errorf("the session that stands: %v", err)
	}
}
