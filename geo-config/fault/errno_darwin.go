package fault

import "syscall"

// macOS has a number of its own for a missing extended attribute.
const (
	noAttribute     = syscall.ENOATTR
	noAttributeName = "ENOATTR"
	diskFull        = syscall.ENOSPC
)
