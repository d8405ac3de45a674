//go:build windows || cgofuse

package winfsp

import (
	"cartwheel.dev/geo-config/fault"
	"github.com/winfsp/cgofuse/fuse"
)

// code turns an error into cgofuse's answer, by the name of its errno: WinFsp
// has numbers of its own, which it turns into Windows's statuses.
func code(err error) int {
	if err == nil {
		return 0
	}
	switch fault.KindOf(err).ErrnoName() {
	case "ENOENT":
		return -fuse.ENOENT
	case "EEXIST":
		return -fuse.EEXIST
	case "EACCES":
		return -fuse.EACCES
	case "EPERM":
		return -fuse.EPERM
	case "ENOTDIR":
		return -fuse.ENOTDIR
	case "EISDIR":
		return -fuse.EISDIR
	case "ENOTEMPTY":
		return -fuse.ENOTEMPTY
	case "EINVAL":
		return -fuse.EINVAL
	case "ENAMETOOLONG":
		return -fuse.ENAMETOOLONG
	case "EMLINK":
		return -fuse.EMLINK
	case "EXDEV":
		return -fuse.EXDEV
	case "ENOSPC", "EDQUOT":
		return -fuse.ENOSPC // "disk full", not "access denied"
	case "EFBIG":
		return -fuse.EFBIG
	case "ENOTSUP":
		return -fuse.ENOTSUP
	case "EBUSY":
		return -fuse.EBUSY
	case "EAGAIN":
		return -fuse.EAGAIN
	case "EINTR":
		return -fuse.EINTR
	case "ETIMEDOUT":
		return -fuse.ETIMEDOUT
	case "EHOSTUNREACH":
		return -fuse.EHOSTUNREACH
	case "EBADF":
		return -fuse.EBADF
	case "ENODATA", "ENOATTR":
		return -fuse.ENOATTR
	case "ERANGE":
		return -fuse.ERANGE
	case "EDEADLK":
		return -fuse.EDEADLK
	case "ELOOP":
		return -fuse.ELOOP
	case "EROFS":
		return -fuse.EROFS
	case "ENOLCK":
		return -fuse.ENOLCK
	case "ETXTBSY":
		return -fuse.ETXTBSY
	case "ENXIO":
		return -fuse.ENXIO
	}
	return -fuse.EIO
}
