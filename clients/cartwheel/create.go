package cartwheel

import (
	"context"

	"cartwheel.dev/clients/cartwheel/creation"
	"cartwheel.dev/clients/cartwheel/replies"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/pb"
)

// object makes something that is not opened.
func (c *Client) object(ctx context.Context, who mount.Caller, id mount.Inode, name string, call cue.Call, create *pb.Create) (mount.Entry, error) {
	dir, cues, ok := c.nodes.Find(id)
	if !ok {
		return mount.Entry{}, staleNode
	}
	create.Exclusive = true
	m, err := c.maker.Make(ctx, creation.Request{Dir: dir, Cues: cues, Name: name, Who: who, Create: create, Call: call})
	if err != nil {
		return mount.Entry{}, err
	}
	return c.replies.Named(replies.In{Node: id, Dir: dir, Cues: cues}, name, m.Attr), nil
}

// Mknod implements mount.Names.
func (c *Client) Mknod(ctx context.Context, who mount.Caller, dir mount.Inode, name string, mode, rdev uint32) (mount.Entry, error) {
	if t := mode & mount.TypeMask; t == mount.TypeDir || t == mount.TypeSymlink {
		return mount.Entry{}, fault.E(fault.NotOwner, "cartwheel.Mknod", name, "")
	} else if t == 0 {
		mode |= mount.TypeRegular
	}
	return c.object(ctx, who, dir, name, cue.Open, &pb.Create{Mode: mode, Rdev: rdev})
}

// Mkdir implements mount.Names.
func (c *Client) Mkdir(ctx context.Context, who mount.Caller, dir mount.Inode, name string, mode uint32) (mount.Entry, error) {
	return c.object(ctx, who, dir, name, cue.Mkdir, &pb.Create{Mode: mode&^mount.TypeMask | mount.TypeDir})
}

// Symlink implements mount.Names.
func (c *Client) Symlink(ctx context.Context, who mount.Caller, dir mount.Inode, name, target string) (mount.Entry, error) {
	who.Umask = 0
	return c.object(ctx, who, dir, name, cue.Open, &pb.Create{Mode: mount.TypeSymlink | 0o777, Target: []byte(target)})
}
