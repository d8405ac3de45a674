package gofuse

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"cartwheel.dev/geo-config/fault"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

const (
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
// works on the request itself; a read that it could begin (see laters) it leaves
// to whoever brings the bytes, and goes on with its turn.
type connection struct {
	b        *binding
	protocol *fuse.ProtocolServer
	file     *os.File
	raw      syscall.RawConn
	replies  *replies
	options  *fuse.MountOptions
	big      *buffers
	inbox    []byte // of bufferSize; who has the turn reads into it

	turn    chan struct{} // holds a token while nobody reads
	workers sync.WaitGroup
	later   *laters
	locks   *lockWaits

	mu     sync.Mutex // guards the rest
	idle   int        // workers that wait for the turn
	all    int        // workers
	busy   map[*worker]struct{}
	pieces map[uint64][][]byte // answers to reads under way, by request
	over   bool                // the kernel has let go
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
	c := &connection{b: b, protocol: fuse.NewProtocolServer(b, o), file: file, options: o,
		big: newBuffers(bufferSize, maxBuffers, keepBuffers, extraBytes), inbox: make([]byte, bufferSize), turn: make(chan struct{}, 1),
		busy: map[*worker]struct{}{}, pieces: map[uint64][][]byte{}}
	c.replies = &replies{fd: int(file.Fd()), log: o.Logger}
	c.later = &laters{b: b, replies: c.replies, reads: map[uint64]*later{}}
	c.locks = &lockWaits{b: b, replies: c.replies, workers: &c.workers, panicked: o.PanicHandler, waiting: map[uint64]*lockWait{}}
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
	_, err = unix.Write(c.replies.fd, w.out[:done])
	return err
}

// read waits for a request.
func (c *connection) read(into []byte) (int, error) {
	for {
		n, err := unix.Read(c.replies.fd, into)
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

// waitReady has nothing to wait for: the kernel mounts before connect returns,
// and requests wait until Serve runs. It lets the kernel learn at once that no
// file here says when it is ready. Otherwise the kernel would ask at the first
// poll, which in a process that opens files of its own mount is the Go
// runtime's: that one keeps its slot of the scheduler meanwhile, which the
// answer may need, and then nothing of the process runs any more.
func (c *connection) waitReady(point string) error {
	// go-fuse answers for this name itself.
	fd, err := syscall.Open(filepath.Join(point, ".go-fuse-epoll-hack"), syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil // whoever mounts may not look into it: nor will they open files
	}
	_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN | unix.POLLOUT}}, 0) // the kernel has learned it whatever it says
	return syscall.Close(fd)
}

// ask has a request worked on; 0: no answer is wanted, or status says why there
// is none.
func (c *connection) ask(w *worker, in, out []byte) (int, fuse.Status) {
	w.ins[0], w.outs[0] = in, out
	return c.protocol.HandleRequest(w.ins[:], w.outs[:])
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
