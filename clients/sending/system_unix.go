//go:build linux || darwin

package sending

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"cartwheel.dev/clients/earlier"
	"golang.org/x/sys/unix"
)

// answers begins the names of attributes that a mount answers, and that nobody set.
const answers = "user.cartwheel."

// xattrsOf reads the extended attributes of a name, the ACLs among them.
func xattrsOf(path string) ([]xattr, error) {
	list, err := xattrNames(path)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	var out []xattr
	value := make([]byte, 64<<10) // as long as one may be
	for _, name := range list {
		n, err := unix.Lgetxattr(path, name, value)
		if err != nil {
			return nil, err
		}
		out = append(out, xattr{name, append([]byte(nil), value[:n]...)})
	}
	return out, nil
}

// xattrNames lists what xattrsOf reads.
func xattrNames(path string) ([]string, error) {
	buf := make([]byte, 64<<10)
	n, err := unix.Llistxattr(path, buf)
	if errors.Is(err, unix.ENOTSUP) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for name := range strings.SplitSeq(string(buf[:n]), "\x00") {
		if name != "" && !strings.HasPrefix(name, answers) {
			out = append(out, name)
		}
	}
	return out, nil
}

// isSet reports whether people set an attribute: others, such as labels, are the system's.
func isSet(name string) bool {
	return strings.HasPrefix(name, "user.") || strings.HasPrefix(name, "system.posix_acl_")
}

// dress gives a name the attributes of a record. Plain: without owners and extended
// attributes.
func dress(path string, o *object, plain bool) error {
	if !plain {
		err := own(path, o)
		if err == nil {
			err = setXattrs(path, o.xattrs)
		}
		if errors.Is(err, os.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
			err = fmt.Errorf("owners, extended attributes and ACLs can be left out with --plain, and root may set all of them: %w", err)
		}
		if err != nil {
			return err
		}
	}
	if o.mode&typeMask != typeLink {
		if err := os.Chmod(path, o.fileMode()); err != nil {
			return err
		}
	}
	return setModified(path, o.modified())
}

// own sets the owner. Others than root may not, where it is another one.
func own(path string, o *object) error {
	err := os.Lchown(path, int(o.uid), int(o.gid))
	if err == nil {
		return nil
	}
	info, bad := os.Lstat(path)
	if bad == nil && earlier.StampOf(info).Owner == [2]uint32{o.uid, o.gid} {
		return nil
	}
	return err
}

// setXattrs makes the extended attributes those of a list.
func setXattrs(path string, list []xattr) error {
	there, err := xattrNames(path)
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, x := range list {
		wanted[x.name] = true
		if err := unix.Lsetxattr(path, x.name, x.value, 0); err != nil {
			return err
		}
	}
	for _, name := range there {
		if wanted[name] || !isSet(name) {
			continue
		}
		if err := unix.Lremovexattr(path, name); err != nil {
			return err
		}
	}
	return nil
}

func setModified(path string, at time.Time) error {
	spec, err := unix.TimeToTimespec(at)
	if err != nil {
		return err
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{spec, spec}, unix.AT_SYMLINK_NOFOLLOW)
}
