package gofuse

import (
	"encoding/binary"
	"errors"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Serve works on requests until the kernel lets go, and then ends the file
// system.
func (c *connection) Serve() {
	c.mu.Lock()
	c.spawnLocked()
	c.mu.Unlock()
	c.turn <- struct{}{}
	c.workers.Wait()
	_ = c.file.Close() // the kernel has let go already
	c.b.OnUnmount()
}

// spawnLocked starts a worker that waits for the turn; the mutex is held.
func (c *connection) spawnLocked() {
	c.all++
	c.idle++
	c.workers.Go(c.work)
}

// work takes turns until the connection ends or enough others wait.
func (c *connection) work() {
	w := &worker{}
	for range c.turn {
		in, err := c.next(w)
		if err != nil {
			c.end(err)
			return
		}
		// The kernel does not wait for forgets: who has the turn works on them,
		// so that no more come than can be worked on.
		forgets := operation(in) == opForget || operation(in) == opBatchForget
		c.begin(w, in)
		if !forgets {
			c.pass()
		}
		c.answer(w, in)
		if len(in) > smallSize {
			c.big.put(in)
		}
		if forgets {
			c.pass()
		}
		if !c.finish(w) {
			return
		}
	}
}

// next reads until there is a request for this worker. It never waits for
// anything but the kernel.
func (c *connection) next(w *worker) ([]byte, error) {
	for {
		n, err := c.read(c.inbox)
		if err != nil {
			return nil, err
		}
		in := c.inbox[:n]
		if c.later.start(in) || c.locks.start(in) || c.interrupt(in) || c.refuse(in) {
			continue
		}
		return c.own(w, in), nil
	}
}

// own gives the worker a request that is in the inbox.
func (c *connection) own(w *worker, in []byte) []byte {
	if len(in) <= smallSize {
		return w.in[:copy(w.in[:], in)]
	}
	if b := c.big.get(); b != nil {
		c.inbox = b
		return in
	}
	if keep := c.cut(in); keep < len(in) {
		in = in[:keep]
		shorten(in)
	}
	own := c.big.getExact(len(in))
	copy(own, in)
	return own
}

// cut returns how much of a request may be kept while no buffer is free. A
// program that writes takes a shorter write for what it is; the kernel, which
// writes back its own pages, would not, and does not send many at once.
func (c *connection) cut(in []byte) int {
	if operation(in) != opWrite || len(in) < writeData || binary.NativeEndian.Uint32(in[writeFlagsAt:])&fuse.WRITE_CACHE != 0 {
		return len(in)
	}
	return writeData + c.big.room(len(in)-writeData)
}

// refuse answers a request for which there is no worker: all but this one are
// at work. What closes or forgets something is worked on nevertheless.
func (c *connection) refuse(in []byte) bool {
	c.mu.Lock()
	full := len(c.busy) >= maxWorkers-1
	c.mu.Unlock()
	switch operation(in) {
	case opForget, opBatchForget, opRelease, opReleaseDir, opFlush:
		return false
	}
	if full {
		c.replies.say(in, fuse.Status(syscall.ENOMEM))
	}
	return full
}

// begin notes that a worker has read a request.
func (c *connection) begin(w *worker, in []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.unique, w.pid = unique(in), binary.NativeEndian.Uint32(in[32:])
	c.busy[w] = struct{}{}
	c.idle--
}

// pass gives the turn on.
func (c *connection) pass() {
	c.mu.Lock()
	if c.idle == 0 { // their number is bounded by refuse
		c.spawnLocked()
	}
	c.mu.Unlock()
	c.turn <- struct{}{}
}

// finish notes that a request was answered, and reports whether the worker is
// to wait for another turn.
func (c *connection) finish(w *worker) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.busy, w)
	if c.idle >= keepWorkers {
		c.all--
		return false
	}
	c.idle++
	return true
}

// cancelEvery is how often requests are interrupted when the kernel has let go:
// one that was just read may not hear of the first time.
const cancelEvery = 10 * time.Millisecond

// end is called by who has the turn, when the kernel has let go: others end
// when they have finished, which is soon. It stays until the last has, and the
// last read that is answered later.
func (c *connection) end(err error) {
	if !errors.Is(err, syscall.ENODEV) && !errors.Is(err, syscall.ECONNABORTED) {
		c.options.Logger.Printf("the kernel's requests cannot be read: %v", err)
	}
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	close(c.turn)
	tick := time.NewTicker(cancelEvery)
	defer tick.Stop()
	for c.interruptAll() {
		<-tick.C
	}
}

// interruptAll interrupts every request, and reports whether there was one.
func (c *connection) interruptAll() bool {
	c.mu.Lock()
	requests := make([]uint64, 0, len(c.busy))
	for w := range c.busy {
		requests = append(requests, w.unique)
	}
	c.mu.Unlock()
	later, locks := c.later.interruptAll(), c.locks.interruptAll()
	for _, r := range requests {
		c.askInterrupt(r)
	}
	return len(requests) > 0 || later || locks
}

// answer works on a request and answers it.
func (c *connection) answer(w *worker, in []byte) {
	out := w.out[:]
	if size := answerSize(in); size > len(out) {
		if out = c.big.get(); out == nil {
			out = c.big.getExact(size)
		}
		defer c.big.put(out)
	}
	n, status := c.ask(w, in, out)
	pieces := c.given(in)
	switch {
	case n == 0 && status.Ok():
		return
	case n == 0:
		n = outHeaderSize
		putStatus(out, unique(in), status)
	}
	if pieces == nil {
		c.replies.deliver(operation(in), func() (int, error) { return unix.Write(c.replies.fd, out[:n]) })
	} else {
		c.replies.deliver(operation(in), func() (int, error) {
			return unix.Writev(c.replies.fd, append([][]byte{out[:outHeaderSize]}, pieces...))
		})
	}
}
