package acceptance

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"unsafe"
)

// programVariable holds what a program of the checker is to do.
const programVariable = "CARTWHEEL_CHECKED_PROGRAM"

// TestMain is a program of the checker, or one of a load, where the environment
// says so.
func TestMain(m *testing.M) {
	if name := os.Getenv(loadVariable); name != "" {
		os.Exit(runLoad(name))
	}
	if text := os.Getenv(programVariable); text != "" {
		os.Exit(runProgram(text))
	}
	os.Exit(m.Run())
}

// order is what one program is told: who it is and where it works.
type order struct {
	Number int    `json:"number"`
	Seed   uint64 `json:"seed"`
	Root   string `json:"root"` // the checker's directory on this program's mount
	// Contend has all programs change the names of files and directories, too.
	Contend bool `json:"contend"`
}

// What a program did.
const (
	didAppend = "append" // Lines to At
	didRead   = "read"   // ID is all that At holds
	didPut    = "put"    // ID has the name At, whatever had it before
	didLink   = "link"   // likewise, unless the name is taken
	didMove   = "move"   // what At named is named To
	didTake   = "take"   // the name At is gone; with an ID that is what it named
	didFind   = "find"   // At names ID; none: nothing
	didList   = "list"   // a directory has Names
	didSet    = "set"    // register At is ID
	didGet    = "get"    // register At was ID
	didCount  = "count"  // the counter At was Value and is one more
	didLook   = "look"   // the counter At was Value, under a shared lock
	didLose   = "lose"   // the file ID, opened as At between Begin and End, was not there any more at Lost
	wasOff    = "off"    // the site At was cut off; the test says so
	didError  = "error"  // Result is an error that no program may get, of what begins with At
)

// Results that are not "".
const (
	isMissing = "missing" // ENOENT
	isTaken   = "taken"   // EEXIST, or ENOTEMPTY for a directory
	isLost    = "lost"    // EIO from what is written under a lock that was lost
)

// event is one entry of the history. The times are of the machine's monotonic
// clock: what is said took effect between them, and a lock was held throughout.
type event struct {
	Program int      `json:"program"`
	What    string   `json:"what"`
	At      string   `json:"at,omitempty"`
	To      string   `json:"to,omitempty"`
	ID      string   `json:"id,omitempty"`
	Names   []string `json:"names,omitempty"`
	Lines   []string `json:"lines,omitempty"`
	Value   int      `json:"value,omitempty"`
	Result  string   `json:"result,omitempty"`
	Lost    int64    `json:"lost,omitempty"`
	Begin   int64    `json:"begin"`
	End     int64    `json:"end"`
}

// checkedProgram is one of them. It does one thing after the other.
type checkedProgram struct {
	order
	chance *rand.Rand
	out    *json.Encoder
	made   int // numbers what it makes
	lines  map[string]int
	logs   map[string]*os.File // held open for appending
	held   []heldFile
}

// heldFile is a file that is open, and what it holds whatever becomes of its
// name.
type heldFile struct {
	f       *os.File
	content string
	found   event
}

// runProgram works until its standard input ends, and says on its standard
// output what it did.
func runProgram(text string) int {
	runtime.LockOSThread() // one thread, as most programs have
	p := &checkedProgram{lines: map[string]int{}, logs: map[string]*os.File{}}
	if err := json.Unmarshal([]byte(text), &p.order); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	p.chance = rand.New(rand.NewPCG(p.Seed, uint64(p.Number)))
	out := bufio.NewWriter(os.Stdout)
	p.out = json.NewEncoder(out)
	over := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // its end is all that is said there
		close(over)
	}()
	err := p.work(over)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if e := out.Flush(); e != nil || err != nil {
		return 1
	}
	return 0
}

func (p *checkedProgram) work(over chan struct{}) error {
	type action struct {
		at string // what it is about
		do func() error
	}
	actions := []action{{"log", p.append}, {"log", p.append}, {"log", p.readLog}, {"log", p.moveLog},
		{"count", p.count}, {"count", p.count}, {"count", p.look}, {"range", p.countRange}, {"range", p.countRange}}
	// A mount shows its own programs what one of them writes before others see it:
	// one program of each mount uses the registers.
	if p.Number < len(checkedSites) {
		actions = append(actions, action{"register", p.set}, action{"register", p.set}, action{"register", p.get}, action{"register", p.get})
	}
	if p.Contend {
		actions = append(actions, []action{{"names", p.put}, {"names", p.link}, {"names", p.move}, {"names", p.take}, {"names", p.find}, {"names", p.find},
			{"names", p.list}, {"names", p.again}, {"dirs", p.putDir}, {"dirs", p.moveDir}, {"dirs", p.takeDir}, {"dirs", p.findDir}}...)
	}
	for {
		select {
		case <-over:
			return errors.Join(p.again(), p.closeAll())
		default:
		}
		a := actions[p.chance.IntN(len(actions))]
		began := now()
		if err := a.do(); err != nil {
			p.say(event{What: didError, At: a.at, Result: err.Error(), Begin: began, End: now()})
			return err
		}
	}
}

func (p *checkedProgram) say(e event) {
	e.Program = p.Number
	// An output that is gone is noticed by its last flush.
	_ = p.out.Encode(e)
}

// now is the monotonic clock that all processes of the machine share.
func now() int64 {
	const monotonic = 1
	var t syscall.Timespec
	// It fails for clocks only that do not exist.
	_, _, _ = syscall.Syscall(syscall.SYS_CLOCK_GETTIME, monotonic, uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano()
}

func (p *checkedProgram) path(words ...string) string {
	return filepath.Join(append([]string{p.Root}, words...)...)
}

// own is a name that no other program uses.
func (p *checkedProgram) own() (id, path string) {
	p.made++
	id = fmt.Sprintf("%d.%d", p.Number, p.made)
	return id, p.path("own", fmt.Sprint(p.Number), id)
}

// result tells an error that is an answer from one that is not promised.
func result(err error, answers map[syscall.Errno]string) (string, error) {
	if err == nil {
		return "", nil
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		if r, ok := answers[errno]; ok {
			return r, nil
		}
	}
	return "", err
}

var (
	missingOnly = map[syscall.Errno]string{syscall.ENOENT: isMissing}
	goneToo     = map[syscall.Errno]string{syscall.ENOENT: isMissing, syscall.ESTALE: isMissing}
	takenOnly   = map[syscall.Errno]string{syscall.EEXIST: isTaken, syscall.ENOTEMPTY: isTaken}
	either      = map[syscall.Errno]string{syscall.ENOENT: isMissing, syscall.EEXIST: isTaken, syscall.ENOTEMPTY: isTaken}
	lostOnly    = map[syscall.Errno]string{syscall.EIO: isLost}
)

// do runs one call and enters it in the history.
func (p *checkedProgram) do(e event, answers map[syscall.Errno]string, call func() error) (string, error) {
	e.Begin = now()
	err := call()
	e.End = now()
	r, err := result(err, answers)
	if err != nil {
		return "", fmt.Errorf("%s of %s %s: %w", e.What, e.At, e.To, err)
	}
	e.Result = r
	p.say(e)
	return r, nil
}

// wrapped says what failed, if anything did.
func wrapped(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
