//go:build linux

package gofuse_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/mount/gofuse"
	"cartwheel.dev/clients/mount/memfs"
	"cartwheel.dev/clients/mount/mounttest"
	"golang.org/x/sys/unix"
)

// filling gives the kernel the content of a file with each open, and counts what
// the kernel asks for after that.
type filling struct {
	mount.FileSystem
	notifier          mount.Notifier
	data              []byte
	filled            atomic.Int64
	reads, attributes atomic.Int64
}

func (f *filling) Init(n mount.Notifier) {
	f.notifier = n
	f.FileSystem.Init(n)
}

func (f *filling) Open(ctx context.Context, c mount.Caller, node mount.Inode, flags mount.OpenFlags) (mount.Opened, error) {
	o, err := f.FileSystem.Open(ctx, c, node, flags)
	if err == nil && !flags.Writes() {
		o.KeepCache = f.notifier.(mount.Filler).Fill(node, f.data, func() bool { return true })
		if o.KeepCache {
			f.filled.Add(1)
		}
	}
	return o, err
}

func (f *filling) Read(ctx context.Context, c mount.Caller, node mount.Inode, h mount.Handle, offset int64, buf []byte) (int, error) {
	f.reads.Add(1)
	return f.FileSystem.Read(ctx, c, node, h, offset, buf)
}

func (f *filling) GetAttr(ctx context.Context, c mount.Caller, node mount.Inode, h mount.Handle) (mount.AttrReply, error) {
	f.attributes.Add(1)
	return f.FileSystem.GetAttr(ctx, c, node, h)
}

// readAll opens, stats, reads and closes, as programs do. It does not use the
// runtime's poller: the file is on a mount of this process.
func readAll(t *testing.T, path string) []byte {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		t.Fatal(err)
	}
	out := make([]byte, st.Size+1)
	n := 0
	for {
		m, err := unix.Read(fd, out[n:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if n += m; m == 0 || n == len(out) {
			return out[:n]
		}
	}
}

// TestFill_KernelDoesNotAskForIt fills files. The kernel asks neither for bytes,
// nor for attributes at the opens that follow. What is dropped it asks for
// again.
func TestFill_KernelDoesNotAskForIt(t *testing.T) {
	mounttest.NeedFUSE(t)
	for _, size := range []int{1, 4095, 4096, 4097, 16 << 10, 64 << 10} {
		ctx := context.Background()
		view := memfs.New(memfs.Options{Valid: time.Hour}).View()
		fs := &filling{FileSystem: view, data: bytes.Repeat([]byte{'k'}, size)}
		m, err := gofuse.Mount(fs, options(t))
		if err != nil {
			t.Fatal(err)
		}
		e, o, err := view.Create(ctx, mount.Caller{}, mount.Root, "f", 0o644, mount.OpenWrite)
		if err == nil {
			_, err = view.Write(ctx, mount.Caller{}, e.Node, o.Handle, 0, bytes.Repeat([]byte{'m'}, size), 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(m.Point(), "f")
		for range 3 {
			if got := readAll(t, path); !bytes.Equal(got, fs.data) {
				t.Errorf("%d bytes: got %d, or others", size, len(got))
			}
		}
		if filled, reads, attributes := fs.filled.Load(), fs.reads.Load(), fs.attributes.Load(); filled != 3 || reads != 0 || attributes > 1 {
			t.Errorf("%d bytes: filled %d times, want 3; %d reads, want 0; %d questions for attributes, want that of the root at most", size, filled, reads, attributes)
		}
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		fs.notifier.InvalidateInode(e.Node, 0, 0)
		told := make(chan struct{})
		fs.notifier.Drained(func() { close(told) })
		<-told
		got := make([]byte, size)
		if n, err := unix.Pread(fd, got, 0); err != nil || n != size || got[size-1] != 'm' || fs.reads.Load() == 0 {
			t.Errorf("%d bytes: what was dropped reads %d bytes that end in %q, %v", size, n, got[size-1], err)
		}
		unix.Close(fd)
		if fs.notifier.(mount.Filler).Fill(1<<40, fs.data, func() bool { return true }) {
			t.Error("a node that the kernel does not know was filled")
		}
		if err := m.Unmount(mount.UnmountLimit); err != nil {
			t.Error(err)
		}
	}
}
