package treefs

import (
	"io"
	"io/fs"
	"path"
	"time"

	"cartwheel.dev/clients/mount"
)

// maxListed bounds the names of one listing: what comes behind them is not shown.
const maxListed = 10_000

var (
	_ fs.ReadDirFile = (*file)(nil)
	_ io.Seeker      = (*file)(nil)
)

// file is an open file or directory; like an os.File it serves one reader.
type file struct {
	fs     *FS
	info   info
	node   mount.Inode
	handle mount.Handle // of a regular file
	at     int64
	listed []fs.DirEntry // what ReadDir has not handed out yet
	began  bool          // to list
}

func (f *file) Stat() (fs.FileInfo, error) { return f.info, nil }

func (f *file) Read(buf []byte) (int, error) {
	if f.info.IsDir() {
		return 0, &fs.PathError{Op: "read", Path: f.info.name, Err: fs.ErrInvalid}
	}
	if len(buf) == 0 {
		return 0, nil
	}
	n, err := f.fs.client.Read(f.fs.ctx, f.fs.who, f.node, f.handle, f.at, buf)
	f.at += int64(n)
	if err != nil {
		return n, &fs.PathError{Op: "read", Path: f.info.name, Err: translated(err)}
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (f *file) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.at
	case io.SeekEnd:
		offset += f.info.Size()
	}
	if offset < 0 || f.info.IsDir() {
		return 0, &fs.PathError{Op: "seek", Path: f.info.name, Err: fs.ErrInvalid}
	}
	f.at = offset
	return offset, nil
}

// ReadDir implements fs.ReadDirFile, up to maxListed names.
func (f *file) ReadDir(n int) ([]fs.DirEntry, error) {
	if !f.info.IsDir() {
		return nil, &fs.PathError{Op: "readdir", Path: f.info.name, Err: fs.ErrInvalid}
	}
	if !f.began {
		if err := f.list(); err != nil {
			return nil, &fs.PathError{Op: "readdir", Path: f.info.name, Err: translated(err)}
		}
		f.began = true
	}
	out := f.listed
	if n > 0 {
		if len(out) == 0 {
			return nil, io.EOF
		}
		out = out[:min(n, len(out))]
	}
	f.listed = f.listed[len(out):]
	return out, nil
}

func (f *file) list() error {
	opened, err := f.fs.client.OpenDir(f.fs.ctx, f.fs.who, f.node)
	if err != nil {
		return err
	}
	defer f.fs.client.ReleaseDir(f.node, opened.Handle)
	s := sink{file: f}
	for {
		before := s.offset
		if err := f.fs.client.ReadDir(f.fs.ctx, f.fs.who, f.node, opened.Handle, s.offset, false, &s); err != nil {
			return err
		}
		if s.offset == before || len(f.listed) >= maxListed {
			return nil
		}
	}
}

func (f *file) Close() error {
	if !f.info.IsDir() {
		f.fs.client.Release(f.node, f.handle, 0, false)
	}
	f.fs.client.Forget(f.node, 1)
	return nil
}

// sink takes the names of a directory, without links and the like.
type sink struct {
	file   *file
	offset uint64
}

func (s *sink) Add(e mount.DirEntry) bool {
	if len(s.file.listed) >= maxListed {
		return false
	}
	s.offset = e.Offset
	if e.Name != "." && e.Name != ".." && (e.Type == mount.TypeDir || e.Type == mount.TypeRegular) {
		s.file.listed = append(s.file.listed, entry{fs: s.file.fs, dir: s.file.info.path, name: e.Name, kind: e.Type})
	}
	return true
}

func (s *sink) AddPlus(e mount.DirEntry, _ *mount.Entry) bool { return s.Add(e) }

// entry is one name of a listing; Info looks it up.
type entry struct {
	fs        *FS
	dir, name string
	kind      uint32
}

func (e entry) Name() string { return e.name }
func (e entry) IsDir() bool  { return e.kind == mount.TypeDir }
func (e entry) Type() fs.FileMode {
	return modeOf(e.kind).Type()
}
func (e entry) Info() (fs.FileInfo, error) { return e.fs.Stat(path.Join(e.dir, e.name)) }

// info is the attributes of a file when it was found.
type info struct {
	path, name string
	attr       mount.Attr
}

func infoOf(name string, a mount.Attr) info { return info{path: name, name: path.Base(name), attr: a} }

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return int64(i.attr.Size) }
func (i info) Mode() fs.FileMode  { return modeOf(i.attr.Mode) }
func (i info) ModTime() time.Time { return time.Unix(0, i.attr.Mtime) }
func (i info) IsDir() bool        { return i.Mode().IsDir() }
func (i info) Sys() any           { return nil }

func modeOf(mode uint32) fs.FileMode {
	m := fs.FileMode(mode & 0o777)
	if mode&mount.TypeMask == mount.TypeDir {
		m |= fs.ModeDir
	}
	return m
}
