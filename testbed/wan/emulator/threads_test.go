package emulator

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// threads is a process in which every thread that is not raised starts another
// between two looks, as long as some are left to start.
type threads struct {
	raised map[int]bool
	next   int
	left   int
	ending int // a thread that has ended when it is to be raised
}

func (p *threads) list() ([]int, error) {
	var all []int
	for tid := range p.next {
		all = append(all, tid)
	}
	for _, tid := range slices.Clone(all) {
		if !p.raised[tid] && p.left > 0 {
			p.left--
			p.next++
		}
	}
	return all, nil
}

func (p *threads) raise(tid int) (bool, error) {
	if tid == p.ending {
		return false, unix.ESRCH
	}
	was := p.raised[tid]
	p.raised[tid] = true
	return !was, nil
}

// TestRaiseAll_LeavesNoThreadBehind has threads start others while all are raised.
func TestRaiseAll_LeavesNoThreadBehind(t *testing.T) {
	p := &threads{raised: map[int]bool{}, next: 5, left: 40, ending: 2}
	if err := raiseAll(p.list, p.raise); err != nil {
		t.Fatal(err)
	}
	if len(p.raised) != p.next-1 {
		t.Errorf("%d of %d threads were raised, and one had ended", len(p.raised), p.next)
	}
	endless := &threads{raised: map[int]bool{}, next: 5, left: 100 * mostThreads, ending: -1}
	if err := raiseAll(endless.list, endless.raise); err == nil || !strings.Contains(err.Error(), "there are more") {
		t.Errorf("got %v of a process without end", err)
	}
}

// TestPrioritize_TakesTurns wants threads that let others of their rank go on: two
// emulators with much to do once kept a third from both processors.
func TestPrioritize_TakesTurns(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("real-time priority needs root")
	}
	type result struct {
		did, again bool
		attr       *unix.SchedAttr
		err        error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // and the thread ends with this
		tid := unix.Gettid()
		var r result
		if r.did, r.err = prioritize(tid); r.err == nil {
			r.again, r.err = prioritize(tid)
		}
		r.attr, _ = unix.SchedGetAttr(0, 0)
		done <- r
	}()
	r := <-done
	if r.err != nil || !r.did || r.again || r.attr.Policy != unix.SCHED_RR || r.attr.Priority != priority {
		t.Errorf("got %+v, attributes %+v", r, r.attr)
	}
}
