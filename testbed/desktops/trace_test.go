package desktops

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// small is a world that takes little time: a fortnight of eight desktops.
func small() Options {
	o := Defaults()
	o.Seed, o.Desktops, o.Full, o.DiskBytes, o.Months = 1, 8, 2, 1e8, 0.5
	o.Habits.Files = 100
	return o
}

func events(o Options) []Event {
	var out []Event
	t := NewTrace(o)
	for e, ok := t.Next(); ok; e, ok = t.Next() {
		out = append(out, e)
	}
	return out
}

// differ counts the events that differ, after a change to each.
func differ(a, b []Event, change func(*Event)) int {
	n := max(len(a), len(b)) - min(len(a), len(b))
	for i := range min(len(a), len(b)) {
		x, y := a[i], b[i]
		change(&x)
		change(&y)
		if x != y {
			n++
		}
	}
	return n
}

func TestTrace_IsDeterminedByItsSeed(t *testing.T) {
	same := func(*Event) {}
	o := small()
	first := events(o)
	if n := differ(first, events(o), same); n != 0 {
		t.Errorf("%d of %d events differ between two traces of one seed", n, len(first))
	}
	o.Seed++
	if n := differ(first, events(o), same); n < len(first)/2 {
		t.Errorf("only %d of %d events differ between two seeds", n, len(first))
	}
}

func TestTrace_MovesChangeOnlyWhereUsersSit(t *testing.T) {
	o := small()
	few := events(o)
	o.Move = 0.8
	many := events(o)
	if n := differ(few, many, func(e *Event) { e.Machine = 0 }); n != 0 {
		t.Errorf("%d of %d events differ in more than the machine", n, len(few))
	}
	if n := differ(few, many, func(*Event) {}); n < len(few)/4 {
		t.Errorf("only %d of %d events are at other machines", n, len(few))
	}
}

func TestTrace_IsLikeThePapers(t *testing.T) {
	for _, move := range []float64{0.2, 0.5, 0.8} {
		o := Defaults()
		o.Seed, o.Move, o.Months, o.DiskBytes = 3, move, 1, 1e9
		f, err := Observe(o)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name            string
			got, want, give float64
		}{
			{"stats followed by another", f.Followed, 0.98, 0.002},
			{"median size over the paper's", float64(f.MedianSize) / math.Exp(sizeMu), 1.05, 0.1},
			{"logins elsewhere", f.Away, move, 0.04},
			{"opens a user and working day", float64(f.Opens) / float64(f.ByKind["login"]), o.Habits.Opens, 45},
			{"reads of opens", float64(f.ByKind["read"]) / float64(f.Opens), 0.88, 0.01},
		} {
			if math.Abs(c.got-c.want) > c.give {
				t.Errorf("moves %g: %s: got %g, want %g +- %g", move, c.name, c.got, c.want, c.give)
			}
		}
		if f.MedianOpen >= time.Millisecond || f.Brief <= 0.5 {
			t.Errorf("files are open for %v, and %g of them under 1 ms; want most", f.MedianOpen, f.Brief)
		}
	}
}

func TestTrace_TouchesWhatIsThere(t *testing.T) {
	o := small()
	trace := NewTrace(o)
	there, old := map[File]bool{}, map[File]bool{}
	for _, h := range trace.held {
		there[h.File], old[h.File] = true, h.Old
	}
	last, here := time.Duration(0), map[int]int{}
	for e, ok := trace.Next(); ok; e, ok = trace.Next() {
		if e.At < last || int(e.At/day)%7 >= workingDays {
			t.Fatalf("%+v comes after %v", e, last)
		}
		last = e.At
		switch e.Kind {
		case Login:
			here[e.User] = e.Machine
			continue
		case Stat:
			continue
		case Create:
			if there[e.File] || e.Bytes < 1 {
				t.Fatalf("%+v creates what is there, or nothing", e)
			}
			there[e.File] = true
		case Delete:
			if !there[e.File] {
				t.Fatalf("%+v: there is no such file", e)
			}
			delete(there, e.File)
		default:
			if !there[e.File] || old[e.File] {
				t.Fatalf("%+v opens what is not there, or old", e)
			}
		}
		if at, in := here[e.User]; !in || at != e.Machine {
			t.Fatalf("%+v, and the user sits at %d", e, at)
		}
	}
}

func TestTrace_StaysWhereTheUserMoved(t *testing.T) {
	o := small()
	o.Months, o.Move, o.Habits.Stays = 6, 0.2, true
	last, moved, logins := map[int]int{}, 0, 0
	for _, e := range events(o) {
		if e.Kind != Login {
			continue
		}
		if at, in := last[e.User]; in {
			logins++
			if at != e.Machine {
				moved++
			}
		}
		last[e.User] = e.Machine
	}
	if share := float64(moved) / float64(logins); math.Abs(share-0.2) > 0.05 {
		t.Errorf("%d of %d logins are elsewhere than the last, want a fifth", moved, logins)
	}
}

func TestTrace_KeepsALoginForDays(t *testing.T) {
	o := small()
	o.Move, o.Months = 1, 2
	daily := events(o)
	o.Habits.LoginDays = 10
	days, at := map[int]map[int]bool{}, map[int]int{}
	logins := 0
	for _, e := range events(o) {
		if e.Kind == Login {
			if logins++; days[e.User] != nil && len(days[e.User]) != 10 {
				t.Errorf("a login of user %d took %d days, want 10", e.User, len(days[e.User]))
			}
			days[e.User], at[e.User] = map[int]bool{}, e.Machine
		}
		days[e.User][int(e.At/day)] = true
		if e.Machine != at[e.User] {
			t.Fatalf("%+v: the user logged in at %d", e, at[e.User])
		}
	}
	every := 0
	for _, e := range daily {
		if e.Kind == Login {
			every++
		}
	}
	if logins == 0 || logins*8 > every {
		t.Errorf("got %d logins, and %d where each day has one", logins, every)
	}
}

// TestRank_FollowsItsLaw compares the first tenth of the places with the sum that it
// stands for.
func TestRank_FollowsItsLaw(t *testing.T) {
	const n, draws = 1000, 200_000
	for _, exponent := range []float64{0, 0.7, 1, 1.6} {
		r := rand.New(rand.NewPCG(1, 1))
		got, want, all := 0, 0.0, 0.0
		for range draws {
			at := rank(r, n, exponent)
			if at < 0 || at >= n {
				t.Fatalf("exponent %g: place %d of %d", exponent, at, n)
			}
			if at < n/10 {
				got++
			}
		}
		for i := range n {
			p := math.Pow(float64(i+1), -exponent)
			all += p
			if i < n/10 {
				want += p
			}
		}
		if share := float64(got) / draws; math.Abs(share-want/all) > 0.06 {
			t.Errorf("exponent %g: %g of the draws are in the first tenth, want about %g", exponent, share, want/all)
		}
	}
}
