//go:build linux || darwin

package earlier

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// MakeSpecial makes a pipe, a socket or a device that only its owner may use yet. Errors are
// those of the system.
func MakeSpecial(to string, mode fs.FileMode, device uint64) error {
	kind := map[fs.FileMode]uint32{
		fs.ModeNamedPipe: unix.S_IFIFO, fs.ModeSocket: unix.S_IFSOCK, fs.ModeDevice: unix.S_IFBLK, fs.ModeDevice | fs.ModeCharDevice: unix.S_IFCHR,
	}[mode.Type()]
	return unix.Mknod(to, kind|0o600, int(device))
}

// dress gives a copy the owner, the extended attributes with the ACLs, the mode and the times
// of what it is a copy of.
func dress(from, to string, info fs.FileInfo) error {
	s := StampOf(info)
	if err := os.Lchown(to, int(s.Owner[0]), int(s.Owner[1])); err != nil && !isOwner(to, s) {
		return err
	}
	if err := copyXattrs(from, to); err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		if err := os.Chmod(to, info.Mode()); err != nil {
			return err
		}
	}
	at, err := unix.TimeToTimespec(info.ModTime())
	if err != nil {
		return err
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, to, []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW)
}

// isOwner reports whether a copy has its owner already: others than root may not set it.
func isOwner(to string, want Stamp) bool {
	info, err := os.Lstat(to)
	return err == nil && StampOf(info).Owner == want.Owner
}

// copyXattrs copies the extended attributes, the ACLs among them.
func copyXattrs(from, to string) error {
	names := make([]byte, 64<<10)
	n, err := unix.Llistxattr(from, names)
	if errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	if err != nil {
		return err
	}
	value := make([]byte, 64<<10) // as long as one may be
	for name := range strings.SplitSeq(string(names[:n]), "\x00") {
		if name == "" {
			continue
		}
		got, err := unix.Lgetxattr(from, name, value)
		if err != nil {
			return err
		}
		if err := unix.Lsetxattr(to, name, value[:got], 0); err != nil {
			return err
		}
	}
	return nil
}
