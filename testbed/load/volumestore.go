package load

import (
	"context"
	"errors"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/volume"
	"cartwheel.dev/geo-config/fault"
)

// boxes are directories of small files, by number: volumes, or plain directories.
type boxes interface {
	create(ctx context.Context, box int, name string, data []byte) error
	read(ctx context.Context, box int, name string) ([]byte, error)
	remove(ctx context.Context, box int, name string) error
	close()
}

// volumeBoxes are write-once volumes.
type volumeBoxes []*volume.Volume

func (b volumeBoxes) create(ctx context.Context, box int, name string, data []byte) error {
	return b[box].Create(ctx, name, data)
}

func (b volumeBoxes) read(ctx context.Context, box int, name string) ([]byte, error) {
	return b[box].Read(ctx, name)
}

func (b volumeBoxes) remove(ctx context.Context, box int, name string) error {
	return b[box].Delete(ctx, name)
}

func (b volumeBoxes) close() {
	for _, v := range b {
		v.Close()
	}
}

// plainBoxes are ordinary directories, used as a program uses them: open, write, close.
type plainBoxes struct {
	c    *cartwheel.Client
	dirs []mount.Inode
}

var nobody mount.Caller

func (b plainBoxes) create(ctx context.Context, box int, name string, data []byte) error {
	e, o, err := b.c.Create(ctx, nobody, b.dirs[box], name, 0o644, mount.OpenWrite|mount.OpenExclusive)
	if err != nil {
		return err
	}
	defer b.c.Forget(e.Node, 1)
	defer b.c.Release(e.Node, o.Handle, 0, false)
	for at := 0; at < len(data) && err == nil; {
		var n int
		n, err = b.c.Write(ctx, nobody, e.Node, o.Handle, int64(at), data[at:], 0)
		at += n
	}
	if err == nil {
		err = b.c.Flush(ctx, nobody, e.Node, o.Handle, 0) // as close does
	}
	return err
}

func (b plainBoxes) read(ctx context.Context, box int, name string) ([]byte, error) {
	e, err := b.c.Lookup(ctx, nobody, b.dirs[box], name)
	if err == nil && e.Node == 0 {
		err = fault.E(fault.NotFound, "load.read", name, "")
	}
	if err != nil {
		return nil, err
	}
	defer b.c.Forget(e.Node, 1)
	o, err := b.c.Open(ctx, nobody, e.Node, mount.OpenRead)
	if err != nil {
		return nil, err
	}
	defer b.c.Release(e.Node, o.Handle, 0, false)
	data := make([]byte, e.Attr.Size)
	for at := 0; at < len(data); {
		n, err := b.c.Read(ctx, nobody, e.Node, o.Handle, int64(at), data[at:])
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return data[:at], nil
		}
		at += n
	}
	return data, nil
}

func (b plainBoxes) remove(ctx context.Context, box int, name string) error {
	return b.c.Unlink(ctx, nobody, b.dirs[box], name)
}

func (b plainBoxes) close() {
	for _, d := range b.dirs {
		b.c.Forget(d, 1)
	}
}

// openBoxes opens the boxes of a folder, which MakeBoxes made.
func openBoxes(ctx context.Context, c *cartwheel.Client, o BoxOptions) (boxes, error) {
	if !o.Plain {
		var out volumeBoxes
		for i := range o.Boxes {
			v, err := volume.Open(ctx, c, nobody, o.Folder+"/"+boxName(i))
			if err != nil {
				out.close()
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	}
	out := plainBoxes{c: c}
	for i := range o.Boxes {
		e, err := c.Walk(ctx, nobody, mount.Root, o.Folder+"/"+boxName(i))
		if err == nil && e.Node == 0 {
			err = fault.E(fault.NotFound, "load.openBoxes", o.Folder, "is not there: make the boxes first")
		}
		if err != nil {
			out.close()
			return nil, err
		}
		out.dirs = append(out.dirs, e.Node)
	}
	return out, nil
}

// MakeBoxes makes the folder, whose path may have cues, and the boxes in it, and plants
// files that nobody deletes.
func MakeBoxes(ctx context.Context, o BoxOptions, cues string) (err error) {
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	parent, err := c.Walk(ctx, nobody, mount.Root, cues)
	if err != nil {
		return err
	}
	defer c.Forget(parent.Node, 1)
	folder, err := c.Mkdir(ctx, nobody, parent.Node, o.Folder[1:], 0o755)
	if err != nil {
		return err
	}
	defer c.Forget(folder.Node, 1)
	for i := range o.Boxes {
		if o.Plain {
			made, err := c.Mkdir(ctx, nobody, folder.Node, boxName(i), 0o755)
			if err != nil {
				return err
			}
			c.Forget(made.Node, 1)
			continue
		}
		v, err := volume.Make(ctx, c, nobody, o.Folder, boxName(i))
		if err != nil {
			return err
		}
		v.Close()
	}
	b, err := openBoxes(ctx, c, o)
	if err != nil {
		return err
	}
	defer b.close()
	return each(ctx, 8, o.Boxes*o.Planted, func(ctx context.Context, i int) error {
		f := o.planted(i)
		return b.create(ctx, f.box, f.name, f.content(o.Seed))
	})
}
