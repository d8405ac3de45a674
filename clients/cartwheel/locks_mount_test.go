//go:build linux

package cartwheel_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cartwheel.dev/clients/mount/mounttest"
	"cartwheel.dev/node/server/servertest"
	"golang.org/x/sys/unix"
)

// threadsBeside is how many threads a test process has for all else than
// programs that wait.
const threadsBeside = 2000

// TestLock_HundredsOfLockWaitersGetIt queues programs for one flock at two
// mounts. Others go on meanwhile there and at a third, and each gets the lock
// alone. LOCK_WAITERS says how many they are, each a thread that the kernel
// holds. How long a listing takes beside them is logged.
func TestLock_HundredsOfLockWaitersGetIt(t *testing.T) {
	mounttest.NeedFUSE(t)
	waiters := scaled(t, "LOCK_WAITERS", 120)
	if most := waiters + threadsBeside; most > 10_000 { // the usual limit
		debug.SetMaxThreads(most) // for good: threads stay
	}
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	points := []string{mounted(t, clientOf(t, c, "")), mounted(t, clientOf(t, c, "")), mounted(t, clientOf(t, c, ""))}
	open := func(point string) int {
		fd, err := unix.Open(filepath.Join(point, "lock"), unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		return fd
	}
	holder := open(points[0])
	if err := unix.Flock(holder, unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var inside atomic.Int64
	var all sync.WaitGroup
	for i := range waiters {
		fd := open(points[i%2])
		all.Go(func() {
			defer unix.Close(fd)
			if err := unix.Flock(fd, unix.LOCK_EX); err != nil {
				t.Errorf("waiter %d: %v", i, err)
				return
			}
			if n := inside.Add(1); n != 1 {
				t.Errorf("%d have the lock at once", n)
			}
			inside.Add(-1)
			if err := unix.Flock(fd, unix.LOCK_UN); err != nil {
				t.Errorf("waiter %d unlocks: %v", i, err)
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute+time.Duration(waiters)*20*time.Millisecond)
	defer cancel()
	servertest.Await(ctx, t, "all to wait", func() error {
		if _, waiting := c.Nodes[0].Server().Locks(); waiting != waiters {
			return fmt.Errorf("%d wait, want %d", waiting, waiters)
		}
		return nil
	})
	t.Logf("%d wait after %v", waiters, time.Since(began))
	for i, point := range points {
		for round := range 20 {
			listedBeside(t, point, fmt.Sprintf("other%d-%d", i, round))
		}
	}
	began = time.Now()
	if err := unix.Close(holder); err != nil { // which gives it up
		t.Error(err)
	}
	all.Wait()
	t.Logf("all had the lock after %v", time.Since(began))
}

// listedBeside makes a file and lists its folder, and logs how long that took.
func listedBeside(t *testing.T, point, name string) {
	t.Helper()
	began := time.Now()
	if err := fillFile(filepath.Join(point, name)); err != nil {
		t.Errorf("a file made beside those who wait: %v", err)
	}
	made := time.Now()
	list, err := os.ReadDir(point)
	if err != nil {
		t.Errorf("a folder listed beside those who wait: %v", err)
	}
	t.Logf("%s: %s was made in %v, %d names were listed in %v", point, name, made.Sub(began), len(list), time.Since(made))
}

// fillFile makes a file of one byte.
func fillFile(path string) error {
	fd, err := unix.Open(path, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte("x"))
	return err
}
