package gofuse

import (
	"encoding/binary"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// Numbers of requests that are treated apart.
const (
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
)

// Lengths of the headers, of a request to read, of one for a lock, and of one to
// interrupt another.
const (
	inHeaderSize    = 40
	outHeaderSize   = 16
	readInSize      = inHeaderSize + 40
	lockInSize      = inHeaderSize + 48
	interruptInSize = inHeaderSize + 8
)

// Places in a request to write.
const (
	writeSizeAt  = inHeaderSize + 16
	writeFlagsAt = inHeaderSize + 20
	writeData    = inHeaderSize + 40
)

// shorten makes a request to write say that it is as long as it is.
func shorten(in []byte) {
	binary.NativeEndian.PutUint32(in, uint32(len(in)))
	binary.NativeEndian.PutUint32(in[writeSizeAt:], uint32(len(in)-writeData))
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

func headerIn(in []byte) (h fuse.InHeader) {
	u32, u64 := binary.NativeEndian.Uint32, binary.NativeEndian.Uint64
	h.Length, h.Opcode, h.Unique, h.NodeId = u32(in), u32(in[4:]), u64(in[8:]), u64(in[16:])
	h.Uid, h.Gid, h.Pid = u32(in[24:]), u32(in[28:]), u32(in[32:])
	return h
}

func readIn(in []byte) fuse.ReadIn {
	u32, u64 := binary.NativeEndian.Uint32, binary.NativeEndian.Uint64
	var r fuse.ReadIn
	r.InHeader = headerIn(in)
	in = in[inHeaderSize:]
	r.Fh, r.Offset, r.Size, r.ReadFlags, r.LockOwner, r.Flags = u64(in), u64(in[8:]), u32(in[16:]), u32(in[20:]), u64(in[24:]), u32(in[32:])
	return r
}

func lockIn(in []byte) fuse.LkIn {
	u32, u64 := binary.NativeEndian.Uint32, binary.NativeEndian.Uint64
	var r fuse.LkIn
	r.InHeader = headerIn(in)
	in = in[inHeaderSize:]
	r.Fh, r.Owner = u64(in), u64(in[8:])
	r.Lk.Start, r.Lk.End, r.Lk.Typ, r.Lk.Pid = u64(in[16:]), u64(in[24:]), u32(in[32:]), u32(in[36:])
	r.LkFlags = u32(in[40:])
	return r
}

// interruptIn is a request to interrupt another.
func interruptIn(request uint64) []byte {
	in := binary.NativeEndian.AppendUint32(nil, interruptInSize)
	in = binary.NativeEndian.AppendUint32(in, opInterrupt)
	in = append(in, make([]byte, inHeaderSize-len(in))...)
	return binary.NativeEndian.AppendUint64(in, request)
}

// interrupted returns the request that another one interrupts; false: it is not
// of that kind.
func interrupted(in []byte) (request uint64, ok bool) {
	if operation(in) != opInterrupt || len(in) < interruptInSize {
		return 0, false
	}
	return binary.NativeEndian.Uint64(in[inHeaderSize:]), true
}
