//go:build !darwin && !windows

package fault

import "syscall"

const (
	noAttribute     = syscall.ENODATA
	noAttributeName = "ENODATA"
	diskFull        = syscall.ENOSPC
)
