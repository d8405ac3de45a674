//go:build linux || darwin

package gofuse

import (
	"cartwheel.dev/clients/mount"
	"github.com/hanwen/go-fuse/v2/fuse"
)

func (b *binding) OpenDir(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	o, err := b.fs.OpenDir(request{cancel}, caller(&in.InHeader, 0), node(&in.InHeader))
	if err != nil {
		return status(err)
	}
	putOpened(out, o, mount.OpenRead)
	return fuse.OK
}

func (b *binding) ReadDir(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return b.list(cancel, in, out, false)
}

func (b *binding) ReadDirPlus(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return b.list(cancel, in, out, true)
}

func (b *binding) list(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList, plus bool) fuse.Status {
	return status(b.fs.ReadDir(request{cancel}, caller(&in.InHeader, 0), node(&in.InHeader),
		mount.Handle(in.Fh), in.Offset, plus, (*sink)(out)))
}

// sink writes entries straight into the answer.
type sink fuse.DirEntryList

// Add implements mount.DirSink.
func (s *sink) Add(e mount.DirEntry) bool {
	return (*fuse.DirEntryList)(s).AddDirEntry(fuse.DirEntry{Name: e.Name, Ino: e.Ino, Mode: e.Type, Off: e.Offset})
}

// AddPlus implements mount.DirSink.
func (s *sink) AddPlus(e mount.DirEntry, looked *mount.Entry) bool {
	out := (*fuse.DirEntryList)(s).AddDirLookupEntry(fuse.DirEntry{Name: e.Name, Ino: e.Ino, Mode: e.Type, Off: e.Offset})
	if out == nil {
		return false
	}
	if looked.Node != 0 {
		putEntry(out, looked)
	}
	return true
}

func (b *binding) ReleaseDir(in *fuse.ReleaseIn) {
	b.fs.ReleaseDir(node(&in.InHeader), mount.Handle(in.Fh))
}

func (b *binding) FsyncDir(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return status(b.fs.FsyncDir(request{cancel}, caller(&in.InHeader, 0), node(&in.InHeader),
		mount.Handle(in.Fh), in.FsyncFlags&syncDataOnly != 0))
}
