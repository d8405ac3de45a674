package gofuse

import (
	"cartwheel.dev/clients/mount"
	"github.com/hanwen/go-fuse/v2/fuse"
)

const (
	flagDirect   = 0
	executeKnown = false
	openNoFlush  = 0 // not known to macFUSE

	seekData = 4
	seekHole = 3
)

// capabilities are asked for beyond go-fuse's own: O_TRUNC inside open.
const capabilities = fuse.CAP_ATOMIC_O_TRUNC

func aclKillsSetGID(*fuse.SetXAttrIn) bool { return false }

func putBirth(out *fuse.Attr, ns int64) { out.Crtime_, out.Crtimensec_ = split(ns) }

// renamex_np's own numbers.
const (
	renameSwap      = 2
	renameExclusive = 4
)

func renameFlags(flags uint32) mount.RenameFlags {
	out := mount.RenameFlags(0)
	if flags&renameSwap != 0 {
		out |= mount.RenameExchange
	}
	if flags&renameExclusive != 0 {
		out |= mount.RenameNoReplace
	}
	return out
}
