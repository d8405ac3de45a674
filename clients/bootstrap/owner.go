package bootstrap

import (
	"context"
	"errors"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
)

// Own gives the root directory, which belongs to root when it is made, to a
// user; who has it already keeps it. The contact's key must be a trusted
// host's. path is a contact file.
func Own(ctx context.Context, path string, uid, gid uint32) (err error) {
	const op fault.Op = "bootstrap.Own"
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
	root, err := c.GetAttr(ctx, mount.Caller{}, mount.Root, 0)
	if err != nil || root.Attr.UID != 0 {
		return fault.Wrap(fault.IO, op, "the root directory", err)
	}
	_, err = c.SetAttr(ctx, mount.Caller{}, mount.Root, mount.SetAttr{Valid: mount.SetOwner | mount.SetGroup, UID: uid, GID: gid})
	return fault.Wrap(fault.IO, op, "the root directory", err)
}
