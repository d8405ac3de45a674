// Package volume has write-once volumes, as BeanFS has them: a volume is a directory
// whose files are created once, with all of their content, and then read and deleted,
// and never changed. It is for programs that use the client library. What a volume
// holds is at the same time below every mount, and the other way round.
package volume

import (
	"context"
	"strings"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
)

// Files is what a Volume needs of a client; a *cartwheel.Client has it.
type Files interface {
	mount.PathWalker
	Mkdir(ctx context.Context, c mount.Caller, dir mount.Inode, name string, mode uint32) (mount.Entry, error)
	Unlink(ctx context.Context, c mount.Caller, dir mount.Inode, name string) error
	Lookup(ctx context.Context, c mount.Caller, dir mount.Inode, name string) (mount.Entry, error)
	Forget(id mount.Inode, lookups uint64)
	GetXattr(ctx context.Context, c mount.Caller, id mount.Inode, name string, buf []byte) (int, error)
	CreateOnce(ctx context.Context, c mount.Caller, dir mount.Inode, name string, mode uint32, content []byte) error
	Open(ctx context.Context, c mount.Caller, id mount.Inode, flags mount.OpenFlags) (mount.Opened, error)
	Read(ctx context.Context, c mount.Caller, id mount.Inode, h mount.Handle, offset int64, buf []byte) (int, error)
	Release(id mount.Inode, h mount.Handle, owner mount.LockOwner, unlock bool)
}

// Volume is one volume of a client, as one user. It is safe for use by many
// goroutines. The client stays the caller's.
type Volume struct {
	files Files
	who   mount.Caller
	path  string
	dir   mount.Inode
}

// Modes of what is made; the caller's umask is taken from them.
const (
	volumeMode = 0o755
	fileMode   = 0o644
)

// cuesName is the extended attribute that lists what a directory keeps.
const cuesName = "user.cartwheel.cues"

// Open returns the volume at a path below the root of the tree, which may have cues.
// Invalid: files of the directory there can be changed. The caller closes the volume.
func Open(ctx context.Context, f Files, who mount.Caller, path string) (*Volume, error) {
	const op fault.Op = "volume.Open"
	e, err := f.Walk(ctx, who, mount.Root, path)
	if err != nil {
		return nil, err
	}
	switch {
	case e.Node == 0:
		return nil, fault.E(fault.NotFound, op, path, "there is no such volume: make it with volume.Make")
	case e.Attr.Mode&mount.TypeMask != mount.TypeDir:
		f.Forget(e.Node, 1)
		return nil, fault.E(fault.NotDirectory, op, path, "")
	}
	v := &Volume{files: f, who: who, path: path, dir: e.Node}
	var cues [512]byte // all cues with the longest values are shorter
	n, err := f.GetXattr(ctx, who, e.Node, cuesName, cues[:])
	if fault.Is(err, fault.NoAttribute) {
		n, err = 0, nil
	}
	if err == nil && !strings.Contains("/"+string(cues[:n])+"/", "/.WriteOnce/") {
		err = fault.E(fault.Invalid, op, path, "is no volume: a directory is one that was made below .WriteOnce")
	}
	if err != nil {
		v.Close()
		return nil, err
	}
	return v, nil
}

// Make makes a volume in a directory, which is there, and opens it. Exists: there is
// something of that name. The cues of the path say where its replicas are.
func Make(ctx context.Context, f Files, who mount.Caller, dir, name string) (*Volume, error) {
	const op fault.Op = "volume.Make"
	if err := check(op, name); err != nil {
		return nil, err
	}
	e, err := f.Walk(ctx, who, mount.Root, dir+"/.WriteOnce")
	if err != nil {
		return nil, err
	}
	defer f.Forget(e.Node, 1)
	made, err := f.Mkdir(ctx, who, e.Node, name, volumeMode)
	if err != nil {
		return nil, fault.Wrap(fault.IO, op, name, err)
	}
	return &Volume{files: f, who: who, path: dir + "/" + name, dir: made.Node}, nil
}

// Close forgets the volume. Nothing of it may be under way.
func (v *Volume) Close() { v.files.Forget(v.dir, 1) }

// check refuses what is not one name.
func check(op fault.Op, name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fault.Errorf(fault.Invalid, op, name, "%q is no name of a file: it is not empty, . or .., and has no / and no zero byte", name)
	}
	return nil
}

// Create makes a file that holds content. When it returns without an error the file
// is on disk at its replicas, and stays as it is; others never see part of it. Exists:
// there is a file of that name. After any other error there is no such file, or it is
// complete.
func (v *Volume) Create(ctx context.Context, name string, content []byte) error {
	const op fault.Op = "volume.Create"
	if err := check(op, name); err != nil {
		return err
	}
	return fault.Wrap(fault.IO, op, name, v.files.CreateOnce(ctx, v.who, v.dir, name, fileMode, content))
}

// Read returns what a file holds, in memory of its own. NotFound: there is none of
// that name.
func (v *Volume) Read(ctx context.Context, name string) ([]byte, error) {
	const op fault.Op = "volume.Read"
	e, err := v.find(ctx, op, name)
	if err != nil {
		return nil, err
	}
	defer v.files.Forget(e.Node, 1)
	h, err := v.files.Open(ctx, v.who, e.Node, mount.OpenRead)
	if err != nil {
		return nil, fault.Wrap(fault.IO, op, name, err)
	}
	defer v.files.Release(e.Node, h.Handle, 0, false)
	out := make([]byte, e.Attr.Size)
	for at := 0; at < len(out); {
		n, err := v.files.Read(ctx, v.who, e.Node, h.Handle, int64(at), out[at:])
		if err != nil {
			return nil, fault.Wrap(fault.IO, op, name, err)
		}
		if n == 0 {
			return nil, fault.Errorf(fault.Again, op, name, "its content is not complete: it has %d of %d bytes", at, len(out))
		}
		at += n
	}
	return out, nil
}

// Delete removes a file. NotFound: there is none of that name.
func (v *Volume) Delete(ctx context.Context, name string) error {
	const op fault.Op = "volume.Delete"
	if err := check(op, name); err != nil {
		return err
	}
	return fault.Wrap(fault.IO, op, name, v.files.Unlink(ctx, v.who, v.dir, name))
}

// Stat returns the attributes of a file. NotFound: there is none of that name.
func (v *Volume) Stat(ctx context.Context, name string) (mount.Attr, error) {
	e, err := v.find(ctx, "volume.Stat", name)
	if err == nil {
		v.files.Forget(e.Node, 1)
	}
	return e.Attr, err
}

// find looks a file up. The caller forgets its node.
func (v *Volume) find(ctx context.Context, op fault.Op, name string) (mount.Entry, error) {
	if err := check(op, name); err != nil {
		return mount.Entry{}, err
	}
	e, err := v.files.Lookup(ctx, v.who, v.dir, name)
	switch {
	case err != nil:
		return mount.Entry{}, fault.Wrap(fault.IO, op, name, err)
	case e.Node == 0:
		return mount.Entry{}, fault.E(fault.NotFound, op, v.path+"/"+name, "")
	case e.Attr.Mode&mount.TypeMask != mount.TypeRegular:
		v.files.Forget(e.Node, 1)
		return mount.Entry{}, fault.E(fault.Invalid, op, v.path+"/"+name, "is no file")
	}
	return e, nil
}
