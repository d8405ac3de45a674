//go:build !linux

package postgrestest

import (
	"errors"
	"os"
	"syscall"
)

// quit ends a process.
var quit = os.Kill

// owner is the user that a server runs as.
type owner struct{}

func account() (owner, error) {
	return owner{}, errors.New("tests start PostgreSQL on Linux only")
}

func (owner) own(string) error { return nil }

func (owner) attributes() *syscall.SysProcAttr { return nil }
