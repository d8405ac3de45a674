package boottime

import "golang.org/x/sys/windows"

// DurationSinceBoot counts sleep and hibernation too.
func platform() Func { return windows.DurationSinceBoot }
