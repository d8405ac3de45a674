package memfs

import (
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
)

// may checks permission on i; want is a sum of the Access masks.
func (i *inode) may(w *identity, want uint32) error {
	if i.allows(w, want) {
		return nil
	}
	return fail(fault.Permission)
}

func (i *inode) allows(w *identity, want uint32) bool {
	mode := i.attr.Mode
	if w.root() {
		return want&mount.AccessExecute == 0 || i.entries != nil || mode&0o111 != 0
	}
	if i.access != nil {
		return i.access.allows(w, i.attr.UID, i.attr.GID, uint16(want))
	}
	switch {
	case w.caller.UID == i.attr.UID:
		mode >>= 6
	case mode>>3&7 != mode&7 && w.in(i.attr.GID):
		mode >>= 3
	}
	return mode&want == want
}

func (i *inode) owned(w *identity) bool { return w.root() || w.caller.UID == i.attr.UID }

// mayName checks that w may add or remove names in dir.
func (i *inode) mayName(w *identity) error {
	return i.may(w, mount.AccessWrite|mount.AccessExecute)
}

// mayRemove checks that w may take child's name out of dir: the sticky bit
// keeps all but the two owners from it.
func (i *inode) mayRemove(w *identity, child *inode) error {
	if err := i.mayName(w); err != nil {
		return err
	}
	if i.attr.Mode&mount.Sticky != 0 && !i.owned(w) && !child.owned(w) {
		return fail(fault.NotOwner)
	}
	return nil
}

// killSetID clears set-id bits and capabilities as a change by one without
// privilege does: set-gid only where it means a group to run as.
func (i *inode) killSetID() {
	if i.entries != nil {
		return
	}
	i.attr.Mode &^= mount.SetUID
	if i.attr.Mode&0o010 != 0 {
		i.attr.Mode &^= mount.SetGID
	}
}

// capability is the attribute that no change of content or owner outlives.
const capability = "security.capability"

func (i *inode) dropCapability() { delete(i.xattrs, capability) }
