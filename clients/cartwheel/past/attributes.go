package past

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"cartwheel.dev/clients/cartwheel/xattrs"
	"cartwheel.dev/clients/earlier"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/pb"
)

// Units of what stat shows.
const (
	blockSize     = 512
	directorySize = 4096
)

// number is the inode number that programs see: another one for each time, because they
// take files of one number for the same file.
func number(o ids.Object, at hlc.Time) uint64 {
	x := uint64(at) // mixed as in SplitMix64
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return uint64(o) ^ (x ^ x>>31)
}

// stat is what stat shows of a node.
func stat(n *node, a *pb.Attr) mount.Attr {
	out := mount.Attr{
		Ino: number(n.object, n.at), Size: a.Size, Blocks: (a.Stored + blockSize - 1) / blockSize,
		Atime: a.AtimeNs, Mtime: a.MtimeNs, Ctime: a.CtimeNs, Btime: a.BtimeNs,
		Mode: a.Mode, Nlink: a.Nlink, UID: a.Uid, GID: a.Gid, Rdev: a.Rdev,
	}
	if a.Mode&mount.TypeMask == mount.TypeDir {
		out.Size = directorySize
	}
	return out
}

// entry answers a lookup that was counted.
func entry(n *node, a *pb.Attr) mount.Entry {
	return mount.Entry{Node: n.id, Generation: 1, Attr: stat(n, a), AttrValid: valid, EntryValid: valid}
}

// GetAttr implements mount.Attributes.
func (f *FileSystem) GetAttr(ctx context.Context, who mount.Caller, id mount.Inode, h mount.Handle) (mount.AttrReply, error) {
	if !isPast(id) {
		return f.Inner.GetAttr(ctx, who, id, h)
	}
	n := f.table.get(id)
	if n == nil {
		return mount.AttrReply{}, staleNode
	}
	ctx, done := within(ctx, n)
	defer done()
	a, err := f.attr(ctx, n)
	if err != nil {
		return mount.AttrReply{}, err
	}
	return mount.AttrReply{Attr: stat(n, a), Valid: valid}, nil
}

// Access implements mount.Attributes. As on any read-only file system, devices may be
// written to.
func (f *FileSystem) Access(ctx context.Context, who mount.Caller, id mount.Inode, mask uint32) error {
	if !isPast(id) {
		return f.Inner.Access(ctx, who, id, mask)
	}
	n := f.table.get(id)
	if n == nil {
		return staleNode
	}
	ctx, done := within(ctx, n)
	defer done()
	a, err := f.attr(ctx, n)
	if err != nil {
		return err
	}
	switch a.Mode & mount.TypeMask {
	case mount.TypeRegular, mount.TypeDir, mount.TypeSymlink:
		if mask&mount.AccessWrite != 0 {
			return readOnly("past.Access")
		}
	}
	if f.opt.Allowed(a, who, mask) {
		return nil
	}
	return fault.E(fault.Permission, "past.Access", n.object.String(), "")
}

// StatFS implements mount.FileSystem.
func (f *FileSystem) StatFS(ctx context.Context, who mount.Caller, id mount.Inode) (mount.Space, error) {
	if isPast(id) {
		id = mount.Root
	}
	return f.Inner.StatFS(ctx, who, id)
}

// The questions about an object that are answered here, as attributes.
const (
	ownPrefix   = "user.cartwheel."
	cuesName    = ownPrefix + "cues"
	versionName = ownPrefix + "version"
)

// GetXattr implements mount.Xattrs.
func (f *FileSystem) GetXattr(ctx context.Context, who mount.Caller, id mount.Inode, name string, buf []byte) (int, error) {
	if entry, is := isHistory(name); is {
		value, err := historyOf(ctx, f, who, id, entry)
		return xattrs.CopyOut(buf, value, err)
	}
	if !isPast(id) {
		return f.Inner.GetXattr(ctx, who, id, name, buf)
	}
	n := f.table.get(id)
	if n == nil {
		return 0, staleNode
	}
	ctx, done := within(ctx, n)
	defer done()
	value, err := f.xattr(ctx, n, name)
	return xattrs.CopyOut(buf, value, err)
}

// xattr returns the value of an attribute.
func (f *FileSystem) xattr(ctx context.Context, n *node, name string) ([]byte, error) {
	a, err := f.attr(ctx, n)
	switch {
	case err != nil:
		return nil, err
	case name == cuesName:
		return []byte(n.cues.String()), nil
	case name == versionName:
		return strconv.AppendUint(nil, a.Version, 10), nil
	case name == earlier.MomentAttribute:
		return json.Marshal(earlier.Moment{Time: n.at, Object: n.object})
	}
	list, err := f.xattrs(ctx, n, a, name == mount.AccessACL || name == mount.DefaultACL)
	for _, x := range list {
		if x.Name == name {
			return x.Value, nil
		}
	}
	if err == nil {
		err = fault.E(fault.NoAttribute, "past.GetXattr", name, "")
	}
	return nil, err
}

// xattrs returns the attributes of a node, or its ACLs alone, which come with every
// answer.
func (f *FileSystem) xattrs(ctx context.Context, n *node, a *pb.Attr, acls bool) ([]*pb.Xattr, error) {
	if acls || a.NoXattrs {
		return a.Xattrs, nil
	}
	a, err := f.ask(ctx, n, true)
	return a.GetXattrs(), err
}

// ListXattr implements mount.Xattrs.
func (f *FileSystem) ListXattr(ctx context.Context, who mount.Caller, id mount.Inode, buf []byte) (int, error) {
	if !isPast(id) {
		return f.Inner.ListXattr(ctx, who, id, buf)
	}
	n := f.table.get(id)
	if n == nil {
		return 0, staleNode
	}
	ctx, done := within(ctx, n)
	defer done()
	a, err := f.attr(ctx, n)
	if err != nil {
		return 0, err
	}
	list, err := f.xattrs(ctx, n, a, false)
	names := make([]string, len(list))
	for i, x := range list {
		names[i] = x.Name + "\x00"
	}
	slices.Sort(names)
	return xattrs.CopyOut(buf, []byte(strings.Join(slices.Compact(names), "")), err)
}
