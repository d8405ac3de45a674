package historytest

import (
	"context"
	"encoding/binary"
	"fmt"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
)

// onceObject is the object of every event on the names of a write-once directory. What
// a name means there is told by what the file holds, since a client that makes one does
// not learn its object.
const onceObject = "once"

// onceSize is the length of a write-once file; it begins with its value.
const onceSize = 300

// creator is a client that makes files with all of their content.
type creator interface {
	CreateOnce(ctx context.Context, who mount.Caller, dir mount.Inode, name string, mode uint32, content []byte) error
}

// prepareOnce makes the write-once directory.
func prepareOnce(ctx context.Context, fs mount.FileSystem) error {
	below, err := fs.Lookup(ctx, mount.Caller{}, mount.Root, ".WriteOnce")
	if err == nil {
		_, err = fs.Mkdir(ctx, mount.Caller{}, below.Node, onceObject, 0o755)
	}
	return err
}

// meetOnce looks the write-once directory up.
func (a *actor) meetOnce(ctx context.Context) error {
	e, err := a.fs.Lookup(ctx, mount.Caller{}, mount.Root, onceObject)
	if err == nil && e.Node == 0 {
		err = fault.E(fault.NotFound, "history.meetOnce", onceObject, "")
	}
	a.onceDir = e.Node
	return err
}

// once runs one operation in the write-once directory.
func (a *actor) once(ctx context.Context) {
	at := a.rand.IntN(dirs * namesEach)
	switch n := a.rand.IntN(10); {
	case n < 4:
		a.createOnce(ctx, at)
	case n < 8:
		a.readOnce(ctx, at)
	default:
		a.run(ctx, event{object: onceObject, what: unlink, at: at}, func(ctx context.Context) error {
			return a.fs.Unlink(ctx, mount.Caller{}, a.onceDir, onceName(at))
		}, nil)
	}
}

func onceName(at int) string { return fmt.Sprint("o", at) }

func (a *actor) createOnce(ctx context.Context, at int) {
	value := a.unique()
	content := make([]byte, onceSize)
	binary.LittleEndian.PutUint64(content, value)
	a.run(ctx, event{object: onceObject, what: create, at: at, ino: value}, func(ctx context.Context) error {
		return a.fs.(creator).CreateOnce(ctx, mount.Caller{}, a.onceDir, onceName(at), 0o644, content)
	}, nil)
}

// readOnce reads what a name means. One that goes away meanwhile says nothing.
func (a *actor) readOnce(ctx context.Context, at int) {
	var value uint64
	a.run(ctx, event{object: onceObject, what: lookup, at: at}, func(ctx context.Context) error {
		e, err := a.fs.Lookup(ctx, mount.Caller{}, a.onceDir, onceName(at))
		if fault.Is(err, fault.NotFound) || err == nil && e.Node == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		defer a.fs.Forget(e.Node, 1)
		err = a.readValue(ctx, e.Node, &value)
		if fault.Is(err, fault.Stale) || fault.Is(err, fault.NotFound) {
			return errUnsaved
		}
		return err
	}, func(x *event) { x.ino = value })
}

func (a *actor) readValue(ctx context.Context, node mount.Inode, value *uint64) error {
	o, err := a.fs.Open(ctx, mount.Caller{}, node, mount.OpenRead)
	if err != nil {
		return err
	}
	defer a.fs.Release(node, o.Handle, 0, false)
	data := make([]byte, onceSize)
	for at := 0; at < onceSize; {
		n, err := a.fs.Read(ctx, mount.Caller{}, node, o.Handle, int64(at), data[at:])
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.Errorf(fault.Corrupt, "history.readValue", onceObject, "the file shows in part: %d of %d bytes", at, onceSize)
		}
		at += n
	}
	*value = binary.LittleEndian.Uint64(data)
	return nil
}
