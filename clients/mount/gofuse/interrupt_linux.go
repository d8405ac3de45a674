package gofuse

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

const (
	// lookEvery is how often a caller's signals are looked at again, and
	// patience how long those are put off that ask a call for nothing.
	lookEvery = 200 * time.Millisecond
	patience  = 9 * time.Second
)

// bystanders are signals that programs get all the time and that ask no call to
// end: a call that fails because of one is a surprise.
const bystanders = 1<<(unix.SIGCHLD-1) | 1<<(unix.SIGURG-1) | 1<<(unix.SIGWINCH-1) | 1<<(unix.SIGCONT-1) | 1<<(unix.SIGPROF-1)

// interrupt takes an interruption in and reports whether the request is one.
// Who has the turn does: however many requests wait, this one does not.
func (c *connection) interrupt(in []byte) bool {
	request, ok := interrupted(in)
	if !ok {
		return false
	}
	if c.locks.interrupt(request) {
		return true
	}
	if pid := c.callerOf(request); pid != 0 && onlyBystanders(pid) {
		c.workers.Go(func() { c.putOff(request, pid) })
		return true
	}
	if !c.askInterrupt(request) {
		c.replies.say(in, fuse.EAGAIN) // it is not begun yet, or has ended: the kernel knows
	}
	return true
}

// callerOf returns who waits for a request that is being worked on; 0: nobody.
func (c *connection) callerOf(request uint64) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.busy {
		if w.unique == request {
			return w.pid
		}
	}
	return 0
}

// putOff interrupts a request once its caller gets another signal, or has
// waited long. The kernel tells of a request's first signal alone.
func (c *connection) putOff(request uint64, pid uint32) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < patience && onlyBystanders(pid); <-tick.C {
		c.mu.Lock()
		over := c.over
		c.mu.Unlock()
		if over || c.callerOf(request) == 0 {
			return
		}
	}
	c.askInterrupt(request)
}

// askInterrupt has a request interrupted; false: it is not being worked on.
func (c *connection) askInterrupt(request uint64) bool {
	w := &worker{}
	n, status := c.ask(w, interruptIn(request), w.out[:])
	return n == 0 && status.Ok()
}

// onlyBystanders reports whether the signals that a thread has pending are all
// bystanders. Of a thread that cannot be looked at, none is.
func onlyBystanders(pid uint32) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && areBystanders(status)
}

func areBystanders(status []byte) bool {
	pending := mask(status, "SigPnd") | mask(status, "ShdPnd")
	pending &^= mask(status, "SigBlk")
	return pending != 0 && pending&^bystanders == 0
}

// mask returns a set of signals from a thread's status.
func mask(status []byte, name string) uint64 {
	_, rest, found := bytes.Cut(status, []byte("\n"+name+":\t"))
	if !found {
		return 0
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	set, err := strconv.ParseUint(string(line), 16, 64)
	if err != nil {
		return 0
	}
	return set
}
