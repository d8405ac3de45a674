//go:build !linux && !darwin && !windows

package boottime

import "time"

func platform() Func { return corrected(sinceStart(), time.Now) }
