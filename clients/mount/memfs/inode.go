package memfs

import "cartwheel.dev/clients/mount"

// inode is one object. It goes when it has no name, no handle and no lookup.
type inode struct {
	node    mount.Inode
	attr    mount.Attr
	lookups uint64
	handles int
	writers int         // of handles, those that may write
	parent  mount.Inode // of a directory
	target  string      // of a symbolic link
	content content     // of a regular file
	entries *entries    // of a directory
	xattrs  map[string][]byte
	access  acl // nil: the mode bits say it all
	deflt   acl // of a directory: inherited by what is made in it
	locks   lockTable
}

func (i *inode) stat() mount.Attr {
	a := i.attr
	switch {
	case i.entries != nil:
		a.Size = uint64(4096 + 32*i.entries.len())
	case i.target != "":
		a.Size = uint64(len(i.target))
	default:
		a.Size = uint64(i.content.size)
		a.Blocks = i.content.blocks()
	}
	return a
}

func (i *inode) kind() uint32 { return i.attr.Mode & mount.TypeMask }

// changed notes a change of content and attributes.
func (i *inode) changed(now int64) { i.attr.Mtime, i.attr.Ctime = now, now }
