package timerslack

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// slacks returns the slack of each thread.
func slacks(t *testing.T) map[string]time.Duration {
	t.Helper()
	out := map[string]time.Duration{}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		b, err := os.ReadFile("/proc/" + thread.Name() + "/timerslack_ns")
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		ns, err2 := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		out[thread.Name()] = time.Duration(ns)
	}
	return out
}

func TestAllow_ReachesOldAndNewThreads(t *testing.T) {
	const want = 1234567 * time.Nanosecond
	err := Allow(want)
	if fault.Is(err, fault.Permission) || fault.Is(err, fault.NotFound) {
		t.Skip("needs root, and a kernel that has timer slack:", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	before := len(slacks(t))
	var locked, done sync.WaitGroup
	release := make(chan struct{})
	for range before + 4 { // more than there are threads
		locked.Add(1)
		done.Add(1)
		go func() {
			defer done.Done()
			runtime.LockOSThread()
			locked.Done()
			<-release
		}()
	}
	locked.Wait()
	all := slacks(t)
	close(release)
	done.Wait()
	if len(all) <= before {
		t.Fatalf("%d threads as before: the test has made no new one", before)
	}
	for id, got := range all {
		if got != want {
			t.Errorf("thread %s of process %d: slack %v, want %v", id, syscall.Getpid(), got, want)
		}
	}
}
