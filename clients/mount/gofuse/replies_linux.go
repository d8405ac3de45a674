package gofuse

import (
	"encoding/binary"
	"errors"
	"log"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// replies is where the kernel takes answers. It may be used from many goroutines.
type replies struct {
	fd  int // of the device; good while a worker runs, or a read is answered later
	log *log.Logger
}

func putStatus(out []byte, request uint64, status fuse.Status) {
	binary.NativeEndian.PutUint32(out, outHeaderSize)
	binary.NativeEndian.PutUint32(out[4:], uint32(-status))
	binary.NativeEndian.PutUint64(out[8:], request)
}

func retry(fn func() (int, error)) error {
	for {
		if _, err := fn(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// say answers a request with nothing but a status.
func (r *replies) say(in []byte, status fuse.Status) {
	out := make([]byte, outHeaderSize)
	putStatus(out, unique(in), status)
	r.deliver(operation(in), func() (int, error) { return unix.Write(r.fd, out) })
}

// deliver writes an answer to a request of a kind.
func (r *replies) deliver(kind uint32, write func() (int, error)) {
	err := retry(write)
	if err != nil && !errors.Is(err, syscall.ENOENT) { // ENOENT: nobody waits any more
		r.log.Printf("the kernel does not take an answer to request %d: %v", kind, err)
	}
}
