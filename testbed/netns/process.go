package netns

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cartwheel.dev/clients/supervisor"
	"cartwheel.dev/geo-config/fault"
)

// poll is how often processes are looked for that were asked to go.
const poll = 20 * time.Millisecond

// identity tells namespaces apart, whatever their names.
type identity struct{ dev, ino uint64 }

func identify(path string) (identity, bool) {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return identity{}, false
	}
	return identity{st.Dev, st.Ino}, true
}

// Processes returns the IDs of the processes that are in any of the
// namespaces, by what /proc says of each of their threads.
func Processes(names ...string) ([]int, error) {
	wanted := map[identity]bool{}
	own, _ := identify("/proc/self/ns/net")
	for _, name := range names {
		// A name that nothing is mounted on is a plain file: nobody is in it.
		if id, ok := identify(Path(name)); ok && id != own {
			wanted[id] = true
		}
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fault.FromOS("netns.Processes", "/proc", err)
	}
	var out []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		threads, _ := filepath.Glob("/proc/" + e.Name() + "/task/*/ns/net")
		for _, t := range threads {
			if id, ok := identify(t); ok && wanted[id] {
				out = append(out, pid)
				break
			}
		}
	}
	return out, nil
}

// stuckAfter is after how long a process that was killed counts as stuck.
const stuckAfter = 2 * time.Second

// endAll asks the processes in the namespaces to end, and kills what is left
// after grace. It looks again until there are none, since what ends may have
// started others.
func endAll(ctx context.Context, grace time.Duration, names []string) (ended int, err error) {
	seen := map[int]bool{}
	start := time.Now()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		pids, err := Processes(names...)
		if err != nil || len(pids) == 0 {
			return len(seen), err
		}
		if waited := time.Since(start); waited > grace+10*time.Second {
			return len(seen), fault.Errorf(fault.Busy, "netns.Delete", strconv.Itoa(pids[0]), "%d processes in these namespaces do not end even when killed: end them, then try again", len(pids))
		} else if waited >= grace {
			signal(pids, syscall.SIGKILL, nil)
			if waited >= grace+stuckAfter {
				supervisor.AbortConnections(pids...)
			}
		} else {
			signal(pids, syscall.SIGTERM, seen)
		}
		for _, pid := range pids {
			seen[pid] = true
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			signal(pids, syscall.SIGKILL, nil)
			return len(seen), errors.Join(ctx.Err())
		}
	}
}

func signal(pids []int, sig syscall.Signal, except map[int]bool) {
	for _, pid := range pids {
		if !except[pid] {
			_ = syscall.Kill(pid, sig) // gone already is as good
		}
	}
}
