package bootstrap

import (
	"context"
	"errors"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
)

// openMode is the mode of a folder that everybody may write.
const openMode = 0o777

// Own gives the root directory, which belongs to root when it is made, to a
// user; who has it already keeps it. The contact's key must be a trusted
// host's. path is a contact file.
func Own(ctx context.Context, path string, uid, gid uint32) error {
	const op fault.Op = "bootstrap.Own"
	return asRoot(ctx, path, func(ctx context.Context, c *cartwheel.Client) error {
		root, err := c.GetAttr(ctx, mount.Caller{}, mount.Root, 0)
		if err != nil || root.Attr.UID != 0 {
			return fault.Wrap(fault.IO, op, "the root directory", err)
		}
		return fault.Wrap(fault.IO, op, "the root directory", give(ctx, c, mount.Root, uid, gid))
	})
}

// OpenFolder makes a folder of the root directory that everybody may write, and gives
// it to a user; what has the name already stays as it is. The contact's key must be a
// trusted host's. path is a contact file.
func OpenFolder(ctx context.Context, path, name string, uid, gid uint32) error {
	const op fault.Op = "bootstrap.OpenFolder"
	return asRoot(ctx, path, func(ctx context.Context, c *cartwheel.Client) error {
		made, err := c.Mkdir(ctx, mount.Caller{}, mount.Root, name, openMode)
		if fault.Is(err, fault.Exists) {
			return nil
		}
		if err != nil {
			return fault.Wrap(fault.IO, op, name, err)
		}
		defer c.Forget(made.Node, 1)
		return fault.Wrap(fault.IO, op, name, give(ctx, c, made.Node, uid, gid))
	})
}

func give(ctx context.Context, c *cartwheel.Client, node mount.Inode, uid, gid uint32) error {
	_, err := c.SetAttr(ctx, mount.Caller{}, node, mount.SetAttr{Valid: mount.SetOwner | mount.SetGroup, UID: uid, GID: gid})
	return err
}

// asRoot has do use a client of its own, within rootLimit.
func asRoot(ctx context.Context, path string, do func(context.Context, *cartwheel.Client) error) (err error) {
	file, err := contact.Load(path)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, rootLimit)
	defer cancel()
	c, err := cartwheel.Open(ctx, cartwheel.Options{Contact: file, Name: "founding"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return do(ctx, c)
}
