package mount

import (
	"syscall"

	"cartwheel.dev/geo-config/fault"
)

// Errno turns an error into the errno that the kernel is answered with: by its
// kind, never by its text. Kinds that no program can act upon are EIO.
func Errno(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	return errnoOf(fault.KindOf(err))
}

func errnoOf(k fault.Kind) syscall.Errno {
	switch k {
	case fault.None:
		return 0
	case fault.NotFound:
		return syscall.ENOENT
	case fault.Exists:
		return syscall.EEXIST
	case fault.Permission, fault.Unauthorized:
		return syscall.EACCES
	case fault.NotOwner:
		return syscall.EPERM
	case fault.NotDirectory:
		return syscall.ENOTDIR
	case fault.IsDirectory:
		return syscall.EISDIR
	case fault.NotEmpty:
		return syscall.ENOTEMPTY
	case fault.Invalid, fault.Usage:
		return syscall.EINVAL
	case fault.NameTooLong:
		return syscall.ENAMETOOLONG
	case fault.TooManyLinks:
		return syscall.EMLINK
	case fault.CrossDevice:
		return syscall.EXDEV
	case fault.NoSpace:
		return syscall.ENOSPC
	case fault.Quota:
		return errQuota
	case fault.TooLarge:
		return syscall.EFBIG
	case fault.NotSupported:
		return syscall.EOPNOTSUPP
	case fault.Stale, fault.WrongEpoch, fault.Expired, fault.WrongCluster:
		return errStale
	case fault.Busy:
		return syscall.EBUSY
	case fault.Again, fault.Overloaded:
		return syscall.EAGAIN
	case fault.Interrupted, fault.Canceled:
		return syscall.EINTR
	case fault.TimedOut:
		return syscall.ETIMEDOUT
	case fault.Unreachable, fault.NotActive:
		return syscall.EHOSTUNREACH
	case fault.NoAttribute:
		return errNoAttribute
	case fault.TooSmall:
		return syscall.ERANGE
	case fault.Deadlock:
		return syscall.EDEADLK
	case fault.Loop:
		return syscall.ELOOP
	case fault.ReadOnly:
		return syscall.EROFS
	case fault.NoLocks:
		return syscall.ENOLCK
	case fault.TextBusy:
		return errTextBusy
	case fault.NoDevice:
		return syscall.ENXIO
	case fault.BadHandle:
		return syscall.EBADF
	case fault.Other, fault.Conflict, fault.Duplicate, fault.Corrupt, fault.IO, fault.Closed,
		fault.NewerVersion, fault.Missing, fault.LostLock:
		return syscall.EIO
	}
	return syscall.EIO
}
