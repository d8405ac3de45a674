// Package traced counts what the operations of a mounted file system cost: it
// wraps a mount.FileSystem, opens a trace.Operation for each call and hands the
// count on in the call's context, to where calls to nodes are made. It answers
// the attributes by which people read the counts and follow one process. It
// caches nothing and changes no answer. A FileSystem is safe for use by many
// goroutines, as far as the file system within is; it has no lock of its own.
package traced

import (
	"context"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/trace"
)

// Inner is the file system that does the work.
type Inner interface {
	mount.FileSystem
	mount.NamelessCreator
	mount.PieceReader
	mount.PathWalker
	mount.RangeCopier
}

// Options set up a FileSystem. None may be missing.
type Options struct {
	// Recorder takes the counts.
	Recorder *trace.Recorder
	// Path is the path below the mount of a node, with a name in it, as far as
	// caches know it. A traced operation asks for it when it ends; it must not
	// block.
	Path func(node mount.Inode, name string) string
	// StartRead is mount.ReadStarter's: it begins a read of an open file, and calls
	// then with the bytes. Its calls to nodes count for the operation.
	StartRead func(o *trace.Operation, h mount.Handle, offset int64, size int, then func(data []byte, ok bool)) bool
}

// FileSystem is an Inner with each operation counted by its kind. A walk counts
// as one lookup.
type FileSystem struct {
	Inner
	recorder  *trace.Recorder
	path      func(node mount.Inode, name string) string
	startRead func(o *trace.Operation, h mount.Handle, offset int64, size int, then func(data []byte, ok bool)) bool
}

var (
	_ mount.FileSystem      = (*FileSystem)(nil)
	_ mount.NamelessCreator = (*FileSystem)(nil)
	_ mount.PieceReader     = (*FileSystem)(nil)
	_ mount.ReadStarter     = (*FileSystem)(nil)
	_ mount.PathWalker      = (*FileSystem)(nil)
	_ mount.RangeCopier     = (*FileSystem)(nil)
)

// New returns a file system that counts what it hands on.
func New(inner Inner, o Options) *FileSystem {
	return &FileSystem{Inner: inner, recorder: o.Recorder, path: o.Path, startRead: o.StartRead}
}

// begun is one operation that has begun.
type begun struct {
	f    *FileSystem
	o    *trace.Operation
	node mount.Inode
	name string
}

func (f *FileSystem) begin(ctx context.Context, k trace.Kind, who mount.Caller, node mount.Inode, name string) (context.Context, begun) {
	o := f.recorder.Begin(k, trace.Caller{UID: who.UID, PID: who.PID})
	return trace.With(ctx, o), begun{f, o, node, name}
}

func (b begun) end() {
	if !b.o.Watched() {
		b.f.recorder.End(b.o, nil)
		return
	}
	b.f.recorder.End(b.o, func() string { return b.f.path(b.node, b.name) })
}
