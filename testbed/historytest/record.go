package historytest

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// namesObject is the object of every event on names.
const namesObject = "names"

// never is when an operation returns whose outcome is not known.
const never = int64(1) << 62

// what an operation did.
type what uint8

const (
	write  what = iota // a register's value
	read               // a register's value, or a log
	add                // a record to a log
	create             // a name, exclusively
	lookup             // a name
	unlink             // a name
	rename             // a name to another
	link               // a known object to a name
	list               // a directory
	batch              // several of names at once
)

var words = [...]string{"write", "read", "append", "create", "lookup", "unlink", "rename", "link", "list", "batch"}

func (w what) String() string { return words[w] }

// outcome is what came of an operation.
type outcome uint8

const (
	unknown outcome = iota // it may have happened, or may yet
	done
	exists  // refused: the name is taken
	missing // refused: there is no such name, or no such object any more
)

// event is one operation of one client.
type event struct {
	client int
	object string // the register, the log, or "names"
	what   what
	at, to int      // cells of names; the directory of a listing
	value  string   // of a register or log: written, or read
	ino    uint64   // of a name: given, made or found; in a write-once directory, what the file holds
	cells  cells    // of a listing: those of its directory
	parts  []*event // of a batch: those that ran; all, where that is not known
	result outcome
	call   int64
	ret    int64
}

// cells are what the names mean: object IDs, 0 for a name that is not there.
type cells [dirs * namesEach]uint64

func (e *event) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%9.4f - ", time.Duration(e.call).Seconds())
	if e.ret == never {
		b.WriteString("        ?")
	} else {
		fmt.Fprintf(&b, "%9.4f", time.Duration(e.ret).Seconds())
	}
	fmt.Fprintf(&b, " client %d %s %v", e.client, e.object, e.what)
	switch {
	case e.what == batch:
		for _, p := range e.parts {
			fmt.Fprintf(&b, " [%v %d to %d: %x %s]", p.what, p.at, p.to, p.ino, outcomes[p.result])
		}
		b.WriteString(e.value)
	case e.what == list:
		fmt.Fprintf(&b, " %d: %x", e.at, e.cells[e.at*namesEach:(e.at+1)*namesEach])
	case e.what == rename:
		fmt.Fprintf(&b, " %d to %d", e.at, e.to)
	case e.what >= create:
		fmt.Fprintf(&b, " %d: %x", e.at, e.ino)
	case len(e.value) > 64:
		fmt.Fprintf(&b, " ...%s", e.value[len(e.value)-60:])
	default:
		fmt.Fprintf(&b, " %s", e.value)
	}
	fmt.Fprintf(&b, " %s", outcomes[e.result])
	return b.String()
}

var outcomes = [...]string{"(unknown)", "", "(exists)", "(missing)"}

// recorder keeps the history. Its zero value is not of use: it needs a clock.
type recorder struct {
	now func() int64

	mu       sync.Mutex // guards below
	events   []*event
	problems []string
	longest  time.Duration
	which    string
}

func newRecorder(now func() int64) *recorder { return &recorder{now: now} }

// invoke notes that an operation begins.
func (r *recorder) invoke(e event) *event {
	e.call, e.ret = r.now(), never
	r.mu.Lock()
	defer r.mu.Unlock()
	out := &e
	r.events = append(r.events, out)
	return out
}

// finish notes what came of it; fill adds what was seen.
func (r *recorder) finish(e *event, result outcome, fill func(*event)) {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if took := time.Duration(now - e.call); took > r.longest {
		r.longest, r.which = took, fmt.Sprintf("client %d's %v of %s", e.client, e.what, e.object)
	}
	e.result = result
	if result != unknown {
		e.ret = now
	}
	if fill != nil {
		fill(e)
	}
}

// problem notes something that must not be, whatever the order.
func (r *recorder) problem(format string, args ...any) {
	s := fmt.Sprintf("%9.4f ", time.Duration(r.now()).Seconds()) + fmt.Sprintf(format, args...)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.problems) < 20 {
		r.problems = append(r.problems, s)
	}
}

// given are object IDs of a slice for what batches make.
type given struct{ next, left uint64 }
