package fault

import (
	"errors"
	"io/fs"
	"syscall"
)

// errno is one line of the table: the name is the same on every system, the
// number is this system's.
type errno struct {
	name   string
	number syscall.Errno
}

// errnos is the table from kinds to what a program on a mount sees. Kinds that
// never should get that far have the nearest thing that makes it try again.
var errnos = [kinds]errno{
	None:         {"OK", 0},
	Other:        {"EIO", syscall.EIO},
	NotFound:     {"ENOENT", syscall.ENOENT},
	Exists:       {"EEXIST", syscall.EEXIST},
	Permission:   {"EACCES", syscall.EACCES},
	NotOwner:     {"EPERM", syscall.EPERM},
	NotDirectory: {"ENOTDIR", syscall.ENOTDIR},
	IsDirectory:  {"EISDIR", syscall.EISDIR},
	NotEmpty:     {"ENOTEMPTY", syscall.ENOTEMPTY},
	Invalid:      {"EINVAL", syscall.EINVAL},
	NameTooLong:  {"ENAMETOOLONG", syscall.ENAMETOOLONG},
	TooManyLinks: {"EMLINK", syscall.EMLINK},
	CrossDevice:  {"EXDEV", syscall.EXDEV},
	NoSpace:      {"ENOSPC", syscall.ENOSPC},
	Quota:        {"EDQUOT", syscall.EDQUOT},
	TooLarge:     {"EFBIG", syscall.EFBIG},
	NotSupported: {"ENOTSUP", syscall.ENOTSUP},
	Stale:        {"ESTALE", syscall.ESTALE},
	Busy:         {"EBUSY", syscall.EBUSY},
	Again:        {"EAGAIN", syscall.EAGAIN},
	Interrupted:  {"EINTR", syscall.EINTR},
	TimedOut:     {"ETIMEDOUT", syscall.ETIMEDOUT},
	Canceled:     {"EINTR", syscall.EINTR},
	Unreachable:  {"EHOSTUNREACH", syscall.EHOSTUNREACH},
	WrongEpoch:   {"EAGAIN", syscall.EAGAIN},
	NotActive:    {"EAGAIN", syscall.EAGAIN},
	Conflict:     {"EAGAIN", syscall.EAGAIN},
	Duplicate:    {"EALREADY", syscall.EALREADY},
	Expired:      {"ESTALE", syscall.ESTALE},
	Unauthorized: {"EACCES", syscall.EACCES},
	Corrupt:      {"EIO", syscall.EIO},
	IO:           {"EIO", syscall.EIO},
	Closed:       {"EBADF", syscall.EBADF},
	Overloaded:   {"EAGAIN", syscall.EAGAIN},
	NoAttribute:  {noAttributeName, noAttribute},
	TooSmall:     {"ERANGE", syscall.ERANGE},
	Deadlock:     {"EDEADLK", syscall.EDEADLK},
	Loop:         {"ELOOP", syscall.ELOOP},
	ReadOnly:     {"EROFS", syscall.EROFS},
	NewerVersion: {"EPROTONOSUPPORT", syscall.EPROTONOSUPPORT},
	WrongCluster: {"EACCES", syscall.EACCES},
	NoLocks:      {"ENOLCK", syscall.ENOLCK},
	TextBusy:     {"ETXTBSY", syscall.ETXTBSY},
	Missing:      {"EIO", syscall.EIO},
	LostLock:     {"EIO", syscall.EIO},
	Usage:        {"EINVAL", syscall.EINVAL},
	NoDevice:     {"ENXIO", syscall.ENXIO},
	BadHandle:    {"EBADF", syscall.EBADF},
	ClockSkew:    {"EIO", syscall.EIO},
}

// Errno returns this system's number for a kind. On Windows the numbers are
// Go's own; a binding there goes by ErrnoName.
func (k Kind) Errno() syscall.Errno { return errnos[k.known()].number }

// ErrnoName returns the symbolic name of a kind's errno, "OK" for None.
func (k Kind) ErrnoName() string { return errnos[k.known()].name }

// known maps kinds of a newer peer to Other.
func (k Kind) known() Kind {
	if k >= kinds {
		return Other
	}
	return k
}

// FromOS gives an error of the operating system its kind, op and subject: IO
// where nothing closer fits, nil where err is nil. An error that has a kind
// already keeps it.
func FromOS(op Op, subject string, err error) error {
	if err == nil {
		return nil
	}
	return Wrap(osKind(err), op, subject, err)
}

func osKind(err error) Kind {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return NotFound
	case errors.Is(err, fs.ErrExist):
		return Exists
	case errors.Is(err, fs.ErrPermission):
		return Permission
	case errors.Is(err, fs.ErrClosed):
		return Closed
	}
	var number syscall.Errno
	if !errors.As(err, &number) {
		return IO
	}
	if number == diskFull {
		return NoSpace
	}
	switch number {
	case syscall.EDQUOT:
		return Quota
	case syscall.EROFS:
		return ReadOnly
	case syscall.EINVAL:
		return Invalid
	case syscall.EFBIG:
		return TooLarge
	case syscall.ENAMETOOLONG:
		return NameTooLong
	case syscall.ENOTDIR:
		return NotDirectory
	case syscall.EISDIR:
		return IsDirectory
	case syscall.EBUSY, syscall.ETXTBSY:
		return Busy
	case syscall.EAGAIN:
		return Again
	case syscall.EINTR:
		return Interrupted
	}
	return IO
}
