package timerslack

import (
	"errors"
	"os"
	"strconv"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// passes bounds how often the threads are listed: one that is not set yet may
// start another, which inherits what it has.
const passes = 4

func allow(d time.Duration) error {
	const op fault.Op = "timerslack.allow"
	set := map[string]bool{}
	for range passes {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fault.FromOS(op, "/proc/self/task", err)
		}
		more := false
		for _, t := range threads {
			if set[t.Name()] {
				continue
			}
			set[t.Name()], more = true, true
			name := "/proc/" + t.Name() + "/timerslack_ns"
			err := os.WriteFile(name, strconv.AppendInt(nil, d.Nanoseconds(), 10), 0)
			if err != nil && !errors.Is(err, os.ErrNotExist) { // it ended meanwhile
				return fault.FromOS(op, name, err)
			}
		}
		if !more {
			break
		}
	}
	return nil
}
