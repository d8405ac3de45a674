package sending

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cartwheel.dev/clients/earlier"
	"cartwheel.dev/geo-config/fault"
)

// facts are what the system says of a name.
type facts struct {
	earlier.Stamp
	path   string // of the system
	info   fs.FileInfo
	target string
}

// look reads the facts of a name.
func look(path string) (*facts, error) {
	const op fault.Op = "sending.look"
	info, err := os.Lstat(path)
	if err != nil {
		return nil, fault.FromOS(op, path, err)
	}
	f := &facts{Stamp: earlier.StampOf(info), path: path, info: info}
	if info.Mode()&fs.ModeSymlink != 0 {
		if f.target, err = os.Readlink(path); err != nil {
			return nil, fault.FromOS(op, path, err)
		}
	}
	return f, nil
}

func (f *facts) isDir() bool     { return f.info.IsDir() }
func (f *facts) isRegular() bool { return f.info.Mode().IsRegular() }
func (f *facts) mtime() int64    { return f.info.ModTime().UnixNano() }

// size is that of a file; of what is no file it is 0.
func (f *facts) size() uint64 {
	if !f.isRegular() {
		return 0
	}
	return uint64(f.info.Size())
}

func (f *facts) was() *was {
	if f == nil {
		return nil
	}
	return wasOf(f.info)
}

// wasOf is what a receiver knows of a name again.
func wasOf(info fs.FileInfo) *was {
	w := &was{kind: modeOf(info.Mode()) & typeMask, mtime: info.ModTime().UnixNano()}
	if info.Mode().IsRegular() {
		w.size = uint64(info.Size())
	}
	return w
}

// object describes a name with all its attributes, at a path of the stream.
func (f *facts) object(rel string) (*object, error) {
	o := &object{
		path: rel, mode: modeOf(f.info.Mode()), uid: f.Owner[0], gid: f.Owner[1],
		mtime: f.mtime(), size: f.size(), device: f.Device, target: f.target,
	}
	var err error
	o.xattrs, err = xattrsOf(f.path)
	slices.SortFunc(o.xattrs, func(a, b xattr) int { return strings.Compare(a.name, b.name) })
	return o, fault.FromOS("sending.object", f.path, err)
}

// names returns the names of a directory by their bytes.
func names(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, fault.FromOS("sending.names", dir, err)
	}
	defer d.Close()
	list, err := d.Readdirnames(-1)
	slices.Sort(list)
	return list, fault.FromOS("sending.names", dir, err)
}

// local is a path of a stream below a root, as the system writes it. Errors: Invalid, where
// the system has no such names.
func local(root, rel string) (string, error) {
	if rel == "" {
		return root, nil
	}
	p, err := filepath.Localize(rel)
	if err != nil {
		return "", fault.E(fault.Invalid, "sending.local", rel, "this system has no such names: receive it on another machine")
	}
	return filepath.Join(root, p), nil
}

// bits of modes that Go has elsewhere.
var modeBits = []struct {
	posix uint32
	mode  fs.FileMode
}{{0o4000, fs.ModeSetuid}, {0o2000, fs.ModeSetgid}, {0o1000, fs.ModeSticky}}

var modeTypes = map[fs.FileMode]uint32{
	fs.ModeDir: typeDir, 0: typeRegular, fs.ModeSymlink: typeLink, fs.ModeNamedPipe: 0o010000, fs.ModeSocket: 0o140000,
	fs.ModeDevice: 0o060000, fs.ModeDevice | fs.ModeCharDevice: 0o020000,
}

// modeOf is a mode as stat has it.
func modeOf(m fs.FileMode) uint32 {
	out := uint32(m.Perm()) | modeTypes[m.Type()]
	for _, b := range modeBits {
		if m&b.mode != 0 {
			out |= b.posix
		}
	}
	return out
}

// fileMode is the mode as Go has it. A type that there is not is that of a regular file.
func (o *object) fileMode() fs.FileMode {
	m := fs.FileMode(o.mode & 0o777)
	for _, b := range modeBits {
		if o.mode&b.posix != 0 {
			m |= b.mode
		}
	}
	for mode, posix := range modeTypes {
		if o.mode&typeMask == posix {
			m |= mode
		}
	}
	return m
}

func (o *object) modified() time.Time { return time.Unix(0, o.mtime) }
