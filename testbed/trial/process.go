package trial

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// Usage is what a process takes of the machine.
type Usage struct {
	Resident int64         // bytes of memory now
	Peak     int64         // the most that there ever were
	CPU      time.Duration // processor time since its start
}

// tick is the unit of processor time in /proc, on every Linux.
const tick = 10 * time.Millisecond

// Look looks at a process. It fails with NotFound where there is none, and where
// one has ended that nobody waited for.
func Look(pid int) (Usage, error) {
	const op fault.Op = "trial.Look"
	var u Usage
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return u, fault.FromOS(op, dir, err)
	}
	for line := range strings.Lines(string(status)) {
		for _, f := range []struct {
			name string
			into *int64
		}{{"VmRSS:", &u.Resident}, {"VmHWM:", &u.Peak}} {
			if text, ok := strings.CutPrefix(line, f.name); ok {
				if _, err := fmt.Sscan(text, f.into); err != nil {
					return u, fault.Wrap(fault.Corrupt, op, dir, err)
				}
				*f.into <<= 10
			}
		}
	}
	if u.Resident == 0 {
		return u, fault.E(fault.NotFound, op, dir, "the process has ended")
	}
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return u, fault.FromOS(op, dir, err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // from the third on
	var ticks [2]int64
	for i, text := range fields[11:13] { // utime and stime
		if ticks[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return u, fault.Wrap(fault.Corrupt, op, dir, err)
		}
	}
	u.CPU = time.Duration(ticks[0]+ticks[1]) * tick
	return u, nil
}

// FolderBytes is how much the files below a folder hold; files that go away
// meanwhile do not count.
func FolderBytes(dir string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		i, err := d.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err == nil:
			sum += i.Size()
		}
		return err
	})
	return sum, fault.FromOS("trial.FolderBytes", dir, err)
}
