package desktops

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// Kind is what a user does.
type Kind uint8

// The kinds of events.
const (
	Login Kind = iota + 1
	Stat
	Read
	Create
	Replace // a new file takes the name and the place of an older one
	Append
	Overwrite // of bytes in the middle: the size stays
	Delete
)

// File numbers a file of the trace, from 0.
type File int32

// Event is one thing that a user does.
type Event struct {
	At      time.Duration // since the start, which is a Monday's midnight
	Kind    Kind
	User    int
	Machine int // where the user sits
	File    File
	Bytes   int64         // of a new file, or that are appended
	Open    time.Duration // how long the file is open
	Calls   int           // of stat, in a row
}

// Held is a file that is there at the start, at its owner's desk.
type Held struct {
	File  File
	User  int
	Bytes int64
	// Old files are opened by nobody: they are what a full disk is full of.
	Old bool
}

// Trace makes the accesses of all users in the order of time. The same Options make
// the same ones; of two that differ only in Move, the users do the same, elsewhere.
type Trace struct {
	o        Options
	users    schedule
	byNumber []*user
	held     []Held
	sizes    []int64 // by file
	end      time.Duration
}

// NewTrace makes what is there at the start.
func NewTrace(o Options) *Trace {
	t := &Trace{o: o, end: o.end()}
	full := fullDesktops(o)
	for i := range o.Desktops {
		u := &user{
			trace: t, number: i, machine: i, today: -1,
			random: rand.New(rand.NewPCG(o.Seed, uint64(2*i+1))), moves: rand.New(rand.NewPCG(o.Seed, uint64(2*i+2))),
		}
		room := int64(float64(o.DiskBytes) * (1 - o.Fill))
		for range o.Habits.Files {
			size := fileBytes(u.random)
			u.recent = append(u.recent, t.hold(u, size, false))
			room -= size
		}
		for full[i] {
			size := fileBytes(u.random)
			if size > room {
				break
			}
			t.hold(u, size, true)
			room -= size
		}
		u.at = u.nextLogin()
		t.users, t.byNumber = append(t.users, u), append(t.byNumber, u)
	}
	heap.Init(&t.users)
	return t
}

// fullDesktops draws which disks are full at the start.
func fullDesktops(o Options) map[int]bool {
	full := map[int]bool{}
	for _, i := range rand.New(rand.NewPCG(o.Seed, 0)).Perm(o.Desktops)[:o.Full] {
		full[i] = true
	}
	return full
}

func (t *Trace) hold(u *user, size int64, old bool) File {
	f := t.newFile(size)
	t.held = append(t.held, Held{File: f, User: u.number, Bytes: size, Old: old})
	return f
}

func (t *Trace) newFile(size int64) File {
	t.sizes = append(t.sizes, size)
	return File(len(t.sizes) - 1)
}

// Next returns the next event; false: the trace is over.
func (t *Trace) Next() (Event, bool) {
	u := t.users[0]
	e := u.step()
	heap.Fix(&t.users, 0)
	return e, e.At < t.end
}

// schedule has the user who does something next in front.
type schedule []*user

func (s schedule) Len() int { return len(s) }
func (s schedule) Less(i, j int) bool {
	return s[i].at < s[j].at || s[i].at == s[j].at && s[i].number < s[j].number
}
func (s schedule) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *schedule) Push(x any)   { *s = append(*s, x.(*user)) }
func (s *schedule) Pop() any {
	u := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return u
}

// user is one user, whose desk has the same number.
type user struct {
	trace   *Trace
	number  int
	machine int
	// random decides what the user does, moves where.
	random, moves *rand.Rand
	at            time.Duration // of what comes next
	here          bool          // logged in
	today         int           // the last day of work, from 0
	days          int           // of work so far
	until         time.Duration // when the user goes
	burst         int           // files that are still to be opened in this one
	recent        []File        // the user's files, the last opened at the end
	temporary     []temporary
}

// temporary is a file that is to be deleted.
type temporary struct {
	file File
	due  time.Duration
}

// step does the next thing, at u.at, and says when the one after it is.
func (u *user) step() Event {
	e := Event{At: u.at, User: u.number}
	switch {
	case !u.here && u.arrive():
		e.Kind = Login
		u.at += u.pause()
	case u.clean(&e):
		u.at += time.Millisecond
	case u.burst == 0:
		e.Kind, e.Calls = Stat, several(u.random, u.trace.o.Habits.Stats)
		u.burst = several(u.random, u.trace.o.Habits.Burst)
		u.at += time.Duration(e.Calls) * time.Millisecond
	default:
		u.open(&e)
		if u.burst--; u.burst > 0 {
			u.at += after(u.random, spacing)
		} else if u.at += u.pause(); u.at >= u.until {
			u.here, u.at = false, u.nextLogin()
		}
	}
	e.Machine = u.machine
	return e
}

// arrive begins a day's work, and reports whether that takes a login.
func (u *user) arrive() bool {
	u.here, u.today = true, int(u.at/day)
	u.until = u.at + max(time.Hour, around(u.random, stay, staySpread))
	login := u.days%u.trace.o.Habits.LoginDays == 0
	if u.days++; login {
		u.sit()
	}
	return login
}

// pause is the time between two bursts, such that a day has as many opens as the
// habits say.
func (u *user) pause() time.Duration {
	h := u.trace.o.Habits
	return after(u.random, max(0, time.Duration(float64(stay)*h.Burst/h.Opens)-time.Duration(h.Burst-1)*spacing))
}

// nextLogin is on the next working day.
func (u *user) nextLogin() time.Duration {
	next := u.today + 1
	for next%7 >= workingDays {
		next++
	}
	return time.Duration(next)*day + around(u.random, loginAt, loginSpread)
}

// sit decides where the user is until the next login.
func (u *user) sit() {
	if !u.trace.o.Habits.Stays {
		u.machine = u.number
	}
	moves, to := u.moves.Float64() < u.trace.o.Move, u.moves.IntN(u.trace.o.Desktops-1)
	if !moves {
		return
	}
	if to >= u.machine {
		to++ // any machine but that one
	}
	u.machine = to
}
