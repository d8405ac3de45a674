package mounttest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// testCase is one claim about a mount. mounts is how many it needs.
type testCase struct {
	name   string
	mounts int
	run    func(*env)
}

// wholeSize, set to 1, asks for directories of 10^5 entries.
const wholeSize = "CARTWHEEL_WHOLE"

// env is what a case works with: a fresh directory, seen through each mount.
type env struct {
	*testing.T
	dir  string // on the first mount
	peer string // the same directory on the second mount, where there is one
}

// Users that exist on every machine as numbers.
const (
	alice = 4201
	bob   = 4202
	staff = 4300 // a group
)

func newEnv(t *testing.T, c testCase, dirs []string) *env {
	t.Helper()
	syscall.Umask(0o022)
	dir, err := os.MkdirTemp(dirs[0], "case")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("cleaning up: %v", err)
		}
	})
	e := &env{T: t, dir: dir}
	e.ok(os.Chmod(dir, 0o755))
	if c.mounts > 1 {
		e.peer = filepath.Join(dirs[1], filepath.Base(dir))
		e.eventually("the directory shows on the second mount", func() error {
			_, err := os.Stat(e.peer)
			return err
		})
	}
	return e
}

// at answers a path in the case's directory.
func (e *env) at(parts ...string) string { return filepath.Join(append([]string{e.dir}, parts...)...) }

// ok stops the case unless err is nil.
func (e *env) ok(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// want stops the case unless err is errno.
func (e *env) want(err error, errno syscall.Errno) {
	e.Helper()
	if !errors.Is(err, errno) {
		e.Fatalf("got %v, want %v", err, errno)
	}
}

// equal stops the case unless the two are equal.
func equal[T comparable](e *env, got, want T) {
	e.Helper()
	if got != want {
		e.Fatalf("got %v, want %v", got, want)
	}
}

// open opens a file for the time of the case.
func (e *env) open(path string, flags int, mode os.FileMode) *os.File {
	e.Helper()
	f, err := os.OpenFile(path, flags, mode)
	e.ok(err)
	e.Cleanup(func() { f.Close() })
	return f
}

// write makes a file of the content.
func (e *env) write(path, content string) {
	e.Helper()
	e.ok(os.WriteFile(path, []byte(content), 0o644))
}

// read stops the case unless the file has the content.
func (e *env) read(path, want string) {
	e.Helper()
	got, err := os.ReadFile(path)
	e.ok(err)
	e.same(got, []byte(want))
}

func (e *env) same(got, want []byte) {
	e.Helper()
	if bytes.Equal(got, want) {
		return
	}
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	e.Fatalf("content differs at %d: got %d bytes, want %d: %q against %q", at, len(got), len(want),
		got[at:min(at+32, len(got))], want[at:min(at+32, len(want))])
}

func (e *env) stat(path string) unix.Stat_t {
	e.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		e.Fatalf("lstat %s: %v", path, err)
	}
	return st
}

func (e *env) fstat(f *os.File) unix.Stat_t {
	e.Helper()
	var st unix.Stat_t
	e.ok(unix.Fstat(int(f.Fd()), &st))
	return st
}

// as runs fn as another user, on a thread that is thrown away afterwards. fn
// answers an error, for it must not stop the case.
func (e *env) as(uid, gid int, groups []int, fn func() error) error {
	e.Helper()
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		done <- become(uid, gid, groups, fn)
	}()
	return <-done
}

func become(uid, gid int, groups []int, fn func() error) error {
	list := make([]uint32, len(groups)+1)
	for i, g := range groups {
		list[i] = uint32(g)
	}
	for _, call := range []struct{ number, a, b, c uintptr }{
		{unix.SYS_SETGROUPS, uintptr(len(groups)), listAddress(list), 0},
		{unix.SYS_SETRESGID, uintptr(gid), uintptr(gid), uintptr(gid)},
		{unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)},
	} {
		if _, _, errno := syscall.RawSyscall(call.number, call.a, call.b, call.c); errno != 0 {
			return fmt.Errorf("becoming another user: %w", errno)
		}
	}
	runtime.KeepAlive(list)
	return fn()
}

// eventually polls until fn answers nil, or stops the case with its last word.
func (e *env) eventually(what string, fn func() error) {
	e.Helper()
	limit := time.NewTimer(10 * time.Second)
	defer limit.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := fn()
		if err == nil {
			return
		}
		select {
		case <-limit.C:
			e.Fatalf("%s: %v", what, err)
		case <-tick.C:
		}
	}
}

// all runs fn n times at once and stops the case with the first error.
func (e *env) all(n int, fn func(i int) error) {
	e.Helper()
	errs := make(chan error, n)
	for i := range n {
		go func() { errs <- fn(i) }()
	}
	var first error
	for range n {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	e.ok(first)
}
