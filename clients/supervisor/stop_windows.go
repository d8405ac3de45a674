package supervisor

import (
	"errors"
	"os"
)

// askToStop fails: a process without a console cannot be asked.
func askToStop(*os.Process) error { return errors.ErrUnsupported }
