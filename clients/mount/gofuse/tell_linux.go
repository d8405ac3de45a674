package gofuse

import (
	"encoding/binary"
	"errors"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

var (
	_ kernel = (*connection)(nil)
	_ filler = (*connection)(nil)
	_ pruner = (*connection)(nil)
)

// Numbers of what the kernel is told unasked.
const (
	tellInvalidInode = 2
	tellInvalidEntry = 3
	tellStore        = 4
	tellDeleted      = 6
	tellPrune        = 9
)

// InodeNotify implements kernel.
func (c *connection) InodeNotify(node uint64, offset, length int64) fuse.Status {
	return c.tell(tellInvalidInode, "", node, uint64(offset), uint64(length))
}

// EntryNotify implements kernel.
func (c *connection) EntryNotify(parent uint64, name string) fuse.Status {
	return c.tell(tellInvalidEntry, name, parent)
}

// DeleteNotify implements kernel.
func (c *connection) DeleteNotify(parent, child uint64, name string) fuse.Status {
	return c.tell(tellDeleted, name, parent, child)
}

// PruneNotify implements pruner: one node is given up, where nothing uses it.
func (c *connection) PruneNotify(node uint64) fuse.Status {
	order := binary.NativeEndian
	size := outHeaderSize + 24
	m := make([]byte, 0, size)
	m = order.AppendUint32(m, uint32(size))
	m = order.AppendUint32(m, tellPrune)
	m = order.AppendUint64(m, 0) // no request's answer
	m = order.AppendUint32(m, 1) // node
	m = order.AppendUint32(m, 0)
	m = order.AppendUint64(m, 0) // reserved
	m = order.AppendUint64(m, node)
	return c.put(m)
}

// InodeStore implements filler: data become the node's first pages. The last of
// them is good beyond its bytes only where the file ends there, and the kernel
// takes the file to be no shorter from now on.
func (c *connection) InodeStore(node uint64, data []byte) fuse.Status {
	order := binary.NativeEndian
	size := outHeaderSize + 24
	m := make([]byte, 0, size)
	m = order.AppendUint32(m, uint32(size+len(data)))
	m = order.AppendUint32(m, tellStore)
	m = order.AppendUint64(m, 0) // no request's answer
	m = order.AppendUint64(m, node)
	m = order.AppendUint64(m, 0) // from the beginning
	m = order.AppendUint32(m, uint32(len(data)))
	m = order.AppendUint32(m, 0)
	return c.put(m, data)
}

// tell sends a header, numbers and, if there is one, a name: its length and
// flags of 32 bits each, its bytes, and a zero byte.
func (c *connection) tell(what uint32, name string, numbers ...uint64) fuse.Status {
	order := binary.NativeEndian
	size := outHeaderSize + 8*len(numbers)
	if name != "" {
		size += 8 + len(name) + 1
	}
	m := make([]byte, 0, size)
	m = order.AppendUint32(m, uint32(size))
	m = order.AppendUint32(m, what)
	m = order.AppendUint64(m, 0) // no request's answer
	for _, n := range numbers {
		m = order.AppendUint64(m, n)
	}
	if name != "" {
		m = order.AppendUint32(m, uint32(len(name)))
		m = order.AppendUint32(m, 0)
		m = append(append(m, name...), 0)
	}
	return c.put(m)
}

// put sends what nobody asked for, whose parts lie end to end.
func (c *connection) put(parts ...[]byte) fuse.Status {
	var sent error
	err := c.raw.Control(func(fd uintptr) {
		sent = retry(func() (int, error) { return unix.Writev(int(fd), parts) })
	})
	if err := errors.Join(err, sent); err != nil {
		var n syscall.Errno
		if errors.As(err, &n) {
			return fuse.Status(n)
		}
		return fuse.EBADF // closed
	}
	return fuse.OK
}
