//go:build linux

package cartwheel_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"cartwheel.dev/clients/mount/mounttest"
	"cartwheel.dev/node/server/servertest"
	"golang.org/x/sys/unix"
)

// increase reads the number in a file under an exclusive lock and writes the
// next one. It returns the number that it read.
func increase(path string) (was int, err error) {
	fd, err := openFile(path, unix.O_RDWR)
	if err != nil {
		return 0, fmt.Errorf("open: %w", err)
	}
	defer func() {
		if closed := unix.Close(fd); err == nil && closed != nil {
			err = fmt.Errorf("close: %w", closed)
		}
	}()
	lock := func(how int) error {
		_, err := again(func() (int, error) { return 0, unix.Flock(fd, how) })
		return err
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err != nil { // as the libraries of most languages do
		return 0, fmt.Errorf("stat: %w", err)
	}
	if err = lock(unix.LOCK_EX); err != nil {
		return 0, fmt.Errorf("lock: %w", err)
	}
	text := make([]byte, 32)
	n, err := again(func() (int, error) { return unix.Pread(fd, text, 0) })
	if err != nil {
		return 0, fmt.Errorf("read: %w", err)
	}
	if was, err = strconv.Atoi(string(text[:n])); err != nil {
		return 0, fmt.Errorf("%d bytes: %w", n, err)
	}
	if _, err = again(func() (int, error) { return 0, unix.Ftruncate(fd, 0) }); err != nil {
		return was, fmt.Errorf("truncate: %w", err)
	}
	next := []byte(strconv.Itoa(was + 1))
	if _, err = again(func() (int, error) { return unix.Pwrite(fd, next, 0) }); err != nil {
		return was, fmt.Errorf("write: %w", err)
	}
	if _, err = again(func() (int, error) { return 0, unix.Fsync(fd) }); err != nil {
		return was, fmt.Errorf("fsync: %w", err)
	}
	return was, lock(unix.LOCK_UN)
}

// makeCounter makes a folder and in it a file with the number 0.
func makeCounter(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "n"), []byte("0"), 0o644)
}

// TestLock_NoUpdateIsLostUnderIt has three mounts at three sites increase a
// number in a file that one of them just made, each time under an exclusive
// lock. COUNTER_ROUNDS makes it longer.
func TestLock_NoUpdateIsLostUnderIt(t *testing.T) {
	mounttest.NeedFUSE(t)
	rounds := 10
	if text := os.Getenv("COUNTER_ROUNDS"); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	const each = 10
	c := servertest.Start(t, servertest.Options{})
	points := []string{mounted(t, clientOf(t, c, "a")), mounted(t, clientOf(t, c, "b")), mounted(t, clientOf(t, c, "c"))}
	for round := range rounds {
		name := fmt.Sprint("d", round)
		if err := makeCounter(filepath.Join(points[round%len(points)], name)); err != nil {
			t.Fatal(err)
		}
		seen := make([][]int, len(points))
		var all sync.WaitGroup
		for i, point := range points {
			all.Go(func() {
				for range each {
					was, err := increase(filepath.Join(point, name, "n"))
					if err != nil {
						t.Errorf("round %d, mount %d: %v", round, i, err)
						return
					}
					seen[i] = append(seen[i], was)
				}
			})
		}
		all.Wait()
		text, err := os.ReadFile(filepath.Join(points[0], name, "n"))
		if err != nil {
			t.Fatal(err)
		}
		if want := strconv.Itoa(each * len(points)); string(text) != want {
			t.Errorf("round %d: %s updates are there, want %s; the mounts read %v", round, text, want, seen)
		}
	}
}
