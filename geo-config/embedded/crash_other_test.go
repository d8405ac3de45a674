//go:build !linux

package embedded_test

import "syscall"

func dieWithParent() *syscall.SysProcAttr { return nil }
