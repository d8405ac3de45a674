package mount

import (
	"syscall"

	"cartwheel.dev/geo-config/fault"
)

// Errno turns an error into the errno that the kernel is answered with: by its
// kind, never by its text.
func Errno(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	if e, ok := err.(*fault.Error); ok { //nolint:errorlint // most errors, without a walk of the chain
		return e.Kind.Errno()
	}
	return fault.KindOf(err).Errno()
}
