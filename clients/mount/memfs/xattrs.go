package memfs

import (
	"context"
	"slices"
	"strings"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
)

// The bounds that Linux sets.
const (
	xattrNameMax  = 255
	xattrValueMax = 64 << 10
)

// fill copies value into buf by the rule that an empty buf asks for the size.
func fill(buf, value []byte) (int, error) {
	if len(buf) == 0 {
		return len(value), nil
	}
	if len(buf) < len(value) {
		return len(value), fail(fault.TooSmall)
	}
	return copy(buf, value), nil
}

// GetXattr implements mount.Xattrs.
func (v *View) GetXattr(_ context.Context, c mount.Caller, node mount.Inode, name string, buf []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	i, err := v.get(node)
	if err != nil {
		return 0, err
	}
	if strings.HasPrefix(name, "user.") {
		if err := i.may(who(c), mount.AccessRead); err != nil {
			return 0, err
		}
	}
	value, ok := i.xattr(name)
	if !ok {
		return 0, fail(fault.NoAttribute)
	}
	return fill(buf, value)
}

func (i *inode) xattr(name string) ([]byte, bool) {
	switch name {
	case mount.AccessACL:
		return i.access.encode(), i.access != nil
	case mount.DefaultACL:
		return i.deflt.encode(), i.deflt != nil
	}
	value, ok := i.xattrs[name]
	return value, ok
}

// ListXattr implements mount.Xattrs.
func (v *View) ListXattr(_ context.Context, _ mount.Caller, node mount.Inode, buf []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	i, err := v.get(node)
	if err != nil {
		return 0, err
	}
	names := make([]string, 0, len(i.xattrs)+2)
	for name := range i.xattrs {
		names = append(names, name)
	}
	if i.access != nil {
		names = append(names, mount.AccessACL)
	}
	if i.deflt != nil {
		names = append(names, mount.DefaultACL)
	}
	slices.Sort(names)
	var list []byte
	for _, name := range names {
		list = append(append(list, name...), 0)
	}
	return fill(buf, list)
}

// SetXattr implements mount.Xattrs.
func (v *View) SetXattr(_ context.Context, c mount.Caller, node mount.Inode, name string, value []byte, flags mount.XattrFlags) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	i, err := v.changeable(c, node, name)
	if err != nil {
		return err
	}
	if len(name) > xattrNameMax || len(value) > xattrValueMax {
		return fail(fault.TooSmall)
	}
	_, there := i.xattr(name)
	switch {
	case there && flags&mount.XattrCreate != 0:
		return fail(fault.Exists)
	case !there && flags&mount.XattrReplace != 0:
		return fail(fault.NoAttribute)
	}
	if isACL(name) {
		if err := i.setACL(name, value, flags); err != nil {
			return err
		}
	} else {
		if i.xattrs == nil {
			i.xattrs = map[string][]byte{}
		}
		i.xattrs[name] = append([]byte{}, value...)
	}
	i.attr.Ctime = v.now()
	v.tellAttr(i)
	return nil
}

func (i *inode) setACL(name string, value []byte, flags mount.XattrFlags) error {
	a, err := parseACL(value)
	if err != nil {
		return err
	}
	if name == mount.DefaultACL {
		if i.entries == nil {
			return fail(fault.Permission)
		}
		i.deflt = a
		return nil
	}
	i.attr.Mode = i.attr.Mode&^0o777 | a.mode()
	if flags&mount.XattrKillSetGID != 0 {
		i.attr.Mode &^= mount.SetGID
	}
	i.access = a
	if a.plain() {
		i.access = nil
	}
	return nil
}

// changeable finds an inode whose attribute name the caller may change.
func (s *Store) changeable(c mount.Caller, node mount.Inode, name string) (*inode, error) {
	i, err := s.get(node)
	if err != nil {
		return nil, err
	}
	w := who(c)
	switch {
	case isACL(name):
		if !i.owned(w) {
			return nil, fail(fault.NotOwner)
		}
	case strings.HasPrefix(name, "user."):
		if i.entries == nil && i.kind() != mount.TypeRegular {
			return nil, fail(fault.NotOwner)
		}
		return i, i.may(w, mount.AccessWrite)
	case !w.root():
		return nil, fail(fault.NotOwner)
	}
	return i, nil
}

// removable finds an inode whose attribute name the caller may remove: kernels
// remove capabilities for whoever changes the content.
func (s *Store) removable(c mount.Caller, node mount.Inode, name string) (*inode, error) {
	if name != capability {
		return s.changeable(c, node, name)
	}
	i, err := s.get(node)
	if err != nil {
		return nil, err
	}
	return i, i.may(who(c), mount.AccessWrite)
}

// RemoveXattr implements mount.Xattrs.
func (v *View) RemoveXattr(_ context.Context, c mount.Caller, node mount.Inode, name string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	i, err := v.removable(c, node, name)
	if err != nil {
		return err
	}
	if _, there := i.xattr(name); !there {
		return fail(fault.NoAttribute)
	}
	switch name {
	case mount.AccessACL:
		i.access = nil
	case mount.DefaultACL:
		i.deflt = nil
	default:
		delete(i.xattrs, name)
	}
	i.attr.Ctime = v.now()
	v.tellAttr(i)
	return nil
}
