//go:build !linux && !darwin

package command

import "errors"

// getxattr answers that this system has no such attributes.
func getxattr(string, string) ([]byte, error) { return nil, errors.ErrUnsupported }

// setxattr answers the same.
func setxattr(string, string, string) error { return errors.ErrUnsupported }
