package mount

import "syscall"

const (
	errQuota       = syscall.EDQUOT
	errStale       = syscall.ESTALE
	errNoAttribute = syscall.ENOATTR
	errTextBusy    = syscall.ETXTBSY
)
