package fault

import "syscall"

const (
	noAttribute     = syscall.ENODATA
	noAttributeName = "ENODATA"
	// diskFull is ERROR_DISK_FULL, what Windows itself says for ENOSPC.
	diskFull = syscall.Errno(112)
)
