//go:build !linux

package mounttest

import "testing"

// Factory mounts a file system once or twice and answers the mount points.
type Factory func(t *testing.T) []string

// Except names a case that a binding cannot pass, and why.
type Except struct{ Case, Reason string }

// Run skips: the cases are written for Linux.
func Run(t *testing.T, _ Factory, _ ...Except) { t.Skip("the suite of mounts runs on Linux") }

// NeedFUSE skips the test.
func NeedFUSE(t *testing.T) { t.Skip("the suite of mounts runs on Linux") }
