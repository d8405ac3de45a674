//go:build linux || darwin

package command

import (
	"errors"

	"golang.org/x/sys/unix"
)

// getxattr reads an extended attribute of any size.
func getxattr(path, name string) ([]byte, error) {
	for n := 4096; ; n *= 2 {
		buf := make([]byte, n)
		got, err := unix.Lgetxattr(path, name, buf)
		if !errors.Is(err, unix.ERANGE) {
			return buf[:max(got, 0)], err
		}
	}
}

// setxattr sets an extended attribute.
func setxattr(path, name, value string) error { return unix.Lsetxattr(path, name, []byte(value), 0) }
