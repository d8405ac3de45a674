package memfs

import (
	"slices"

	"cartwheel.dev/clients/mount"
)

// identity is a caller whose groups are looked up when first needed.
type identity struct {
	caller mount.Caller
	groups []uint32
	asked  bool
}

func who(c mount.Caller) *identity { return &identity{caller: c} }

func (w *identity) root() bool { return w.caller.UID == 0 }

func (w *identity) in(group uint32) bool {
	if w.caller.GID == group {
		return true
	}
	if !w.asked {
		w.groups, w.asked = mount.Groups(w.caller), true
	}
	return slices.Contains(w.groups, group)
}
