package emulator

import (
	"golang.org/x/sys/unix"
)

// The sizes of slots, with the header, and how much memory each may take. A
// path of 200 Mbit/s and 150 ms holds 4 MB under way and as much in its queue.
var sizes = [...]int{256, 2048, 8192, 66 << 10}

const (
	mostBytes  = 256 << 20
	kindShift  = 28
	indexMask  = 1<<kindShift - 1
	largest    = 66 << 10
	headerSize = 10 // struct virtio_net_hdr
)

// arena holds packets, outside of Go's heap. It is used by one thread.
type arena struct {
	classes [len(sizes)]class
}

// class is the slots of one size.
type class struct {
	memory []byte
	size   int
	used   []int32 // bytes of each slot
	copies []uint8 // how many copies of its packet are still to leave
	free   []uint32
	next   uint32 // the first that was never used
}

func newArena() (*arena, error) {
	a := &arena{}
	for i, size := range sizes {
		m, err := unix.Mmap(-1, 0, mostBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
		if err != nil {
			return nil, err
		}
		n := mostBytes / size
		a.classes[i] = class{memory: m, size: size, used: make([]int32, n), copies: make([]uint8, n), free: make([]uint32, 0, n)}
	}
	return a, nil
}

func (a *arena) close() {
	for i := range a.classes {
		_ = unix.Munmap(a.classes[i].memory) // the process ends anyway
	}
}

// held returns how many slots are taken.
func (a *arena) held() (n int) {
	for i := range a.classes {
		n += int(a.classes[i].next) - len(a.classes[i].free)
	}
	return n
}

// take returns a slot for that many bytes, if there is one left.
func (a *arena) take(bytes int) (ref uint32, b []byte, ok bool) {
	for i := range a.classes {
		c := &a.classes[i]
		if bytes > c.size {
			continue
		}
		var index uint32
		if n := len(c.free); n > 0 {
			index = c.free[n-1]
			c.free = c.free[:n-1]
		} else if int(c.next) < len(c.used) {
			index = c.next
			c.next++
		} else {
			continue
		}
		c.used[index] = int32(bytes)
		ref = uint32(i)<<kindShift | index
		return ref, a.bytes(ref), true
	}
	return 0, nil, false
}

func (a *arena) bytes(ref uint32) []byte {
	c := &a.classes[ref>>kindShift]
	i := int(ref & indexMask)
	return c.memory[i*c.size:][:c.used[i]]
}

// keep says how many copies are to leave; none gives the slot back.
func (a *arena) keep(ref uint32, copies int) {
	c := &a.classes[ref>>kindShift]
	i := ref & indexMask
	c.copies[i] = uint8(copies)
	if copies == 0 {
		c.free = append(c.free, i)
	}
}

// drop says that one copy has left.
func (a *arena) drop(ref uint32) {
	c := &a.classes[ref>>kindShift]
	a.keep(ref, int(c.copies[ref&indexMask])-1)
}
