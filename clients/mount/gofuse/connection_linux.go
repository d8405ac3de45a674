package gofuse

import (
	"encoding/binary"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"cartwheel.dev/geo-config/fault"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

const (
	// Numbers of requests that are treated apart.
	opForget      = 2
	opRead        = 15
	opWrite       = 16
	opRelease     = 18
	opGetXattr    = 22
	opListXattr   = 23
	opFlush       = 25
	opReadDir     = 28
	opReleaseDir  = 29
	opSetLockWait = 33
	opInterrupt   = 36
	opBatchForget = 42
	opReadDirPlus = 44

	inHeaderSize  = 40
	outHeaderSize = 16

	// A request or an answer up to smallSize is kept in its worker's own
	// buffers; others, of up to maxTransfer, in one of maxBuffers. When all are
	// in use, requests go on in memory of their own, of which writes take at most
	// extraBytes: then they are cut short, and their programs write the rest.
	smallSize   = 8 << 10
	bufferSize  = maxTransfer + smallSize
	maxBuffers  = maxInflight / bufferSize
	keepBuffers = 6
	extraBytes  = 256 << 20
	// maxWorkers bounds the requests being worked on; waiting for a lock takes
	// none. A further request is refused with ENOMEM, so that the kernel's
	// requests are read on.
	maxWorkers = 8192
	// keepWorkers is how many wait for work when there is little. Each keeps its
	// buffers and its stack, some 32 KiB; a new one has to make both, which for
	// more programs at work than are kept costs more than most requests do.
	keepWorkers = 16
)

// connection is this end of a mount. One worker at a time waits for a request:
// the one that has the turn. Who has read one gives the turn to a worker that
// waits for it, so that no thread of the system sleeps beside it in vain, and
// works on the request itself; a read that it could begin (see later) it leaves
// to whoever brings the bytes, and goes on with its turn.
type connection struct {
	b        *binding
	protocol *fuse.ProtocolServer
	file     *os.File
	raw      syscall.RawConn
	fd       int // of file; good while a worker runs
	options  *fuse.MountOptions
	big      *buffers
	inbox    []byte // of bufferSize; who has the turn reads into it

	turn    chan struct{} // holds a token while nobody reads
	workers sync.WaitGroup

	mu     sync.Mutex // guards the rest
	idle   int        // workers that wait for the turn
	all    int        // workers
	busy   map[*worker]struct{}
	pieces map[uint64][][]byte  // answers to reads under way, by request
	later  map[uint64]*later    // reads that nobody works on, by request
	locks  map[uint64]*lockWait // requests that wait for locks
	over   bool                 // the kernel has let go
}

// worker works on one request after the other.
type worker struct {
	unique  uint64 // of the request; guarded by the connection's mutex
	pid     uint32 // of its caller; guarded likewise
	in, out [smallSize]byte
	// What is handed to the protocol.
	ins, outs [1][]byte
}

// connect mounts b and answers the kernel's greeting.
func connect(b *binding, point string, o *fuse.MountOptions) (*connection, error) {
	file, err := openDevice(point, o)
	if err != nil {
		return nil, err
	}
	c := &connection{b: b, protocol: fuse.NewProtocolServer(b, o), file: file, fd: int(file.Fd()), options: o,
		big: newBuffers(bufferSize, maxBuffers, keepBuffers, extraBytes), inbox: make([]byte, bufferSize), turn: make(chan struct{}, 1),
		busy: map[*worker]struct{}{}, pieces: map[uint64][][]byte{}, later: map[uint64]*later{},
		locks: map[uint64]*lockWait{}}
	if c.raw, err = file.SyscallConn(); err == nil {
		err = c.greet()
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	b.vector = c.vector
	return c, nil
}

// greet answers the first request, which is the kernel's greeting.
func (c *connection) greet() error {
	const op fault.Op = "gofuse.greet"
	w, in := &worker{}, c.inbox
	n, err := c.read(in)
	if err != nil {
		return err
	}
	done, status := c.ask(w, in[:n], w.out[:])
	if !status.Ok() || done < outHeaderSize {
		return fault.Errorf(fault.NotSupported, op, devFuse, "the kernel's greeting is not understood: %v", status)
	}
	if e := int32(binary.NativeEndian.Uint32(w.out[4:])); e != 0 {
		return fault.Errorf(fault.NotSupported, op, devFuse, "the kernel's FUSE is too old: %v", syscall.Errno(-e))
	}
	_, err = unix.Write(c.fd, w.out[:done])
	return err
}

// Serve works on requests until the kernel lets go, and then ends the file
// system.
func (c *connection) Serve() {
	c.mu.Lock()
	c.spawn()
	c.mu.Unlock()
	c.turn <- struct{}{}
	c.workers.Wait()
	_ = c.file.Close() // the kernel has let go already
	c.b.OnUnmount()
}

// spawn starts a worker that waits for the turn; the mutex is held.
func (c *connection) spawn() {
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
		if c.startLater(in) || c.startLock(in) || c.interrupt(in) || c.refuse(in) {
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

// Places in a request to write.
const (
	writeSizeAt  = inHeaderSize + 16
	writeFlagsAt = inHeaderSize + 20
	writeData    = inHeaderSize + 40
)

// cut returns how much of a request may be kept while no buffer is free. A
// program that writes takes a shorter write for what it is; the kernel, which
// writes back its own pages, would not, and does not send many at once.
func (c *connection) cut(in []byte) int {
	if operation(in) != opWrite || len(in) < writeData || binary.NativeEndian.Uint32(in[writeFlagsAt:])&fuse.WRITE_CACHE != 0 {
		return len(in)
	}
	return writeData + c.big.room(len(in)-writeData)
}

// shorten makes a request to write say that it is as long as it is.
func shorten(in []byte) {
	binary.NativeEndian.PutUint32(in, uint32(len(in)))
	binary.NativeEndian.PutUint32(in[writeSizeAt:], uint32(len(in)-writeData))
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
		c.say(in, fuse.Status(syscall.ENOMEM))
	}
	return full
}

// say answers a request with nothing but a status.
func (c *connection) say(in []byte, status fuse.Status) {
	out := make([]byte, outHeaderSize)
	putStatus(out, unique(in), status)
	c.deliver(operation(in), func() (int, error) { return unix.Write(c.fd, out) })
}

func putStatus(out []byte, request uint64, status fuse.Status) {
	binary.NativeEndian.PutUint32(out, outHeaderSize)
	binary.NativeEndian.PutUint32(out[4:], uint32(-status))
	binary.NativeEndian.PutUint64(out[8:], request)
}

// read waits for a request.
func (c *connection) read(into []byte) (int, error) {
	for {
		n, err := unix.Read(c.fd, into)
		switch {
		case err == nil && n < inHeaderSize:
			return 0, syscall.EIO
		case err == nil:
			return n, nil
		case !errors.Is(err, syscall.EINTR) && !errors.Is(err, syscall.ENOENT): // ENOENT: it was interrupted first
			return 0, err
		}
	}
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
		c.spawn()
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
	waits := len(requests)+len(c.later)+len(c.locks) > 0
	for _, l := range c.later {
		l.interrupt()
	}
	for _, l := range c.locks {
		l.interrupt()
	}
	c.mu.Unlock()
	for _, r := range requests {
		c.askInterrupt(r)
	}
	return waits
}

func operation(in []byte) uint32 { return binary.NativeEndian.Uint32(in[4:]) }

func unique(in []byte) uint64 { return binary.NativeEndian.Uint64(in[8:]) }

// answerSize is how long the answer to a request may be.
func answerSize(in []byte) int {
	at := 0
	switch operation(in) {
	case opRead, opReadDir, opReadDirPlus:
		at = inHeaderSize + 16
	case opGetXattr, opListXattr:
		at = inHeaderSize
	}
	if at == 0 || len(in) < at+4 {
		return smallSize
	}
	return outHeaderSize + int(binary.NativeEndian.Uint32(in[at:]))
}

// ask has a request worked on; 0: no answer is wanted, or status says why there
// is none.
func (c *connection) ask(w *worker, in, out []byte) (int, fuse.Status) {
	w.ins[0], w.outs[0] = in, out
	return c.protocol.HandleRequest(w.ins[:], w.outs[:])
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
		c.deliver(operation(in), func() (int, error) { return unix.Write(c.fd, out[:n]) })
	} else {
		c.deliver(operation(in), func() (int, error) { return unix.Writev(c.fd, append([][]byte{out[:outHeaderSize]}, pieces...)) })
	}
}

// deliver writes an answer to a request of a kind.
func (c *connection) deliver(kind uint32, write func() (int, error)) {
	err := retry(write)
	if err != nil && !errors.Is(err, syscall.ENOENT) { // ENOENT: nobody waits any more
		c.options.Logger.Printf("the kernel does not take an answer to request %d: %v", kind, err)
	}
}

func retry(fn func() (int, error)) error {
	for {
		if _, err := fn(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// vector answers a read with bytes that are written from where they are.
func (c *connection) vector(request uint64, pieces [][]byte) fuse.ReadResult {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pieces[request] = pieces
	size := 0
	for _, p := range pieces {
		size += len(p)
	}
	return elsewhere(size)
}

// given takes what vector kept.
func (c *connection) given(in []byte) [][]byte {
	if operation(in) != opRead || answerSize(in) <= pieceRead {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	pieces := c.pieces[unique(in)]
	delete(c.pieces, unique(in))
	return pieces
}

// elsewhere is the answer to a read of so many bytes, which are not copied into
// the answer.
type elsewhere int

var _ fuse.ReadResult = elsewhere(0)

// Bytes implements fuse.ReadResult.
func (e elsewhere) Bytes(buf []byte) ([]byte, fuse.Status) { return buf[:e], fuse.OK }

// Size implements fuse.ReadResult.
func (e elsewhere) Size() int { return int(e) }

// Done implements fuse.ReadResult.
func (e elsewhere) Done() {}

// Readv is what the protocol calls instead of Bytes.
func (e elsewhere) Readv([][]byte) (int, fuse.Status) { return int(e), fuse.OK }
